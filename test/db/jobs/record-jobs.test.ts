/** What the Jobs of CronJobs report is recorded once, with the Jobs' own times. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import type { JobReport } from '../../../src/checks/jobs/job-report.ts'
import { MAX_REPORTS, recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import { AT_ONCE } from '../../../src/domain/escalation.ts'
import { lateEvent } from '../../../src/domain/event.ts'
import { newIdBytes } from '../../../src/runtime/ids.ts'
import { saveChanges } from '../../../src/store/checks/change-sets.ts'
import type { Context } from '../../../src/store/context.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import { useEach } from '../../support/use.ts'
import { addPingRow, NOW, openTransaction, ping, pruneAll, useFixture } from '../checks/fixture.ts'
import {
  addFollowed,
  aLastRun,
  cronJobOf,
  deletedAt,
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

describe('a report', () => {
  const check = useEach(() => addFollowed(t, 'nightly', { agoMs: HOUR }))

  it('is stored with the times of its Job and the id of its run', async () => {
    const start = NOW - 10 * MINUTE
    const report = reportOf(check, [startAt(start), successAt(start + 93 * SECOND)])
    expect(await record(report)).toEqual(['recorded'])
    const common = { source: 'job', runId: report.runId, body: null }
    expect(await pingsOf(t, check.key)).toEqual([
      { ...common, type: 'start', at: start, durationMs: null, exitCode: null },
      { ...common, type: 'success', at: start + 93 * SECOND, durationMs: 93_000, exitCode: 0 },
    ])
    expect(await stateOf(t, check.key)).toMatchObject({ status: UP, lastPingAt: start + 93 * SECOND, runs: null })
    expect(await flipsOf(t, check.key)).toEqual([
      { reason: 'first_success', at: start + 93 * SECOND, detail: null, job: 'nightly-1' },
    ])
  })

  it('of a failure says why, in its history, its flip and its event', async () => {
    const body = 'container backup was OOMKilled (exit code 137)\nJob nightly-1 failed: BackoffLimitExceeded'
    expect(await record(reportOf(check, [failAt(NOW - SECOND, body)]))).toEqual(['recorded'])
    expect(await pingsOf(t, check.key)).toMatchObject([{ type: 'fail', exitCode: 3, body }])
    const detail = 'container backup was OOMKilled (exit code 137)'
    expect(await flipsOf(t, check.key)).toEqual([{ reason: 'failed', at: NOW - SECOND, detail, job: 'nightly-1' }])
    const kubernetes = { ...check.resource, source: { kind: 'CronJob', name: 'nightly' }, run: 'nightly-1' }
    expect(await eventsOf(t, check.key)).toEqual([{ type: 'check.down', reason: 'failed', detail, kubernetes }])
  })

  it('of a further failure is a reminder, which says why that run failed', async () => {
    const reminded = await addFollowed(t, 'reminded', { agoMs: 3 * HOUR, spec: { remindOnEachRun: true } })
    const failure = (at: number, job: string, why: string) => reportOf(reminded, [failAt(at, why)], { job })
    await record(failure(NOW - HOUR, 'reminded-1', 'container a failed'))
    await record(failure(NOW - SECOND, 'reminded-2', 'container b failed'))
    expect(await eventsOf(t, reminded.key)).toMatchObject([
      { type: 'check.down', detail: 'container a failed', kubernetes: { run: 'reminded-1' } },
      {
        type: 'check.down',
        detail: 'container b failed',
        kubernetes: expect.not.objectContaining({ run: 'reminded-1' }),
      },
    ])
  })

  it('of a failure says why in a later event that has no flip, if that is about the failure', async () => {
    await record(reportOf(check, [failAt(NOW - SECOND)]))
    const late = lateEvent(NOW, NOW)
    const of = { reason: 'failed', occurred_at: new Date(NOW - SECOND).toISOString() } as const
    const down = { type: 'check.down', data: { ...late.data, ...of } } as const
    const events = [late, down].map((event, index) => {
      const at = NOW + MINUTE + index
      return {
        ...event,
        id: newIdBytes(at),
        key: check.key,
        flipId: null,
        pingId: null,
        at,
        suppressed: null,
        reach: AT_ONCE,
      }
    })
    await saveChanges(t.database, { states: [], pings: [], flips: [], events })
    const detail = 'container backup failed (exit code 3)'
    const named = { ...check.resource, source: { kind: 'CronJob', name: 'nightly' } }
    expect((await eventsOf(t, check.key)).slice(1)).toEqual([
      { type: 'check.late', reason: 'late', detail: null, kubernetes: named },
      { type: 'check.down', reason: 'failed', detail, kubernetes: { ...named, run: 'nightly-1' } },
    ])
  })

  it('of a deleted Job is a log, and closes its run without a completion', async () => {
    const runId = randomUUID()
    await record(reportOf(check, [startAt(NOW - MINUTE)], { runId }))
    expect((await stateOf(t, check.key)).runs).toMatchObject([{ id: runId }])
    expect(await record(reportOf(check, [deletedAt(NOW, 'nightly-1')], { runId }))).toEqual(['recorded'])
    expect(await stateOf(t, check.key)).toMatchObject({ runs: null, lastPingAt: null, pingsTotal: 2 })
    expect((await pingsOf(t, check.key)).at(-1)).toMatchObject({
      type: 'log',
      body: 'Job nightly-1 was deleted before it ended',
    })
  })

  it('of a run that its CronJob replaced takes the check down, and says which Job did', async () => {
    const runId = randomUUID()
    const overran = 'Job nightly-1 had not ended when Job nightly-2 replaced it'
    const report = reportOf(check, [startAt(NOW - MINUTE), deletedAt(NOW, 'nightly-1', overran)], { runId })
    expect(await record(report)).toEqual(['recorded'])
    expect(await record(report)).toEqual(['repeated'])
    expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN, runs: null })
    const flips = (await flipsOf(t, check.key)).filter(({ reason }) => reason === 'overran')
    expect(flips).toMatchObject([{ at: NOW, detail: overran, job: 'nightly-1' }])
    expect((await pingsOf(t, check.key)).at(-1)).toMatchObject({
      type: 'log',
      body: 'Job nightly-1 was deleted before it ended',
    })
  })

  it('of a run that its CronJob replaced after its container had reported the end changes no status', async () => {
    const runId = randomUUID()
    await record(reportOf(check, [startAt(NOW - 2 * MINUTE)], { runId }))
    await ping(t.database, check, 'success', NOW - MINUTE, { runId })
    await record(reportOf(check, [deletedAt(NOW, 'nightly-1', 'x')], { runId }))
    expect((await flipsOf(t, check.key)).filter(({ reason }) => reason === 'overran')).toEqual([])
  })

  it('of a success that only the CronJob knows has no run id, and is recorded once', async () => {
    const report = reportOf(check, [successAt(NOW - MINUTE)], { runId: null, job: null })
    expect(await record(report)).toEqual(['recorded'])
    expect(await record(report)).toEqual(['repeated'])
    expect(await pingsOf(t, check.key)).toMatchObject([{ type: 'success', runId: null, at: NOW - MINUTE }])
    // A ping of the container at the same time is no report of the Job.
    await addPingRow(t, check.key, NOW - SECOND, { type: 'success' })
    const next = reportOf(check, [successAt(NOW - SECOND)], { runId: null, job: null })
    expect(await record(next)).toEqual(['recorded'])
    // A Job whose end is recorded is the same success.
    await record(reportOf(check, [successAt(NOW)]))
    expect(await record(reportOf(check, [successAt(NOW)], { runId: null, job: null }))).toEqual(['repeated'])
  })

  it.each([
    // The one way knows the time of the last run, the other that of a success which is not of the last run.
    ['of the last run', true],
    ['of an older run', false],
  ])('of a success %s is recorded once where the clock of the cluster is ahead', async (_what, isLast) => {
    t.clock.time = NOW + (isLast ? 0 : 321)
    const at = NOW + 2 * SECOND
    const lastRun = aLastRun({ outcome: 'Succeeded', completionTime: new Date(at).toISOString() })
    expect(await record(reportOf(check, [successAt(at)], { lastRun: isLast ? lastRun : null }))).toEqual(['recorded'])
    const alone = (of: number) => reportOf(check, [successAt(of)], { runId: null, job: null })
    t.clock.time = NOW + 10 * SECOND
    // The Job is removed, the controller starts, and the CronJob has its lastSuccessfulTime.
    expect(await record(alone(at))).toEqual(['repeated'])
    expect(await pingsOf(t, check.key)).toHaveLength(1)
    expect(await record(alone(at + (isLast ? SECOND : 60 * SECOND)))).toEqual(['recorded'])
  })

  it('of a success that only the CronJob knows is recorded once where the clock of the cluster is ahead', async () => {
    t.clock.time = NOW + 321
    const report = reportOf(check, [successAt(NOW + 2 * SECOND)], { runId: null, job: null })
    expect(await record(report)).toEqual(['recorded'])
    t.clock.time = NOW + MINUTE
    expect(await record(report)).toEqual(['repeated'])
  })

  it('of a resource without a check that follows a source is unknown', async () => {
    const pinged = await addFollowed(t, 'pinged', { spec: { jobArea: null } })
    const elsewhere = { ...check, resource: { ...check.resource, cluster: 'other' } }
    const reports = [elsewhere, pinged, { ...check, resource: { ...check.resource, name: 'gone' } }, check].map((one) =>
      reportOf(one, [startAt(NOW)]),
    )
    expect(await record(...reports)).toEqual(['unknown', 'unknown', 'unknown', 'recorded'])
    expect(await pingsOf(t, pinged.key)).toEqual([])
  })

  it('has the order of its Job where times are equal: a start comes before its end', async () => {
    await record(reportOf(check, [startAt(NOW), successAt(NOW)]))
    expect((await pingsOf(t, check.key)).map(({ type }) => type)).toEqual(['start', 'success'])
  })

  it('is recorded in the order of what happened, beside that of a run that overlaps', async () => {
    const ago = (minutes: number) => NOW - minutes * MINUTE
    await record(reportOf(check, [failAt(ago(40))]))
    const long = reportOf(check, [startAt(ago(30)), successAt(ago(5))], { job: 'long' })
    const short = reportOf(check, [startAt(ago(25)), successAt(ago(20))], { job: 'short' })
    const broken = reportOf(check, [startAt(ago(20)), failAt(ago(15))], { job: 'broken' })
    expect(await record(long, broken, short)).toEqual(['recorded', 'recorded', 'recorded'])
    const flips = (await flipsOf(t, check.key)).map(({ reason, at, job }) => ({ reason, at, job }))
    expect(flips.slice(1)).toEqual([
      { reason: 'recovered', at: ago(20), job: 'short' },
      { reason: 'failed', at: ago(15), job: 'broken' },
      { reason: 'recovered', at: ago(5), job: 'long' },
    ])
    expect(await record(short, long, broken)).toEqual(['repeated', 'repeated', 'repeated'])
  })

  it('that comes late is history: it overrides no newer completion', async () => {
    const old = await addFollowed(t, 'old', { agoMs: 3 * HOUR })
    await record(reportOf(old, [startAt(NOW - MINUTE), successAt(NOW)]))
    await record(reportOf(old, [startAt(NOW - HOUR), failAt(NOW - HOUR + MINUTE)]))
    expect(await stateOf(t, old.key)).toMatchObject({ status: UP, lastPingAt: NOW, pingsTotal: 4 })
    expect((await pingsOf(t, old.key)).map(({ type }) => type)).toEqual(['start', 'fail', 'start', 'success'])
  })

  it('of a time that has not come counts as now: the clock of the cluster is ahead', async () => {
    await record(reportOf(check, [startAt(NOW - MINUTE), successAt(NOW + HOUR)]))
    expect(await stateOf(t, check.key)).toMatchObject({ status: UP, lastPingAt: NOW })
  })

  it('keeps the first bytes of a long body, in whole characters, and what PostgreSQL can store of its first line', async () => {
    await record(reportOf(check, [failAt(NOW, `\0${'€'.repeat(5_000)}`)]))
    expect((await pingsOf(t, check.key))[0]!.body).toBe(`\0${'€'.repeat(3_413)}`)
    expect((await flipsOf(t, check.key))[0]!.detail).toBe('€'.repeat(1_024))
  })
})

describe('once', () => {
  const check = useEach(() => addFollowed(t, 'nightly', { agoMs: HOUR }))

  it('a report that is repeated changes nothing', async () => {
    const report = reportOf(check, [startAt(NOW - MINUTE), failAt(NOW)], {
      lastRun: aLastRun({ outcome: 'Failed', completionTime: new Date(NOW).toISOString() }),
    })
    expect(await record(report)).toEqual(['recorded'])
    const versionOf = async () => (await t.database.query('select xmin::text from cron_jobs')).rows
    const before = [await stateOf(t, check.key), await versionOf()]
    expect(await record(report, report)).toEqual(['repeated', 'repeated'])
    expect([await stateOf(t, check.key), await versionOf()]).toEqual(before)
    expect(await pingsOf(t, check.key)).toHaveLength(2)
  })

  it('a report that stands twice in a group is recorded once', async () => {
    const report = reportOf(check, [startAt(NOW - MINUTE), successAt(NOW)])
    let transactions = 0
    const { database } = t.context
    const counting: Context = {
      ...t.context,
      database: {
        ...database,
        transaction(work) {
          transactions += 1
          return database.transaction(work)
        },
      },
    }
    expect(await recordJobs(counting, [report, report])).toEqual(['recorded', 'repeated'])
    expect(await pingsOf(t, check.key)).toHaveLength(2)
    expect(transactions).toBe(1)
  })

  it('a run has one end, whichever came first', async () => {
    const report = reportOf(check, [deletedAt(NOW - MINUTE, 'nightly-1')])
    await record(report)
    expect(await record({ ...report, entries: [successAt(NOW)] })).toEqual(['repeated'])
    expect(await pingsOf(t, check.key)).toHaveLength(1)
  })

  it('a start that comes after its end does not open the run again', async () => {
    const report = reportOf(check, [successAt(NOW)])
    await record(report)
    expect(await record({ ...report, entries: [startAt(NOW - MINUTE)] })).toEqual(['recorded'])
    expect(await stateOf(t, check.key)).toMatchObject({ status: UP, runs: null })
  })

  it('two controllers at once record each entry once', async () => {
    const checks = [await addFollowed(t, 'a', { agoMs: HOUR }), await addFollowed(t, 'b', { agoMs: HOUR })]
    const reports = checks.flatMap((check) =>
      [5, 3, 1].map((minutes) =>
        reportOf(check, [startAt(NOW - minutes * MINUTE), failAt(NOW - (minutes - 1) * MINUTE)]),
      ),
    )
    // In another order, so that they would wait for each other in a circle without an order of locks.
    const [one, other] = await Promise.all([
      recordJobs(t.context, reports),
      recordJobs(t.context, reports.toReversed()),
    ])
    for (const [index, outcome] of other.toReversed().entries())
      expect([one[index], outcome].sort()).toEqual(['recorded', 'repeated'])
    for (const { key } of checks) {
      expect(await pingsOf(t, key)).toHaveLength(6)
      expect(await eventsOf(t, key)).toHaveLength(1)
    }
  })

  it('a controller that is killed between two statements leaves nothing, or all of it', async () => {
    const report = reportOf(check, [startAt(NOW - MINUTE), failAt(NOW)], { lastRun: aLastRun() })
    let killedAt = 0
    for (let isDone = false; !isDone; killedAt += 1) {
      const killed = withKill(t.context, killedAt)
      isDone = await recordJobs(killed, [report]).then(
        () => true,
        () => false,
      )
      if (!isDone) expect(await pingsOf(t, check.key)).toEqual([])
    }
    expect(killedAt).toBeGreaterThan(5)
    // It was killed after its commit: the next leader reports it again.
    expect(await record(report)).toEqual(['repeated'])
    expect(await pingsOf(t, check.key)).toHaveLength(2)
    expect(await eventsOf(t, check.key)).toHaveLength(1)
  })

  it('what pruning has deleted is not recorded again, and a late entry of a check that was not pruned is', async () => {
    const old = await addFollowed(t, 'old', { agoMs: 40 * DAY })
    const reports = [30, 20, 10, 5, 1].map((days) => {
      const at = NOW - days * DAY
      return reportOf(old, [startAt(at), successAt(at + MINUTE)])
    })
    await record(...reports.slice(1))
    expect(await record(reports[0]!)).toEqual(['recorded'])
    await pruneAll(t, { maxPings: 4 })
    expect(await pingsOf(t, old.key)).toHaveLength(4)
    expect(await record(...reports)).toEqual(Array(5).fill('repeated'))
    expect(await pingsOf(t, old.key)).toHaveLength(4)
    expect(await record(reportOf(old, [successAt(NOW)]))).toEqual(['recorded'])
  })

  it('what pruning has deleted by its age is not recorded again, though the newest completion stays', async () => {
    const check = await addFollowed(t, 'yearly', { agoMs: 400 * DAY })
    const reports = [300, 200].map((days) => {
      const at = NOW - days * DAY
      return reportOf(check, [startAt(at), successAt(at + MINUTE)])
    })
    await record(...reports)
    await pruneAll(t, { maxDays: 90 })
    expect(await pingsOf(t, check.key)).toHaveLength(2)
    expect(await record(...reports)).toEqual(['repeated', 'repeated'])
    expect(await record(reportOf(check, [successAt(NOW - 100 * DAY)]))).toEqual(['recorded'])
  })
})

describe("beside the container's own pings", () => {
  it('a success of the Job does not override a fail of the run: it is a log, once', async () => {
    const check = await addFollowed(t, 'nightly', { agoMs: HOUR })
    const report = reportOf(check, [startAt(NOW - 2 * MINUTE)])
    await record(report)
    await ping(t.database, check, 'fail', NOW - MINUTE)
    const end = { ...report, entries: [successAt(NOW)] }
    expect(await record(end)).toEqual(['recorded'])
    expect(await record(end)).toEqual(['repeated'])
    expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN, runs: null })
    expect((await pingsOf(t, check.key)).at(-1)).toMatchObject({ type: 'log', source: 'job', exitCode: null })
  })

  describe('a fail that came before the start of its Job was recorded', () => {
    const START = NOW - 2 * MINUTE
    const FAIL = NOW - MINUTE
    const recordAt = async (at: number, ...reports: JobReport[]) => {
      t.clock.time = at
      await record(...reports)
      t.clock.time = NOW
    }
    /** Up since an earlier run. */
    const upTo = async (name: string) => {
      const check = await addFollowed(t, name, { agoMs: HOUR })
      const [from, until] = [START - 30 * MINUTE, START - 29 * MINUTE]
      await recordAt(until, reportOf(check, [startAt(from), successAt(until)]))
      return check
    }
    const check = useEach(() => upTo('nightly'))
    const flipReasons = async (key: number) => (await flipsOf(t, key)).map(({ reason }) => reason)

    it.each([
      ['together with its end', 1],
      ['before its end', 2],
    ])('makes the success of the Job a log: its start is recorded %s', async (_, batches) => {
      await ping(t.database, check, 'fail', FAIL)
      const report = reportOf(check, [startAt(START), successAt(NOW)])
      if (batches === 2) await record({ ...report, entries: [startAt(START)] })
      expect(await record(report)).toEqual(['recorded'])
      expect(await record(report)).toEqual(['repeated'])
      expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN, lastPingAt: FAIL, runs: null, pingsTotal: 5 })
      expect((await pingsOf(t, check.key)).slice(2)).toMatchObject([
        { type: 'start', source: 'job' },
        { type: 'fail', source: 'http' },
        { type: 'log', source: 'job', runId: report.runId },
      ])
      expect(await flipReasons(check.key)).toEqual(['first_success', 'failed'])
      // The next run recovers.
      t.clock.time = NOW + HOUR
      await record(reportOf(check, [startAt(NOW + 59 * MINUTE), successAt(NOW + HOUR)]))
      expect(await stateOf(t, check.key)).toMatchObject({ status: UP })
    })

    it('in the second in which the Job ended', async () => {
      await ping(t.database, check, 'fail', FAIL + 700)
      await record(reportOf(check, [startAt(FAIL), successAt(FAIL)]))
      expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN })
    })

    it('with a run id of the container', async () => {
      await ping(t.database, check, 'fail', FAIL, { runId: randomUUID() })
      await record(reportOf(check, [startAt(START), successAt(NOW)]))
      expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN })
    })

    it('beside a log with the id of the run is no conflict', async () => {
      const runId = randomUUID()
      await ping(t.database, check, 'log', FAIL, { runId })
      await ping(t.database, check, 'fail', FAIL + 1)
      expect(await record(reportOf(check, [startAt(START), successAt(NOW)], { runId }))).toEqual(['recorded'])
      expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN, runs: null })
    })

    it('is overridden by a success of the container after it, also after the start', async () => {
      const [early, late] = [await upTo('early'), await upTo('late')]
      await ping(t.database, early, 'fail', FAIL)
      await ping(t.database, early, 'success', FAIL + 1)
      await ping(t.database, early, 'fail', NOW - 1)
      await ping(t.database, early, 'success', NOW)
      await record(reportOf(early, [startAt(START), successAt(NOW)]))
      await ping(t.database, late, 'fail', FAIL)
      const report = reportOf(late, [startAt(START)])
      await record(report)
      await ping(t.database, late, 'success', NOW)
      await record({ ...report, entries: [startAt(START), successAt(NOW)] })
      for (const { key } of [early, late]) {
        expect(await stateOf(t, key)).toMatchObject({ status: UP })
        expect((await pingsOf(t, key)).filter(({ type }) => type === 'log')).toEqual([])
      }
    })

    it('does not concern a run that ended before it, or began after it', async () => {
      const [before, after] = [await upTo('before'), await upTo('after')]
      await ping(t.database, before, 'fail', FAIL)
      await record(reportOf(before, [startAt(START), successAt(FAIL - SECOND)]))
      expect((await pingsOf(t, before.key)).filter(({ type }) => type === 'log')).toEqual([])
      await ping(t.database, after, 'fail', FAIL)
      await record(reportOf(after, [startAt(FAIL + SECOND), successAt(NOW)]))
      expect(await stateOf(t, after.key)).toMatchObject({ status: UP })
    })

    it.each(['is open', 'is reported with it', 'has ended', 'is open, and ends with it'])(
      'marks no run while another one is about as likely: that %s',
      async (other) => {
        const first = reportOf(check, [startAt(START - MINUTE)], { job: 'nightly-0' })
        const ended = { ...first, entries: [...first.entries, failAt(NOW - 30 * SECOND)] }
        const second = reportOf(check, [startAt(START), successAt(NOW)])
        if (other !== 'is reported with it') await recordAt(START, first)
        await ping(t.database, check, 'fail', FAIL)
        if (other === 'has ended') await record(ended)
        await record(
          ...(other === 'is reported with it' || other === 'is open, and ends with it' ? [ended] : []),
          second,
        )
        expect(await stateOf(t, check.key)).toMatchObject({ status: UP })
      },
    )

    it('with the id of another Job concerns that one', async () => {
      const first = reportOf(check, [startAt(START), successAt(START + SECOND)])
      await ping(t.database, check, 'fail', FAIL, { runId: first.runId! })
      await record(first, reportOf(check, [startAt(START + 2 * SECOND), successAt(NOW)]))
      expect(await stateOf(t, check.key)).toMatchObject({ status: UP })
    })
  })

  it.each(['start', 'success', 'fail', 'log'] as const)(
    'a %s with the uid of the Job as its run id is no conflict',
    async (type) => {
      const check = await addFollowed(t, 'nightly', { agoMs: HOUR })
      const runId = randomUUID()
      await ping(t.database, check, type, NOW - MINUTE, { runId })
      for (const end of [successAt(NOW), failAt(NOW), deletedAt(NOW, 'nightly-1')]) {
        const outcomes = await record(reportOf(check, [startAt(NOW - 2 * MINUTE), end], { runId }))
        expect(outcomes).not.toContain('failed')
        expect((await stateOf(t, check.key)).runs).toBeNull()
      }
    },
  )

  it('two runs that each sent a fail and a log of its own end as they are', async () => {
    const check = await addFollowed(t, 'nightly', { agoMs: HOUR })
    const runId = randomUUID()
    await record(reportOf(check, [startAt(NOW - 2 * MINUTE)], { runId }))
    await ping(t.database, check, 'log', NOW - MINUTE, { runId })
    await ping(t.database, check, 'fail', NOW - MINUTE)
    expect(await record(reportOf(check, [successAt(NOW)], { runId }))).toEqual(['recorded'])
    expect(await stateOf(t, check.key)).toMatchObject({ status: DOWN, runs: null })
  })
})

