/** What one entry of a Job's report becomes. What becomes of whole reports: test/db/jobs. */

import { describe, expect, it } from 'vitest'
import type { JobEntry, JobReport } from '../../../../src/checks/jobs/job-report.ts'
import { type Known, type RunLedger, toChange } from '../../../../src/checks/jobs/to-change.ts'
import type { Run } from '../../../../src/domain/check.ts'
import { LIMITS } from '../../../../src/domain/limits.ts'
import type { StoredRun } from '../../../../src/store/jobs/followed-checks.ts'
import { HOUR, MINUTE, NOON } from '../../../support/builders.ts'

const RUN = '0190b8a0-0000-7000-8000-00000000000a'
const OTHER = '0190b8a0-0000-7000-8000-00000000000b'
const NOTHING: StoredRun = {
  jobTypes: [],
  httpTypes: [],
  hasSuccess: false,
  isPruned: false,
  isOpen: false,
  overruledAt: null,
}
const runOf = (id: string, more: Partial<Run> = {}): Run => ({ id, startedAt: NOON, deadlineAt: null, ...more })

interface Given extends Partial<Omit<Known, 'stored'>> {
  readonly runId?: string | null
  readonly stored?: Partial<StoredRun>
}

const change = (entry: JobEntry, { runId = RUN, stored = {}, ...known }: Given = {}, ledger: RunLedger = new Set()) => {
  const report: JobReport = {
    resource: { cluster: 'default', namespace: 'shop', name: 'nightly' },
    source: 'nightly',
    runId,
    job: 'nightly-1',
    entries: [entry],
    lastRun: null,
  }
  const check = { key: 1, createdAt: NOON - HOUR } as Known['check']
  const facts = { check, runs: [], isOverruledEarly: false, lastRun: null, now: NOON + HOUR, newestPast: 0, ...known }
  return toChange(report, entry, { ...facts, stored: { ...NOTHING, ...stored } }, ledger)
}

const at = NOON + MINUTE
const failed = (more: Partial<JobEntry & { type: 'fail' }> = {}): JobEntry => ({
  type: 'fail',
  at,
  durationMs: null,
  exitCode: 1,
  body: 'why',
  ...more,
})
const succeeded: JobEntry = { type: 'success', at, durationMs: null }
const log: JobEntry = { type: 'log', at, body: 'Job nightly-1 was deleted before it ended' }
const closed = { key: 1, at: NOON + HOUR, event: { kind: 'abandon', runId: RUN, at: null } }

it.each([
  [0, 0],
  [LIMITS.exitCode, LIMITS.exitCode],
  [LIMITS.exitCode + 1, null],
  [-1, null],
  [null, null],
])('an exit code of %j is stored as %j: Windows has others', (exitCode, stored) => {
  expect(change(failed({ exitCode }))?.ping).toMatchObject({ type: 'fail', exitCode: stored })
})

it.each([
  [1.5, 2],
  [-1, 0],
  [LIMITS.durationMs, LIMITS.durationMs],
  [LIMITS.durationMs + 1, null],
  [null, null],
])('a duration of %j ms is stored as %j', (durationMs, stored) => {
  expect(change(failed({ durationMs }))?.event).toMatchObject({ kind: 'fail', durationMs: stored })
})

describe('what a failure says', () => {
  it('is stored as it is, and its first line says why', () => {
    const { ping, about } = change(failed({ body: '  out of memory \nmore' }))!
    expect([ping!.body!.toString(), about]).toEqual([
      '  out of memory \nmore',
      { job: 'nightly-1', detail: 'out of memory' },
    ])
  })

  it('may be nothing', () => {
    expect(change(failed({ body: '' }))).toMatchObject({ ping: { body: null }, about: { detail: null } })
  })

  it('is stored up to its limit, without half a character', () => {
    const body = `${'x'.repeat(LIMITS.pingBodyBytes - 1)}é`
    expect(change(failed({ body }))!.ping!.body).toHaveLength(LIMITS.pingBodyBytes - 1)
  })
})

describe('the end of a Job', () => {
  it('is no success where its container has sent a fail, in this run and in no other', () => {
    const isOverruled = (given: Given) => (change(succeeded, given)!.event as { job: { isOverruled: boolean } }).job
    expect(isOverruled({ stored: { httpTypes: ['fail'] } })).toMatchObject({ isOverruled: true })
    expect(isOverruled({ isOverruledEarly: true })).toMatchObject({ isOverruled: true })
    expect(isOverruled({ runs: [runOf(OTHER, { isOverruled: true })] })).toMatchObject({ isOverruled: false })
  })

  it('closes its run without a record where the success would be the second log', () => {
    const hasLog = { httpTypes: ['log' as const] }
    expect(change(succeeded, { runs: [runOf(RUN, { isOverruled: true })], stored: hasLog })).toEqual(closed)
    expect(change(failed(), { runs: [runOf(RUN, { isOverruled: true })], stored: hasLog })?.event.kind).toBe('fail')
    const beside = [runOf(RUN), runOf(OTHER, { isOverruled: true })]
    expect(change(succeeded, { runs: beside, stored: hasLog })?.event.kind).toBe('success')
    expect(change(succeeded, { runId: null, isOverruledEarly: true, stored: hasLog })?.event.kind).toBe('success')
  })
})

describe('a Job that was deleted', () => {
  it('closes its run, and is a log of the history, if that has none of this run', () => {
    expect(change(log)).toMatchObject({ event: { kind: 'abandon', runId: RUN, at }, ping: { type: 'log' } })
    expect(change(log, { stored: { httpTypes: ['log'] } })).toEqual(closed)
  })

  it('of which no run is known is a log alone', () => {
    expect(change(log, { runId: null })).toMatchObject({ event: { kind: 'log' }, ping: { type: 'log', runId: null } })
  })

  it('did not take too long where its container has reported its end', () => {
    const replaced = { ...log, overran: 'Job nightly-2 replaced it' } as JobEntry
    expect(change(replaced)?.event).toMatchObject({ overran: { at, createdAt: NOON - HOUR } })
    expect(change(replaced, { stored: { httpTypes: ['success'] } })?.event).not.toHaveProperty('overran')
  })
})

describe('a Job that is suspended', () => {
  const suspended: JobEntry = { type: 'suspend', at }
  const start: JobEntry = { type: 'start', at, slotAt: at }

  it('closes its run, if it is open or begins with the same report', () => {
    expect(change(suspended)).toBeNull()
    expect(change(suspended, { runId: null, runs: [runOf(RUN)] })).toBeNull()
    expect(change(suspended, { runs: [runOf(OTHER)] })).toBeNull()
    expect(change(suspended, { runs: [runOf(RUN)] })).toEqual(closed)
    expect(change(suspended, {}, new Set(['start']))).toEqual(closed)
  })

  it('opens its run again when it starts again, without another ping, unless the run is over', () => {
    const stored = { jobTypes: ['start' as const] }
    const again = (given: Given) => change(start, given, new Set(['start', 'suspended']))
    expect(again({ stored })).toMatchObject({ event: { kind: 'start', job: { isStored: true } } })
    expect(again({ stored })).not.toHaveProperty('ping')
    const asItWas = [runOf(RUN, { startedAt: at })]
    expect(again({ stored, runs: asItWas })).toMatchObject({ event: { kind: 'start' } })
    expect(again({ stored: { jobTypes: ['start', 'fail'] } })).toBeNull()
    expect(change(start, { stored, runs: asItWas }, new Set(['start']))).toBeNull()
  })
})
