/** M1: flips, events and deliveries of a check are limited by number, and pending deliveries are kept. */

import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { createPingCounts } from '../../../src/checks/ping/counts.ts'
import { createBusyPruner } from '../../../src/checks/prune-busy.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { listFlipEnds, pruneFlipsBefore } from '../../../src/store/history/flip-pruning.ts'
import { COUNTED_ROWS, countHistoryRows } from '../../../src/store/history/sizes.ts'
import { MINUTE } from '../../support/builders.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, addPingRow, countRows, NOW, openTransaction, ping, pruneAll, useFixture } from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture
const check = useEach(() => addCheck(fixture, tenant))
beforeEach(async () => {
  // Without the flip of its creation, so that tests count their own.
  await fixture.database.query('delete from flips where check_key = $1', [check.key])
})

const TABLES = ['flips', 'events', 'deliveries'] as const
type Status = 'pending' | 'delivered' | 'failed'

/** A flip with its event and a delivery of each status. Returns the id of the event. */
async function addFlip(at: number, statuses: readonly Status[] = ['delivered'], of = check): Promise<string> {
  const [flipId, eventId] = [newId(at), newId(at)]
  const { database } = fixture
  await database.query(
    `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason)
      values ($1, $2, to_timestamp($3 / 1000.0), to_timestamp($3 / 1000.0), 1, 2, 'failed')`,
    [flipId, of.key, at],
  )
  await addEvent(eventId, flipId, at, of)
  for (const status of statuses) {
    await database.query(
      `insert into deliveries (event_id, channel_id, id, check_key, organization_id, type, status, next_attempt_at, give_up_at, created_at)
        values ($1, $2, $3, $4, $5, 'check.down', $6::int2, case when $6::int2 = 0 then now() end, now(), now())`,
      [
        eventId,
        randomUUID(),
        newId(at),
        of.key,
        tenant.organizationId,
        ['pending', 'delivered', 'failed'].indexOf(status),
      ],
    )
  }
  return eventId
}

const addEvent = (id: string, flipId: string | null, at: number, of = check) =>
  fixture.database.query(
    `insert into events (id, check_key, flip_id, type, data, created_at) values ($1, $2, $3, 'check.down', '{}', to_timestamp($4 / 1000.0))`,
    [id, of.key, flipId, at],
  )

async function left(of = check): Promise<number[]> {
  return Promise.all(TABLES.map((table) => countRows(fixture, table, of.key)))
}

const prune = (maxFlips: number, limit = 1_000, keys = [check.key]) =>
  fixture.database.transaction(async (tx) => pruneFlipsBefore(tx, await listFlipEnds(tx, keys, maxFlips), limit))

describe('of the flips of a check', () => {
  it('the newest stay, up to the number that is kept, the others go with their events and deliveries', async () => {
    const other = await addCheck(fixture, tenant)
    for (let i = 0; i < 5; i += 1) {
      await addFlip(NOW + i * 1_000, ['delivered', 'failed'])
      await addFlip(NOW - i * 1_000, ['delivered'], other)
    }
    expect(await prune(5)).toEqual({ deleted: 0, isDone: true })
    expect(await prune(3)).toEqual({ deleted: 8, isDone: true })
    expect(await left()).toEqual([3, 3, 6])
    const { rows } = await fixture.database.query<{ at: number }>(
      'select at from flips where check_key = $1 order by id',
      [check.key],
    )
    expect(rows.map(({ at }) => at)).toEqual([NOW + 2_000, NOW + 3_000, NOW + 4_000])
    expect(await left(other)).toEqual([6, 5, 5])
  })

  it('one with a pending delivery stays, whole, until that has ended', async () => {
    const eventId = await addFlip(NOW, ['pending', 'delivered', 'failed'])
    for (let i = 1; i < 5; i += 1) await addFlip(NOW + i * 1_000)
    await prune(2)
    expect(await left()).toEqual([3, 3, 5])
    await fixture.database.query('update deliveries set status = 2, next_attempt_at = null where event_id = $1', [
      eventId,
    ])
    await prune(2)
    expect(await left()).toEqual([2, 2, 2])
  })

  it('those of the walk are limited too, after those that are too old', async () => {
    for (let i = 0; i < 5; i += 1) await addFlip(NOW + i * 1_000)
    expect(await pruneAll(fixture, { maxFlips: 2 })).toMatchObject({ deleted: { flips: 9 } })
    expect((await left()).slice(0, 2)).toEqual([2, 2])
  })

  it('no more than a batch goes at once, of each table, and the next batch goes on', async () => {
    for (let i = 0; i < 8; i += 1) await addFlip(NOW + i * 1_000, ['delivered', 'delivered'])
    await fixture.database.query('delete from deliveries where event_id in (select id from events order by id limit 3)')
    await fixture.database.query('delete from events where id in (select id from events order by id limit 3)')
    expect(await prune(1, 8)).toEqual({ deleted: 8, isDone: false })
    expect(await left()).toEqual([6, 3, 6])
    expect(await prune(1, 8)).toMatchObject({ isDone: false })
    expect(await prune(1, 8)).toMatchObject({ isDone: true })
    expect(await left()).toEqual([1, 1, 2])
    for (let i = 0; i < 8; i += 1)
      await fixture.database.query(
        `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason) values ($1, $2, now(), now(), 1, 2, 'failed')`,
        [newId(NOW + i), check.key],
      )
    expect(await prune(1, 3)).toEqual({ deleted: 3, isDone: false })
  })

  it('many in one millisecond are limited', async () => {
    for (let i = 0; i < 10; i += 1) await addFlip(NOW + i / 1_000)
    await prune(4)
    expect(await left()).toEqual([4, 4, 4])
  })
})