describe('the last run', () => {
  const check = useEach(() => addFollowed(t, 'nightly', { agoMs: HOUR }))

  const iso = (at: number) => new Date(at).toISOString()
  const running = aLastRun({ startTime: iso(NOW - MINUTE) })
  const ended = {
    ...running,
    completionTime: iso(NOW),
    outcome: 'Failed',
    exitCode: 3,
    reason: 'Error',
    message: 'container backup failed (exit code 3)',
  } as const

  it('is that of the newest report, with the names of the Jobs of the open runs', async () => {
    const report = reportOf(check, [startAt(NOW - MINUTE)], { lastRun: running })
    await record(report)
    expect(await cronJobOf(t, check.key)).toEqual({
      name: 'nightly',
      lastRun: { ...running, runId: report.runId },
      jobs: { [report.runId!]: 'nightly-1' },
    })
    await record({ ...report, entries: [failAt(NOW)], lastRun: ended })
    const stored = { ...ended, runId: report.runId }
    expect(await cronJobOf(t, check.key)).toEqual({ name: 'nightly', lastRun: stored, jobs: {} })
  })

  it('is not overridden by a late report: of the same run, and of an older one', async () => {
    const report = reportOf(check, [], { lastRun: ended })
    expect(await record(report)).toEqual(['repeated'])
    await record({ ...report, lastRun: running })
    const older = { ...ended, job: 'nightly-0', startTime: iso(NOW - HOUR) }
    await record({ ...report, runId: randomUUID(), lastRun: older })
    expect((await cronJobOf(t, check.key))!.lastRun).toMatchObject(ended)
    const next = reportOf(check, [], { lastRun: { ...running, job: 'nightly-2', startTime: iso(NOW) } })
    await record(next)
    expect((await cronJobOf(t, check.key))!.lastRun).toMatchObject(next.lastRun!)
  })

  it('is that of the Job that was made again under its name', async () => {
    const [first, again] = [reportOf(check, [], { lastRun: ended }), reportOf(check, [])]
    await record(first)
    const lastRun = { ...running, startTime: iso(NOW) }
    await record({ ...again, lastRun })
    expect((await cronJobOf(t, check.key))!.lastRun).toEqual({ ...lastRun, runId: again.runId })
  })
})

