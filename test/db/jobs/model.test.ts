/** What is stored of Jobs, against an independent model: reported in any order, again and again, by two controllers. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import type { JobReport } from '../../../src/checks/jobs/job-report.ts'
import { recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import { type FlipReason, PING_TYPES, type PingType } from '../../../src/domain/check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StoredCheck } from '../../../src/store/checks/checks.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { anyJobs, entriesOf, historyOf, type ModelCheck, type ModelJob } from '../../support/job-model.ts'
import { cronSpec } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from '../operator/fixture.ts'

const t = useOperatorFixture()

/** The evaluator goes by the database's clock, so all of this lies in the past. */
const EVERY_MS = 10 * MINUTE
const FROM = Math.floor((Date.now() - 4 * HOUR) / EVERY_MS) * EVERY_MS
const CHECK: ModelCheck = {
  createdAt: FROM + 17 * MINUTE + 500,
  everyMs: EVERY_MS,
  graceMs: 3 * MINUTE,
  maxRuntimeMs: 14 * MINUTE,
}
const END = FROM + 3 * HOUR

async function declare(): Promise<StoredCheck> {
  await t.reset()
  t.clock.time = CHECK.createdAt
  const { check } = await t.declare({
    spec: cronSpec('*/10 * * * *', {
      graceSeconds: CHECK.graceMs / 1_000,
      maxRuntimeSeconds: CHECK.maxRuntimeMs / 1_000,
      jobArea: RESOURCE.cluster,
    }),
  })
  t.clock.time = systemClock.now()
  return check
}

/** All that the Job tells at `now`. */
function reportOf(job: ModelJob, now = END): JobReport {
  const durationMs = job.startedAt === null || job.end === null ? null : job.end.at - job.startedAt
  const entries = entriesOf([job])
    .filter(({ at }) => at <= now)
    .map(({ type, at }): JobReport['entries'][number] => {
      if (type === 'start') return { type, at, slotAt: job.slotAt }
      if (type === 'fail') return { type, at, durationMs, exitCode: 1, body: `Job ${job.uid} failed` }
      return type === 'log' ? { type, at, body: 'it was deleted' } : { type, at, durationMs }
    })
  return { resource: RESOURCE, source: 'nightly', runId: job.uid, job: `nightly-${job.uid}`, entries, lastRun: null }
}

async function see(until: number): Promise<void> {
  await t.database.query(
    `insert into seen_areas (area, cluster, seen_at) values ($1, split_part($1, '/', 1), to_timestamp($2::float8 / 1000))
      on conflict (area) do update set seen_at = excluded.seen_at`,
    [RESOURCE.cluster, until],
  )
}

async function evaluate(): Promise<void> {
  await t.database.query('update service_beat set beat_at = now()')
  const { failed } = await expireOverdue({ database: t.database, now: systemClock.now }, 50)
  expect(failed).toEqual([])
}

interface PingRow {
  readonly type: number
  readonly runId: string
  readonly at: number
  readonly durationMs: number | null
  readonly source: number
}

async function pingsOf(key: number) {
  const { rows } = await t.database.query<PingRow>(
    'select type, run_id as "runId", created_at as at, duration_ms as "durationMs", source from pings where check_key = $1',
    [key],
  )
  return inOneOrder(
    rows.map(({ type, runId, at, durationMs, source }) => {
      expect(source).toBe(1)
      return { type: PING_TYPES[type]!, runId, at: Math.floor(at), durationMs }
    }),
  )
}

async function flipsOf(key: number) {
  const { rows } = await t.database.query<{ at: number; reason: FlipReason }>(
    "select at, reason from flips where check_key = $1 and reason <> 'created' order by id",
    [key],
  )
  return rows
}

interface StateRow {
  readonly status: number
  readonly lastPingAt: number | null
  readonly lastStartAt: number | null
  readonly pingsTotal: number
}

async function stateOf(key: number): Promise<StateRow> {
  const { rows } = await t.database.query<StateRow>(
    `select status, last_ping_at as "lastPingAt", last_start_at as "lastStartAt", pings_total as "pingsTotal"
      from check_states where check_key = $1`,
    [key],
  )
  return rows[0]!
}

