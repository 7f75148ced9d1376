import { beforeEach, describe, expect, it } from 'vitest'
import { type Change, decideChanges } from '../../../src/checks/change.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { saveChanges } from '../../../src/store/checks/change-sets.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { lockDueStates, lockStates, oldestOverdueSeconds } from '../../../src/store/checks/states.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { beat } from '../../support/beats.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, usePings } from '../pings/fixture.ts'

/** Deadlines of checks that follow a source wait until all Jobs of their cluster up to then are recorded. */

const t = usePings()
const replica = useEach(() => t.addReplica('pings'))
beforeEach(() => beat(replica))

async function expire(batch = 100, by = replica) {
  const { flips, failed } = await expireOverdue({ database: by.database, now: systemClock.now }, batch)
  expect(failed).toEqual([])
  return flips
}

/** Its first run is due `overdueMs` ago; each ten seconds another one. */
const addDue = (jobArea: string | null, overdueMs = 5_000) =>
  t.addCheck(
    { armed: true, spec: { periodSeconds: 10, graceSeconds: 0, maxRuntimeSeconds: 60, jobArea } },
    systemClock.now() - 10_000 - overdueMs,
  )
const dueOf = async (check: CheckRecord) => (await t.stateOf(check)).dueAt!

async function see(cluster: string, until: number) {
  await t.database.query(
    `insert into seen_areas (area, cluster, seen_at) values ($1, split_part($1, '/', 1), to_timestamp($2::float8 / 1000))
      on conflict (area) do update set seen_at = excluded.seen_at`,
    [cluster, until],
  )
}

/** Records what a Job tells, as its verb does. */
async function report(tx: Queryable, { key }: CheckRecord, event: Change['event'], type: 'start' | 'success' | 'fail') {
  const runId = 'runId' in event ? event.runId : null
  const ping = { type, exitCode: null, runId, body: null, source: 'job' as const }
  const change = { key, event, at: systemClock.now(), ping }
  await saveChanges(tx, decideChanges(await lockStates(tx, [key]), [change], 'earlier').changeSet)
}
const RUN = '0190b8a0-0000-7000-8000-00000000000a'

describe('the deadline of a check that follows a source', () => {
  it.each<[string, (due: number) => Promise<unknown>, number]>([
    ['waits while nothing is known of its cluster', async () => {}, 0],
    ['waits while its cluster was seen up to a moment before', (due) => see('c1', due - 1), 0],
    ['waits while only another cluster was seen', (due) => see('c2', due), 0],
    ['is passed once its cluster was seen up to then', (due) => see('c1', due), 1],
  ])('%s', async (_, prepare, flips) => {
    const check = await addDue('c1')
    const due = await dueOf(check)
    await prepare(due)
    expect(await expire()).toHaveLength(flips)
    const reasons = await t.reasonsOf(check)
    expect(reasons).toEqual(flips === 0 ? ['created'] : ['missed', 'created'])
    if (flips > 0) expect((await t.flipsOf(check))[0]).toMatchObject({ at: due, from: 'new', to: 'down' })
  })

  it('is that of its run too', async () => {
    const check = await addDue('c1', 110_000)
    const at = Math.floor(systemClock.now()) - 90_000
    const slotAt = systemClock.now() + 90_000
    await t.database.transaction((tx) =>
      report(tx, check, { kind: 'start', runId: RUN, job: { at, slotAt, createdAt: 0 } }, 'start'),
    )
    await see('c1', at + 59_999)
    expect(await expire()).toEqual([])
    await see('c1', at + 60_000)
    expect(await expire()).toMatchObject([{ reason: 'overran' }])
  })

  it('is not passed beyond what is seen, although the check is read before it', async () => {
    const check = await addDue('c1', 15_000)
    const due = await dueOf(check)
    const started = (at: number): Change['event'] => ({
      kind: 'start',
      runId: RUN,
      job: { at, slotAt: at, createdAt: 0 },
    })
    // The next slot is due five seconds ago. The row is still to be read at the deadline of the first.
    await t.database.transaction((tx) => report(tx, check, started(due), 'start'))
    await see('c1', due + 9_999)
    expect(await expire()).toEqual([])
    expect(await dueOf(check)).toBe(due + 10_000)
    // Put aside until its deadline is seen: it is not read again and again.
    const wakes = await t.database.query<{ wake_at: number }>('select wake_at from check_states')
    expect(wakes.rows).toEqual([{ wake_at: due + 10_000 }])
    await see('c1', due + 10_000)
    expect(await expire()).toMatchObject([{ reason: 'missed' }])
  })

  it('finds what was recorded before it was seen, while two replicas evaluate', async () => {
    const other = t.addReplica('another')
    const check = await addDue('c1')
    const due = await dueOf(check)
    const recorded = Promise.withResolvers<void>()
    const recording = t.database.transaction(async (tx) => {
      await report(tx, check, { kind: 'start', runId: RUN, job: { at: due, slotAt: due, createdAt: 0 } }, 'start')
      await recorded.promise
    })
    await see('c1', due - 1)
    expect(await Promise.all([expire(5), expire(5, other)])).toEqual([[], []])
    recorded.resolve()
    await recording
    await see('c1', due)
    expect((await Promise.all([expire(5), expire(5, other)])).flat()).toEqual([])
    expect(await t.reasonsOf(check)).toEqual(['created'])
  })

  it('is passed once, although two replicas evaluate', async () => {
    const other = t.addReplica('another')
    const checks = await Promise.all(Array.from({ length: 8 }, () => addDue('c1')))
    await see('c1', systemClock.now())
    const flips = await Promise.all([expire(5), expire(5, other), expire(5), expire(5, other)])
    expect(flips.flat()).toHaveLength(8)
    for (const check of checks) expect(await t.reasonsOf(check)).toEqual(['missed', 'created'])
  })

  it('leaves no time to checks that pings report, nor they to it', async () => {
    const followed = await Promise.all([addDue('c1', 60_000), addDue('c1', 60_000), addDue('c2', 90_000)])
    const pinged = await Promise.all([addDue(null), addDue(null)])
    await see('c1', systemClock.now())
    await see('c2', systemClock.now())
    expect(await expire(1)).toHaveLength(2)
    const down = async (checks: readonly CheckRecord[]) =>
      (await Promise.all(checks.map(t.stateOf))).filter(({ status }) => status === 'down').length
    expect([await down(followed), await down(pinged)]).toEqual([1, 1])
    // The oldest of all clusters first.
    expect((await t.stateOf(followed[2]!)).status).toBe('down')
  })

  it('is not evaluated while the beat is stale, as any other', async () => {
    await addDue('c1')
    await see('c1', systemClock.now())
    await t.database.query("update service_beat set beat_at = now() - interval '1 hour'")
    expect(await expire()).toEqual([])
  })

  it('shows how far the evaluator is behind only up to what is seen', async () => {
    await addDue('c1', 100_000)
    expect(await oldestOverdueSeconds(t.database)).toBe(0)
    await see('c1', systemClock.now() - 60_000)
    expect(await oldestOverdueSeconds(t.database)).toBeCloseTo(40, -1)
    await addDue(null, 70_000)
    expect(await oldestOverdueSeconds(t.database)).toBeCloseTo(70, -1)
  })
})