describe('a report that cannot be stored', () => {
  it('fails alone', async () => {
    const checks = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => addFollowed(t, name, { agoMs: HOUR })))
    await t.database.query(`update check_states set schedule = 'never' where check_key = $1`, [checks[1]!.key])
    const reports = checks.map((check) => reportOf(check, [successAt(NOW)]))
    reports[3] = { ...reports[3]!, runId: 'not a uid' }
    const failed: string[] = []
    const outcomes = await recordJobs(t.context, reports, ({ source }, error) => failed.push(`${source}: ${error}`))
    expect(outcomes).toEqual(['recorded', 'failed', 'recorded', 'failed', 'recorded'])
    expect(failed).toEqual([expect.stringMatching(/^b: .*cannot be read/), expect.stringMatching(/^d: /)])
  })

  it('because another transaction holds its check is held alone, and is recorded later', async () => {
    const [held, free] = [await addFollowed(t, 'held', { agoMs: HOUR }), await addFollowed(t, 'free', { agoMs: HOUR })]
    const reports = [reportOf(held, [successAt(NOW)]), reportOf(free, [successAt(NOW)])]
    const holding = await openTransaction(t, (tx) =>
      tx.query('select from check_states where check_key = $1 for update', [held.key]),
    )
    const failed: JobReport[] = []
    const outcomes = await recordJobs(inHaste(t.context), reports, (report) => failed.push(report))
    expect([outcomes, failed]).toEqual([['held', 'recorded'], []])
    // One that is known to be held is not waited for: the transaction would be tried twice.
    const tries = vi.spyOn(t.context.database, 'transaction')
    expect(await recordJobs(t.context, reports, undefined, 'skip locked')).toEqual(['held', 'repeated'])
    expect(tries).toHaveBeenCalledTimes(1)
    tries.mockRestore()
    await holding.rollback()
    expect(await record(...reports)).toEqual(['recorded', 'repeated'])
  })

  it('and another one that PostgreSQL rejects, do not change the order in a check that is held for a moment', async () => {
    const [held, other] = [
      await addFollowed(t, 'held', { agoMs: HOUR }),
      await addFollowed(t, 'other', { agoMs: HOUR }),
    ]
    const first = reportOf(held, [successAt(NOW - SECOND)])
    const rejected = { ...reportOf(other, [successAt(NOW)]), runId: 'not a uid' }
    const reports = [first, rejected, reportOf(held, [successAt(NOW)]), reportOf(other, [successAt(NOW)])]
    const holding = await openTransaction(t, (tx) =>
      tx.query('select from check_states where check_key = $1 for update', [held.key]),
    )
    const { transaction } = t.context.database
    let calls = 0
    const database: typeof t.context.database = {
      ...t.context.database,
      async transaction(work) {
        // All, the first half, and each of its reports.
        calls += 1
        if (calls === 5) await holding.rollback()
        return transaction(work)
      },
    }
    const outcomes = await recordJobs({ ...t.context, database }, reports, undefined, 'skip locked')
    expect([outcomes, calls]).toEqual([['held', 'failed', 'held', 'recorded'], 5])
  })
})

