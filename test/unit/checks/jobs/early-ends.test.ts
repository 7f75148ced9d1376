import { expect, it } from 'vitest'
import { type Beside, isAloneAt } from '../../../../src/checks/jobs/early-ends.ts'
import type { JobEntry, JobReport } from '../../../../src/checks/jobs/job-report.ts'
import { HOUR, MINUTE, NOON, SECOND } from '../../../support/builders.ts'

const reportOf = (runId: string | null, ...entries: JobEntry[]): JobReport => ({
  resource: { cluster: 'default', namespace: 'shop', name: 'nightly' },
  source: 'nightly',
  runId,
  job: `job ${runId}`,
  entries,
  lastRun: null,
})
const start = (at: number): JobEntry => ({ type: 'start', at, slotAt: at })
const end = (at: number): JobEntry => ({ type: 'success', at, durationMs: null })
const OWN = reportOf('own', start(NOON))
const isAlone = (given: Partial<Beside>, at = NOON + MINUTE) =>
  isAloneAt(at, OWN, { reports: [OWN], runs: [], now: NOON + HOUR, ...given })

it('a run is alone where no other Job ran at the time', () => {
  expect(isAlone({})).toBe(true)
  // Whole seconds: an end counts up to the end of its second.
  const other = reportOf('other', start(NOON), end(NOON + 30 * SECOND))
  const beside = (at: number) => isAlone({ reports: [OWN, other] }, at)
  expect([NOON - 1, NOON, NOON + 31 * SECOND - 1, NOON + 31 * SECOND].map(beside)).toEqual([true, false, false, true])
  expect(isAlone({ reports: [OWN, reportOf('other', start(NOON))] })).toBe(false)
})

it('a run whose start was reported before counts from there, until the end that is reported', () => {
  const runs = [
    { id: 'unrelated', startedAt: NOON + 2 * HOUR, deadlineAt: null, slotAt: NOON + 2 * HOUR },
    { id: 'other', startedAt: NOON - HOUR, deadlineAt: null, slotAt: NOON - HOUR },
  ]
  const other = reportOf('other', end(NOON))
  const beside = (at: number) => isAlone({ reports: [OWN, other], runs }, at)
  expect([NOON - HOUR - 1, NOON - HOUR, NOON + SECOND - 1, NOON + SECOND].map(beside)).toEqual([
    true,
    false,
    false,
    true,
  ])
  // Of an unknown run nothing is known but its end, and that of the CronJob alone names no run.
  expect(isAlone({ reports: [OWN, reportOf('unknown', end(NOON + HOUR))] })).toBe(true)
  expect(isAlone({ reports: [OWN, reportOf(null, end(NOON + HOUR))] })).toBe(true)
})

it('an open run of a Job counts, and one that a container began without an id does not', () => {
  const open = { startedAt: NOON, deadlineAt: null }
  expect(isAlone({ runs: [{ ...open, id: 'other', slotAt: NOON }] })).toBe(false)
  expect(isAlone({ runs: [{ ...open, id: null }] })).toBe(true)
})