describe('ten thousand overdue checks of a cluster that is not seen', () => {
  it('cost the evaluator nothing', async () => {
    await t.database.query(
      `with made as (
        insert into checks (id, public_id, project_id, name, slug, created_at)
        select gen_random_uuid(), gen_random_uuid(), $1, 'Job ' || n, 'job-' || n, now() from generate_series(1, 10000) n returning key)
      insert into check_states (check_key, period_seconds, grace_seconds, job_area, status, since, expected_at, due_at, wake_at, stamped_at)
      select key, 3600, 0, 'c1', 1, now(), now() - interval '1 minute', now() - interval '1 minute', now() - interval '1 minute', now() from made`,
      [t.tenant().project],
    )
    await see('c1', systemClock.now() - 120_000)
    const pinged = await addDue(null)
    // Reads are counted within the transaction. The plan does not depend on statistics: it is a generic one.
    await replica.database.transaction(async (tx) => {
      const read = async () => {
        const { rows } = await tx.query<{ count: number }>(
          `select (seq_tup_read + idx_tup_fetch)::int8 as count from pg_stat_xact_user_tables where relname = 'check_states'`,
        )
        return rows[0]?.count ?? 0
      }
      const before = await read()
      const { checks } = await lockDueStates(tx, 5, 5_000)
      expect(checks.map(({ key }) => key)).toEqual([pinged.key])
      expect((await read()) - before).toBeLessThan(10)
    })
    // Nor when only some of them are seen.
    await see('c1', systemClock.now() - 30_000)
    expect(await expire(5)).toHaveLength(6)
  })
})

describe('a ping of a container whose Job is followed', () => {
  it('is stored with a lock, and satisfies the slots up to its time', async () => {
    const [check] = await t.addUp(replica, 1, { spec: { periodSeconds: 60, jobArea: 'c1' } })
    const before = await t.stateOf(check)
    const at = systemClock.now()
    expect(await replica.commit([pingOf(check, { type: 'start', at })])).toEqual({
      outcomes: ['stored'],
      tries: ['locked'],
    })
    const state = await t.stateOf(check)
    expect(state.runs).toMatchObject([{ id: null }])
    expect(state.expectedAt!).toBeGreaterThanOrEqual(before.expectedAt!)
  })

  it('is decided on the row that a Job has changed', async () => {
    const [check] = await t.addUp(replica, 1, { spec: { periodSeconds: 60, jobArea: 'c1' } })
    const at = systemClock.now()
    await t.database.transaction((tx) =>
      report(tx, check, { kind: 'start', runId: RUN, job: { at, slotAt: at, createdAt: 0 } }, 'start'),
    )
    expect((await replica.commit([pingOf(check, { type: 'fail', exitCode: 1 })])).outcomes).toEqual(['stored'])
    expect(await t.stateOf(check)).toMatchObject({ status: 'down', runs: [{ id: RUN, isOverruled: true }] })
  })
})