it('of what ended before the check was made, the newest alone counts', async () => {
  const check = await addFollowed(t, 'nightly')
  const count = MAX_REPORTS
  const reports = Array.from({ length: count }, (_, index) => {
    const at = NOW - (count - index) * SECOND
    return reportOf(check, [index === count - 1 ? failAt(at) : successAt(at)])
  })
  await record(...reports)
  expect(await stateOf(t, check.key)).toMatchObject({ status: 0, pingsTotal: count })
  expect(await eventsOf(t, check.key)).toEqual([])
})

it('hundreds of new checks that become up by their first success send nothing', async () => {
  const reports: JobReport[] = []
  for (let index = 0; index < MAX_REPORTS; index += 1) {
    const check = await addFollowed(t, `job-${index}`)
    // Of half of them the success is older than the check, as where a label finds Jobs that have ended.
    reports.push(reportOf(check, [successAt(index % 2 === 0 ? NOW - MINUTE : NOW)]))
  }
  expect(new Set(await record(...reports))).toEqual(new Set(['recorded']))
  const { rows } = await t.database.query(
    'select status, count(*)::int as count, (select count(*)::int from events) as events from check_states group by status',
  )
  expect(rows).toEqual([{ status: UP, count: reports.length, events: 0 }])
})

it('what ended before the check was made counts without regard to what ended since', async () => {
  const check = await addFollowed(t, 'nightly')
  t.clock.time += MINUTE
  const reports = [reportOf(check, [successAt(NOW - MINUTE)]), reportOf(check, [failAt(NOW + SECOND)])]
  await record(...reports)
  expect((await flipsOf(t, check.key)).map(({ reason }) => reason)).toEqual(['first_success', 'failed'])
})

/** A context whose connection breaks at the statement with this number. */
function withKill(context: Context, at: number): Context {
  let count = 0
  const guard = () => {
    count += 1
    if (count > at) throw Object.assign(new Error('killed'), { code: 'ECONNRESET' })
  }
  const broken = (tx: Queryable): Queryable => ({
    async query(...given) {
      guard()
      return tx.query(...given)
    },
    async queryColumns(statement) {
      guard()
      return tx.queryColumns(statement)
    },
  })
  const { database } = context
  return {
    ...context,
    database: {
      ...database,
      transaction: (work) =>
        database.transaction(async (tx) => {
          const result = await work(broken(tx))
          // Before its commit.
          guard()
          return result
        }),
    },
  }
}

/** A context that waits for locks for a moment only. */
function inHaste(context: Context): Context {
  const { database } = context
  return {
    ...context,
    database: {
      ...database,
      transaction: (work) =>
        database.transaction(async (tx) => {
          await tx.query("set local lock_timeout = '20ms'")
          return work(tx)
        }),
    },
  }
}