const STATUS = { new: 0, up: 1, down: 2 } as const
const inOneOrder = <T>(list: readonly T[]): T[] =>
  [...list].sort((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other)))

function expectedPings(jobs: readonly ModelJob[]) {
  return inOneOrder(
    entriesOf(jobs).map(({ job, type, at }) => {
      const isEnd = type === 'success' || type === 'fail'
      const durationMs = !isEnd || job.startedAt === null ? null : job.end!.at - job.startedAt
      return { type: type satisfies PingType, runId: job.uid, at, durationMs }
    }),
  )
}

/** A Job whose container sends pings of its own, without a run id. */
interface PingingJob extends ModelJob {
  readonly startedAt: number
  readonly end: { readonly kind: 'success' | 'fail'; readonly at: number }
  readonly pings: readonly { readonly kind: 'success' | 'fail'; readonly at: number }[]
}

/** One after the other. */
const pingingJobs: fc.Arbitrary<PingingJob[]> = fc
  .array(
    fc.record({
      startsAfterMs: fc.integer({ min: 0, max: 60 }).map((count) => count * 1_000),
      lastsMs: fc.integer({ min: 0, max: 400 }).map((count) => count * 1_000),
      kind: fc.constantFrom('success' as const, 'success' as const, 'fail' as const),
      /** Where in the run; the last second is cut off from the time of its end. */
      pings: fc.uniqueArray(
        fc.record({ kind: fc.constantFrom('success', 'fail'), part: fc.double({ min: 0.01, max: 1, noNaN: true }) }),
        {
          maxLength: 3,
          selector: ({ part }) => Math.round(part * 100),
        },
      ),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((jobs) =>
    jobs.map(({ startsAfterMs, lastsMs, kind, pings }, index): PingingJob => {
      const slotAt = FROM + (index + 3) * EVERY_MS
      const startedAt = slotAt + startsAfterMs
      return {
        uid: `0190b8a0-0000-7000-8000-${String(index).padStart(12, '0')}`,
        slotAt,
        startedAt,
        end: { kind, at: startedAt + lastsMs },
        pings: pings
          .map((ping) => ({
            kind: ping.kind as 'success' | 'fail',
            at: startedAt + Math.round(ping.part * (lastsMs + 900)),
          }))
          .sort((one, other) => one.at - other.at),
      }
    }),
  )

/**
 * What the history has of a Job and its container. While the end of a Job is not recorded, it is not known that a ping is of the next one: it is taken
 * for its own, and more than its own is never forgotten.
 */
function entriesWithPings(job: PingingJob, all: readonly PingingJob[], seen: readonly number[]) {
  const { startedAt, end, pings } = job
  const recorded = (at: number) => Math.min(...seen.filter((now) => now >= at))
  const [from, until] = [recorded(startedAt), recorded(end.at)]
  const taken = all.flatMap((other) => other.pings).filter(({ at }) => at > from && at < until)
  const hasFailed = [pings.at(-1), taken.at(-1)].some((last) => last?.kind === 'fail')
  return [
    { type: 'start', at: startedAt, source: 1 },
    ...pings.map(({ kind, at }) => ({ type: kind, at, source: 0 })),
    { type: end.kind === 'success' && hasFailed ? 'log' : end.kind, at: end.at, source: 1 },
  ]
}

describe('a check that follows a CronJob', () => {
  it('has what its containers report beside the Jobs, whether these are recorded before, in between or after', async () => {
    const seenAfter = fc.uniqueArray(fc.integer({ min: 30, max: 120 }), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(pingingJobs, seenAfter, async (jobs, minutes) => {
        const check = await declare()
        const pings = jobs.flatMap((job) => job.pings.map((ping) => ({ now: ping.at, ping })))
        const seen = [...minutes.map((minute) => FROM + minute * MINUTE), END]
        const looks = seen.map((now) => ({ now, ping: null }))
        for (const { now, ping } of [...looks, ...pings].sort((one, other) => one.now - other.now)) {
          t.clock.time = now
          if (ping === null) {
            const reports = jobs.map((job) => reportOf(job, now)).filter(({ entries }) => entries.length > 0)
            await recordJobs(t.context, reports)
          } else expect(await t.pinged(check, ping.kind, now)).toBe('applied')
        }
        const expected = jobs.flatMap((job) => entriesWithPings(job, jobs, seen))
        const { rows } = await t.database.query<PingRow>(
          'select type, created_at as at, source from pings where check_key = $1',
          [check.key],
        )
        const stored = rows.map(({ type, at, source }) => ({ type: PING_TYPES[type]!, at: Math.floor(at), source }))
        expect(inOneOrder(stored)).toEqual(inOneOrder(expected))
        const last = expected.findLast(({ type }) => type === 'success' || type === 'fail')!
        const { status, pingsTotal } = await stateOf(check.key)
        expect({ status, pingsTotal }).toEqual({
          status: STATUS[last.type === 'fail' ? 'down' : 'up'],
          pingsTotal: expected.length,
        })
      }),
      { numRuns: 25, endOnFailure: true },
    )
  })

  it('has the history that follows from its Jobs, however often they are reported', async () => {
    const blind = fc.record({ from: fc.integer({ min: 20, max: 90 }), minutes: fc.integer({ min: 0, max: 60 }) })
    await fc.assert(
      fc.asyncProperty(anyJobs(CHECK, FROM), blind, async (jobs, { from, minutes }) => {
        const check = await declare()
        const seen = [CHECK.createdAt]
        for (let minute = 18; minute <= 180; minute += 4)
          if (minute < from || minute >= from + minutes) seen.push(FROM + minute * MINUTE)
        for (const now of seen) {
          // A list as after a restart: all that there is, again, in any order.
          const reports = jobs.map((job) => reportOf(job, now)).filter(({ entries }) => entries.length > 0)
          await recordJobs(t.context, reports)
          await see(now)
          await evaluate()
        }
        const { status, lastPingAt, lastStartAt, flips } = historyOf(CHECK, jobs, seen)
        expect(await flipsOf(check.key)).toEqual(flips.map(({ at, reason }) => ({ at, reason })))
        const pingsTotal = entriesOf(jobs).length
        expect(await stateOf(check.key)).toEqual({ status: STATUS[status], lastPingAt, lastStartAt, pingsTotal })
        expect(await pingsOf(check.key)).toEqual(expectedPings(jobs))
      }),
      { numRuns: 3, endOnFailure: true },
    )
  })

  it('has each entry once, in whatever order and by however many controllers it is reported', async () => {
    const reported = anyJobs(CHECK, FROM).chain((jobs) => {
      const report = fc.record({ job: fc.constantFrom(...jobs), until: fc.integer({ min: 0, max: 180 }) })
      return fc.tuple(fc.constant(jobs), fc.array(fc.array(report, { maxLength: 6 }), { minLength: 2, maxLength: 8 }))
    })
    await fc.assert(
      fc.asyncProperty(reported, async ([jobs, groups]) => {
        const check = await declare()
        const reports = groups.map((group) => group.map(({ job, until }) => reportOf(job, FROM + until * MINUTE)))
        for (let at = 0; at < reports.length; at += 2) {
          const pair = reports.slice(at, at + 2)
          await Promise.all([...pair.map((group) => recordJobs(t.context, group)), evaluate()])
        }
        // Two controllers find all Jobs in the end.
        const all = jobs.map((job) => reportOf(job))
        await Promise.all([recordJobs(t.context, all), recordJobs(t.context, [...all].reverse())])

        const entries = entriesOf(jobs)
        expect(await pingsOf(check.key)).toEqual(expectedPings(jobs))
        const state = await stateOf(check.key)
        const lastStartAt = entries.findLast(({ type }) => type === 'start')?.at ?? null
        expect(state).toMatchObject({ pingsTotal: entries.length, lastStartAt })
        const last = entries.findLast(({ type }) => type === 'success' || type === 'fail')
        if (last !== undefined && last.at >= CHECK.createdAt)
          expect(state.status).toBe(STATUS[last.type === 'fail' ? 'down' : 'up'])
        // Nothing was seen, so no deadline has passed.
        const reasons = (await flipsOf(check.key)).map(({ reason }) => reason)
        expect(reasons.filter((reason) => reason === 'missed' || reason === 'overran')).toEqual([])
      }),
      { numRuns: 6, endOnFailure: true },
    )
  })
})
