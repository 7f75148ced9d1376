/** Jobs that fail with an exit code of `warnExitCodes`, and containers that report a warning (design, section 4, "Warnings"). */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { JobReport } from '../../../src/checks/jobs/job-report.ts'
import { recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { addSilence, addWebhook, messagesOf } from '../../support/silence.ts'
import { useEach } from '../../support/use.ts'
import { NOW, ping, useFixture } from '../checks/fixture.ts'
import {
  addFollowed,
  aLastRun,
  cronJobOf,
  eventsOf,
  failAt,
  flipsOf,
  pingsOf,
  reportOf,
  startAt,
  stateOf,
  successAt,
} from './fixture.ts'

const t = useFixture()
const record = (...reports: JobReport[]) => recordJobs(t.context, reports)
const UP = 1
const DOWN = 2
const check = useEach(() => addFollowed(t, 'nightly', { agoMs: HOUR, spec: { warnExitCodes: [3] } }))
const body = 'container backup failed (exit code 3)\nmore'
const detail = 'container backup failed (exit code 3)'
const lastRun = aLastRun({ outcome: 'Failed', exitCode: 3, reason: 'Error', message: detail })
const typesOf = async () => (await pingsOf(t, check.key)).map(({ type, source }) => `${source} ${type}`)
const outcomeOf = async () => {
  const { rows } = await t.database.query('select last_outcome as code from check_states where check_key = $1', [
    check.key,
  ])
  return rows
}
const [SUCCESS_CODE, WARN_CODE] = [[{ code: 0 }], [{ code: 4 }]]

describe('a Job that fails with an exit code of its check', () => {
  it('is a warning: in the history, as the last run, and as an event that says why', async () => {
    const report = reportOf(check, [startAt(NOW - MINUTE), failAt(NOW, body)], { lastRun })
    expect(await record(report)).toEqual(['recorded'])
    expect(await record(report)).toEqual(['repeated'])
    expect((await pingsOf(t, check.key)).at(-1)).toMatchObject({ type: 'warn', source: 'job', exitCode: 3, body })
    expect(await stateOf(t, check.key)).toMatchObject({ status: UP, lastPingAt: NOW, runs: null })
    expect(await outcomeOf()).toEqual(WARN_CODE)
    expect((await cronJobOf(t, check.key))!.lastRun).toEqual({ ...lastRun, outcome: 'Warned', runId: report.runId })
    const kubernetes = { ...check.resource, source: { kind: 'CronJob', name: 'nightly' }, run: 'nightly-1' }
    expect(await eventsOf(t, check.key)).toEqual([{ type: 'check.warned', reason: 'warned', detail, kubernetes }])
  })

  it('is not sent in a silence, nor is a failure', async () => {
    await addWebhook(t, t.tenant, ['check.down', 'check.warned', 'check.up'])
    await addSilence(t, t.tenant, NOW)
    const other = await addFollowed(t, 'other', { agoMs: HOUR })
    await record(reportOf(check, [failAt(NOW, body)]), reportOf(other, [failAt(NOW, body)]))
    expect(await messagesOf(t, check)).toEqual(['(check.warned: silenced)'])
    expect(await messagesOf(t, other)).toEqual(['(check.down: silenced)'])
    await record(reportOf(other, [successAt(NOW + MINUTE)]))
    expect(await messagesOf(t, other)).toEqual(['(check.down: silenced)', '(check.up: silenced)'])
  })

  it('says no more in its event than in a flip', async () => {
    await record(reportOf(check, [failAt(NOW, 'x'.repeat(1_025))]))
    expect((await eventsOf(t, check.key))[0]!.detail).toBe('x'.repeat(1_024))
  })

  it('is a failure of a check without that code', async () => {
    const other = await addFollowed(t, 'other', { agoMs: HOUR, spec: { warnExitCodes: [4] } })
    await record(reportOf(other, [failAt(NOW, body)], { lastRun }))
    expect(await stateOf(t, other.key)).toMatchObject({ status: DOWN })
    expect((await cronJobOf(t, other.key))!.lastRun).toMatchObject({ outcome: 'Failed' })
  })
})

describe('a container that reports a warning', () => {
  const START = NOW - 2 * MINUTE

  const ENDS = [successAt(NOW), failAt(NOW, body)]

  it.each(ENDS.flatMap((end) => [true, false].map((isStarted) => [end, isStarted] as const)))(
    'is not overridden by this end of its Job, whose start was recorded before it or not: %j, %s',
    async (end, isStarted) => {
      const report = reportOf(check, [startAt(START), end])
      if (isStarted) await record({ ...report, entries: [startAt(START)] })
      await ping(t.database, check, 'warn', NOW - MINUTE)
      expect(await record(report)).toEqual(['recorded'])
      expect(await record(report)).toEqual(['repeated'])
      expect((await pingsOf(t, check.key)).at(-1)).toMatchObject({ type: 'log', source: 'job', exitCode: null })
      expect(await outcomeOf()).toEqual(WARN_CODE)
      expect(await stateOf(t, check.key)).toMatchObject({ status: UP, runs: null })
      expect((await eventsOf(t, check.key)).map(({ type }) => type)).toEqual(['check.warned'])
    },
  )

  it('is overridden by another failure of its Job', async () => {
    const report = reportOf(check, [startAt(START)])
    await record(report)
    await ping(t.database, check, 'warn', NOW - MINUTE)
    await record({ ...report, entries: [{ type: 'fail', at: NOW, durationMs: null, exitCode: 1, body }] })
    expect(await typesOf()).toEqual(['job start', 'http warn', 'job fail'])
    expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN })
    expect((await eventsOf(t, check.key)).map(({ type }) => type)).toEqual(['check.warned', 'check.down'])
  })

  it('with the uid of its Job is the end of the run', async () => {
    const runId = randomUUID()
    await record(reportOf(check, [startAt(START)], { runId }))
    await ping(t.database, check, 'warn', NOW - MINUTE, { runId })
    expect(await record(reportOf(check, [failAt(NOW, body)], { runId }))).toEqual(['repeated'])
    expect(await record(reportOf(check, [successAt(NOW)], { runId }))).toEqual(['recorded'])
    expect(await typesOf()).toEqual(['job start', 'http warn', 'job log'])
    expect(await stateOf(t, check.key)).toMatchObject({ status: UP, runs: null })
  })
})

it('a container that reports a fail is not overridden by a warning of its Job', async () => {
  const report = reportOf(check, [startAt(NOW - 2 * MINUTE)])
  await record(report)
  await ping(t.database, check, 'fail', NOW - MINUTE)
  expect(await record({ ...report, entries: [failAt(NOW, body)] })).toEqual(['recorded'])
  expect(await typesOf()).toEqual(['job start', 'http fail', 'job log'])
  expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN, runs: null })
})

it('the next success ends the warnings', async () => {
  await record(reportOf(check, [startAt(NOW - 2 * MINUTE), failAt(NOW - MINUTE, body)]))
  await record(reportOf(check, [startAt(NOW - MINUTE), successAt(NOW)]))
  expect(await outcomeOf()).toEqual(SUCCESS_CODE)
  expect((await flipsOf(t, check.key)).map(({ reason }) => reason)).toEqual(['first_success'])
})