it('events without a flip are limited by the same number', async () => {
  for (let i = 0; i < 6; i += 1) await addEvent(newId(NOW + i * 1_000), null, NOW + i * 1_000)
  await addFlip(NOW + 9_000)
  await prune(3)
  expect(await left()).toEqual([1, 3, 1])
})

it('a delivery that is requested again while its flip is pruned keeps its event and its flip', async () => {
  const eventId = await addFlip(NOW, ['failed'])
  for (let i = 1; i < 3; i += 1) await addFlip(NOW + i * 1_000)
  const retrying = await openTransaction(fixture, (tx) =>
    tx.query('update deliveries set status = 0, next_attempt_at = now() where event_id = $1', [eventId]),
  )
  const pruning = retrying.commitBefore(() => prune(1))
  await pruning
  expect(await left()).toEqual([2, 2, 2])
})

describe('the pruner of busy checks', () => {
  const going = new AbortController().signal

  function createRun(limits: { maxPings?: number; maxFlips?: number } = {}) {
    const counts = createPingCounts()
    const pruned: number[] = []
    const run = createBusyPruner(fixture.context, {
      maxPings: 1_000,
      maxFlips: 1_000,
      maxDays: 90,
      auditMaxDays: 365,
      ...limits,
      counts,
      onPruned: (rows) => pruned.push(rows),
    })
    return { run, counts, pruned }
  }

  it('prunes a check that flipped since its last run, and reads no other', async () => {
    const quiet = await addCheck(fixture, tenant)
    const longAgo = NOW - 60 * MINUTE
    await fixture.database.query('update check_states set since = to_timestamp($1 / 1000.0)', [longAgo])
    for (const each of [check, quiet]) for (let i = 0; i < 4; i += 1) await addFlip(longAgo + i * 1_000, [], each)
    const { run, pruned } = createRun({ maxFlips: 2 })
    await run(going)
    expect(pruned).toEqual([])
    fixture.clock.time = NOW + MINUTE
    await fixture.database.transaction((tx) => ping(tx, check, 'fail', NOW + MINUTE))
    await run(going)
    expect((await left())[0]).toBe(2)
    expect((await left(quiet))[0]).toBe(5)
  })

  it('holds the events of a check that is late again and again, and never flips', async () => {
    const longAgo = NOW - 60 * MINUTE
    await fixture.database.query('update check_states set since = to_timestamp($1 / 1000.0)', [longAgo])
    const quiet = await addCheck(fixture, tenant)
    await fixture.database.query('update check_states set since = to_timestamp($1 / 1000.0)', [longAgo])
    const addLate = (at: number, of = check) => addEvent(newId(at), null, at, of)
    for (let i = 0; i < 4; i += 1) {
      await addLate(longAgo + i)
      await addLate(longAgo + i, quiet)
    }
    const { run } = createRun({ maxFlips: 2 })
    await addLate(NOW + MINUTE)
    fixture.clock.time = NOW + MINUTE
    await run(going)
    expect((await left())[1]).toBe(2)
    expect((await left(quiet))[1]).toBe(4)
  })

  it('holds the history of one URL that alternates failure and success hundreds of times', async () => {
    const { run, counts } = createRun({ maxPings: 50, maxFlips: 20 })
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 60; i += 1) {
        counts.add(check.key)
        const at = NOW + round * 20_000 + i * 10
        await fixture.database.transaction((tx) =>
          ping(tx, check, i % 2 === 0 ? 'fail' : 'success', at, { body: Buffer.from('x') }),
        )
      }
      fixture.clock.time = NOW + (round + 1) * 20_000
      await run(going)
      expect((await left())[0]).toBe(20)
      expect((await left())[1]).toBeLessThanOrEqual(20)
      expect(await countRows(fixture, 'pings', check.key)).toBeLessThanOrEqual(51)
    }
  })

  it('prunes the pings of a check only when it has had as many as are kept', async () => {
    const { run, counts } = createRun({ maxPings: 3 })
    for (let i = 0; i < 5; i += 1) await addPingRow(fixture, check.key, NOW + i)
    counts.add(check.key)
    counts.add(check.key)
    await run(going)
    expect(await countRows(fixture, 'pings', check.key)).toBe(5)
    counts.add(check.key)
    await run(going)
    expect(await countRows(fixture, 'pings', check.key)).toBe(3)
    expect(counts.find(1)).toEqual([])
  })

  it('of two replicas at once deletes each row once', async () => {
    for (let i = 0; i < 30; i += 1) await addFlip(NOW + i * 1_000)
    const [one, other] = [createRun({ maxFlips: 2 }), createRun({ maxFlips: 2 })]
    await Promise.all([one.run(going), other.run(going)])
    expect(await left()).toEqual([2, 2, 2])
    const total = [...one.pruned, ...other.pruned].reduce((sum, rows) => sum + rows, 0)
    expect(total).toBe(3 * 28)
  })

  it('prunes what it can when a part fails, does the same again after that, and nothing when it is to stop', async () => {
    for (let i = 0; i < 5; i += 1) await addPingRow(fixture, check.key, NOW + i)
    for (let i = 0; i < 5; i += 1) await addFlip(NOW + i)
    const { run, counts } = createRun({ maxPings: 2, maxFlips: 2 })
    for (let i = 0; i < 5; i += 1) counts.add(check.key)
    await run(AbortSignal.abort())
    expect(await countRows(fixture, 'pings', check.key)).toBe(5)
    await fixture.database.query('alter table pings rename to pings_away')
    await expect(run(going)).rejects.toThrow('pings')
    // Pings that cannot be pruned keep no flips.
    expect((await left())[0]).toBe(2)
    await fixture.database.query('alter table pings_away rename to pings')
    await run(going)
    expect(await countRows(fixture, 'pings', check.key)).toBe(2)
  })
})

it('the rows of history are counted up to a number, and estimated above it', async () => {
  for (let i = 0; i < 3; i += 1) await addFlip(NOW + i * 1_000, ['delivered', 'pending'])
  await addPingRow(fixture, check.key, NOW)
  expect(await countHistoryRows(fixture.database)).toEqual({ pings: 1, flips: 3, events: 3, deliveries: 6 })
  await fixture.database.transaction(async (tx) => {
    await tx.query(
      `insert into pings (id, check_key, type, source, created_at) select gen_random_uuid(), $1, 3, 0, now() from generate_series(1, $2)`,
      [check.key, COUNTED_ROWS + 2_000],
    )
    // A connection reports its rows once in a second: reported after analyze has counted them, they would count twice.
    await tx.query('select pg_stat_force_next_flush()')
  })
  await fixture.database.query('analyze pings')
  const { pings } = await countHistoryRows(fixture.database)
  expect(pings).toBeGreaterThan(COUNTED_ROWS)
  expect(pings).toBeLessThan(COUNTED_ROWS + 4_000)
})
