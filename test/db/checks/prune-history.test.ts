import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listFlips, listPings } from '../../../src/checks/find-checks.ts'
import {
  createPruner,
  PRUNE_START,
  type PruneBatch,
  type PruneLimits,
  type PrunePlace,
  pruneHistory,
} from '../../../src/checks/prune-history.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import type { PingType } from '../../../src/domain/check.ts'
import { formatUuid, writeTimeOrderedId } from '../../../src/domain/ids.ts'
import { randomIdBytes } from '../../../src/runtime/random.ts'
import type { CheckRecord } from '../../../src/store/checks.ts'
import { tryPruneLock } from '../../../src/store/pruning.ts'
import { lockStates } from '../../../src/store/states.ts'
import {
  addCheck,
  addPingRow,
  addTenant,
  countRows,
  createFixture,
  DAY_MS,
  type Fixture,
  HOUR_MS,
  MINUTE_MS,
  NOW,
  openTransaction,
  partsWithin,
  ping,
  type TestTenant,
  untilWaiting,
} from './fixture.ts'

const MICROSECOND_MS = 0.001
const EVERYTHING: PruneLimits = { maxPings: 1_000_000, maxDays: 36_500 }

let fixture: Fixture
let tenant: TestTenant
let check: CheckRecord
beforeAll(async () => {
  fixture = await createFixture()
})
afterAll(() => fixture.close())
beforeEach(async () => {
  await fixture.clear()
  fixture.clock.time = NOW
  tenant = await addTenant(fixture)
  check = await addCheck(fixture, tenant)
})

const pinged = (type: PingType, at: number, given = {}, of = check) =>
  fixture.database.transaction((tx) => ping(tx, of, type, at, given))
const pings = async (of = check) => (await listPings(fixture.parts, tenant, of.id, { limit: 1_000, after: null })).rows
const flips = async (of = check) => (await listFlips(fixture.parts, tenant, of.id, { limit: 1_000, after: null })).rows

/** The whole walk: how many rows of which table went, and the places where it was. */
async function prune(limits: Partial<PruneLimits>, batch?: PruneBatch) {
  const places: PrunePlace[] = []
  const deleted: Partial<Record<PrunePlace['table'], number>> = {}
  let place: PrunePlace | null = PRUNE_START
  while (place !== null) {
    places.push(place)
    const pruned = await pruneHistory(fixture.parts, { ...EVERYTHING, ...limits }, place, batch)
    if (pruned === null || places.length > 1_000) throw new Error('the walk does not end')
    if (pruned.deleted > 0) deleted[place.table] = (deleted[place.table] ?? 0) + pruned.deleted
    place = pruned.next
  }
  return { deleted, places }
}

describe('of the pings of a check', () => {
  test('the newest stay, up to the number that is kept', async () => {
    const ids: string[] = []
    for (let i = 0; i < 5; i += 1) ids.push(await addPingRow(fixture, check.key, NOW + i))
    const other = await addCheck(fixture, tenant)
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, other.key, NOW - i)

    expect((await prune({ maxPings: 5 })).deleted).toEqual({})
    expect(await prune({ maxPings: 3 })).toMatchObject({ deleted: { pings: 2 } })
    expect((await pings()).map(({ id }) => id)).toEqual([ids[4], ids[3], ids[2]])
    expect(await pings(other)).toHaveLength(3)
    expect(await prune({ maxPings: 1 })).toMatchObject({ deleted: { pings: 4 } })
    expect((await pings()).map(({ id }) => id)).toEqual([ids[4]])
  })

  test('those stay that are not older than what is kept', async () => {
    const limit = NOW - 90 * DAY_MS
    const kept = await addPingRow(fixture, check.key, limit)
    await addPingRow(fixture, check.key, limit - MICROSECOND_MS)
    await addPingRow(fixture, check.key, limit - DAY_MS)
    expect(await prune({ maxDays: 90 })).toMatchObject({ deleted: { pings: 2 } })
    expect((await pings()).map(({ id }) => id)).toEqual([kept])
  })

  test('the bodies go with them, and no other', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i, { body: Buffer.from(`body ${i}`) })
    await prune({ maxPings: 2 })
    expect((await pings()).map(({ body }) => String(body))).toEqual(['body 2', 'body 1'])
    expect(await countRows(fixture, 'ping_bodies', check.key)).toBe(2)
  })

  test.each(['success', 'fail'] as const)('the newest completion stays, however old: %s', async (type) => {
    await pinged('success', NOW + 1_000)
    await pinged(type, NOW + 2_000.5, { body: Buffer.from('why') })
    for (let i = 0; i < 5; i += 1) await pinged('log', NOW + 3_000 + i)
    fixture.clock.time = NOW + 1_000 * DAY_MS
    expect(await prune({ maxPings: 2, maxDays: 90 })).toMatchObject({ deleted: { pings: 6 } })
    expect(await pings()).toMatchObject([{ type, createdAt: NOW + 2_000.5, body: Buffer.from('why') }])
  })

  test('the newest start stays, also beside a newer completion', async () => {
    await pinged('start', NOW + 1_000)
    await pinged('start', NOW + 2_000.25)
    await pinged('success', NOW + 3_000)
    await pinged('log', NOW + 4_000)
    await prune({ maxPings: 1 })
    expect((await pings()).map(({ type, createdAt }) => [type, createdAt])).toEqual([
      ['log', NOW + 4_000],
      ['success', NOW + 3_000],
      ['start', NOW + 2_000.25],
    ])
  })

  test('the starts of runs that are remembered stay, those of closed runs go', async () => {
    const [open, closed, last] = [randomUUID(), randomUUID(), randomUUID()]
    await pinged('start', NOW + 1_000, { runId: open })
    await pinged('start', NOW + 2_000, { runId: closed })
    await pinged('start', NOW + 3_000, { runId: last })
    await pinged('success', NOW + 4_000, { runId: closed })
    await pinged('log', NOW + 5_000)
    await prune({ maxPings: 1 })
    expect((await pings()).map(({ type, runId }) => [type, runId])).toEqual([
      ['log', null],
      ['success', closed],
      ['start', last],
      ['start', open],
    ])
  })

  test('nothing else of the same moments stays', async () => {
    await pinged('success', NOW + 1_000)
    await pinged('start', NOW + 2_000)
    await addPingRow(fixture, check.key, NOW + 1_000, { type: 'start' })
    await addPingRow(fixture, check.key, NOW + 1_000, { type: 'log' })
    await addPingRow(fixture, check.key, NOW + 2_000, { type: 'success' })
    await addPingRow(fixture, check.key, NOW + 999.999, { type: 'success' })
    await addPingRow(fixture, check.key, NOW + 1_001, { type: 'success' })
    await addPingRow(fixture, check.key, NOW + 9_000)
    expect(await prune({ maxPings: 1 })).toMatchObject({ deleted: { pings: 5 } })
    expect((await pings()).map(({ type }) => type)).toEqual(['log', 'start', 'success'])
  })

  test('none stays once the check is gone', async () => {
    await addPingRow(fixture, check.key, NOW, { body: Buffer.from('x') })
    const gone = await addCheck(fixture, tenant)
    await removeCheck(fixture.parts, tenant, gone.id)
    for (let i = 0; i < 3; i += 1)
      await addPingRow(fixture, gone.key, NOW + i, { type: 'success', body: Buffer.from('x') })
    expect(await prune({})).toMatchObject({ deleted: { pings: 3 } })
    expect(await countRows(fixture, 'ping_bodies', gone.key)).toBe(0)
    expect(await pings()).toHaveLength(1)
  })
})

async function addFlip(key: number, at: number): Promise<string> {
  const id = formatUuid(writeTimeOrderedId(randomIdBytes(), at))
  await fixture.database.query(
    `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason) values ($1, $2, to_timestamp($3 / 1000.0), to_timestamp($3 / 1000.0), 1, 2, 'missed')`,
    [id, key, at],
  )
  return id
}

describe('of the flips of a check', () => {
  test('those stay that are not older than what is kept', async () => {
    const limit = NOW - 90 * DAY_MS
    const kept = await addFlip(check.key, limit)
    await addFlip(check.key, limit - MICROSECOND_MS)
    expect(await prune({ maxDays: 90, maxPings: 1 })).toMatchObject({ deleted: { flips: 1 } })
    expect((await flips()).map(({ id }) => id).at(-1)).toBe(kept)
    expect(await flips()).toHaveLength(2)
  })

  test('the newest stays, however old', async () => {
    await pinged('success', NOW + 1_000)
    fixture.clock.time = NOW + 1_000 * DAY_MS
    await prune({ maxDays: 90 })
    expect((await flips()).map(({ reason }) => reason)).toEqual(['first_success'])
  })

  test('none stays once the check is gone', async () => {
    const gone = await addCheck(fixture, tenant)
    await removeCheck(fixture.parts, tenant, gone.id)
    await addFlip(gone.key, NOW)
    expect(await prune({})).toMatchObject({ deleted: { flips: 1 } })
    expect(await countRows(fixture, 'flips', gone.key)).toBe(0)
    expect(await flips()).toHaveLength(1)
  })
})

describe('of the rest', () => {
  const left = async (table: string, column: string) => {
    const { rows } = await fixture.database.query<{ value: unknown }>(
      `select ${column} as value from ${table} order by 1`,
    )
    return rows.map(({ value }) => value)
  }

  test('events stay that are not older than what is kept', async () => {
    const limit = NOW - 90 * DAY_MS
    for (const at of [limit - MICROSECOND_MS, limit, NOW]) {
      await fixture.database.query(
        `insert into events (id, check_key, flip_id, type, data, created_at) values ($1, $2, $1, 'check.down', '{}', to_timestamp($3 / 1000.0))`,
        [formatUuid(writeTimeOrderedId(randomIdBytes(), at)), check.key, at],
      )
    }
    expect(await prune({ maxDays: 90 })).toMatchObject({ deleted: { events: 1 } })
    expect(await left('events', 'created_at')).toEqual([limit, NOW])
  })

  test('gaps stay for 800 days: a schedule and its grace are at most a year each', async () => {
    const limit = NOW - 800 * DAY_MS
    for (const at of [limit - MICROSECOND_MS, limit, NOW]) {
      await fixture.database.query(
        'insert into gaps (started_at, ended_at) values (to_timestamp($1 / 1000.0), to_timestamp($2 / 1000.0))',
        [at - MINUTE_MS, at],
      )
    }
    expect(await prune({ maxDays: 1 })).toMatchObject({ deleted: { gaps: 1 } })
    expect(await left('gaps', 'ended_at')).toEqual([limit, NOW])
  })

  test('refresh tokens stay for a day past their expiry', async () => {
    const userId = randomUUID()
    await fixture.database.query(
      `insert into users (id, organization_id, email, password_hash, scope) values ($1, $2, 'a@example.com', 'x', 'read')`,
      [userId, tenant.organizationId],
    )
    const expiries = [NOW - DAY_MS - 1, NOW - DAY_MS + 1, NOW + HOUR_MS]
    for (const at of expiries) {
      await fixture.database.query(
        'insert into refresh_tokens (token_hash, family_id, user_id, expires_at) values ($1, $2, $3, to_timestamp($4 / 1000.0))',
        [Buffer.from(String(at)), randomUUID(), userId, at],
      )
    }
    expect(await prune({})).toMatchObject({ deleted: { refresh_tokens: 1 } })
    expect(await left('refresh_tokens', 'expires_at')).toEqual(expiries.slice(1))
  })

  test('rate windows stay for a day', async () => {
    for (const [bucket, age] of [
      ['old', '25 hours'],
      ['young', '23 hours'],
      ['now', '0 hours'],
    ]) {
      await fixture.database.query(
        'insert into rate_windows (bucket, started_at, used) values ($1, now() - $2::interval, 1)',
        [bucket, age],
      )
    }
    expect(await prune({})).toMatchObject({ deleted: { rate_windows: 1 } })
    expect(await left('rate_windows', 'bucket')).toEqual(['now', 'young'])
  })
})

describe('the walk', () => {
  test('deletes no more than a batch at once, and goes on until nothing is left to delete', async () => {
    for (let i = 0; i < 7; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const other = await addCheck(fixture, tenant)
    for (let i = 0; i < 4; i += 1) await addPingRow(fixture, other.key, NOW + i)
    const batch = { rows: 3, entries: 100 }
    const limits = { ...EVERYTHING, maxPings: 2 }
    const first = await pruneHistory(fixture.parts, limits, PRUNE_START, batch)
    expect(first).toEqual({ deleted: 3, next: PRUNE_START })
    expect(await prune(limits, batch)).toMatchObject({ deleted: { pings: 4 } })
    expect([(await pings()).length, (await pings(other)).length]).toEqual([2, 2])
  })

  test('takes a few checks at a time, in the order of their keys, and misses none', async () => {
    const checks = [check]
    for (let i = 0; i < 6; i += 1) checks.push(await addCheck(fixture, tenant))
    for (const { key } of checks) for (let i = 0; i < 3; i += 1) await addPingRow(fixture, key, NOW + i)
    const { deleted, places } = await prune({ maxPings: 1 }, { rows: 100, entries: 2 })
    expect(deleted).toEqual({ pings: 14 })
    for (const each of checks) expect(await pings(each)).toHaveLength(1)
    expect(places.filter(({ table }) => table === 'pings').map(({ afterKey }) => afterKey)).toEqual([
      0,
      checks[1]!.key,
      checks[3]!.key,
      checks[5]!.key,
    ])
  })

  test('goes on at the place that it is given', async () => {
    const second = await addCheck(fixture, tenant)
    for (const { key } of [check, second]) for (let i = 0; i < 3; i += 1) await addPingRow(fixture, key, NOW + i)
    await pruneHistory(fixture.parts, { ...EVERYTHING, maxPings: 1 }, { table: 'pings', afterKey: check.key })
    expect([(await pings()).length, (await pings(second)).length]).toEqual([3, 1])
  })

  test('never waits for a check that is locked', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const pinging = await openTransaction(fixture, async (tx) => {
      await ping(tx, check, 'success', NOW + 9)
      await lockStates(tx, [check.key])
    })
    expect(await prune({ maxPings: 1 })).toMatchObject({ deleted: { pings: 2 } })
    await pinging.commit()
    expect(await pings()).toHaveLength(2)
  })

  test('waits for a removal of the same history and then goes on', async () => {
    for (let i = 0; i < 5; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const removing = await openTransaction(fixture, (tx) => removeCheck(partsWithin(fixture, tx), tenant, check.id))
    const pruning = prune({ maxPings: 1 })
    await untilWaiting(fixture, 1)
    await removing.commit()
    expect((await pruning).deleted).toEqual({})
    expect(await countRows(fixture, 'pings', check.key)).toBe(0)
  })
})

describe('the pruner', () => {
  const going = new AbortController().signal

  test('does a batch a run and says when there is more', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const pruned: number[] = []
    const run = createPruner(fixture.parts, { maxPings: 1, maxDays: 90, onPruned: (rows) => pruned.push(rows) })
    const outcomes: unknown[] = []
    do outcomes.push(await run(going))
    while (outcomes.at(-1) === 'again')
    expect(outcomes).toHaveLength(6)
    expect(pruned).toEqual([2])
    await addPingRow(fixture, check.key, NOW + 9)
    expect(await run(going)).toBe('again')
    expect(pruned).toEqual([2, 1])
  })

  test('does nothing when it is to stop', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const run = createPruner(fixture.parts, { maxPings: 1, maxDays: 90, onPruned: () => {} })
    expect(await run(AbortSignal.abort())).toBeUndefined()
    expect(await pings()).toHaveLength(3)
  })

  test('leaves the work to another replica that is at it, and keeps its place', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i)
    const run = createPruner(fixture.parts, { maxPings: 1, maxDays: 90, onPruned: () => {} })
    const other = await openTransaction(fixture, tryPruneLock)
    expect(await run(going)).toBeUndefined()
    expect(await pings()).toHaveLength(3)
    await other.commit()
    expect(await run(going)).toBe('again')
    expect(await pings()).toHaveLength(1)
  })

  test('tries a batch that failed again at half its size', async () => {
    await fixture.database.query(
      `insert into pings (id, check_key, type, source, created_at)
       select ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, 3, 0, now() from generate_series(1, 3001) n`,
      [check.key],
    )
    const pruned: number[] = []
    let failures = 1
    const database: typeof fixture.database = {
      ...fixture.database,
      transaction: (work) =>
        failures-- > 0 ? Promise.reject(new Error('too slow')) : fixture.database.transaction(work),
    }
    const run = createPruner(
      { ...fixture.parts, database },
      { maxPings: 1, maxDays: 36_500, onPruned: (rows) => pruned.push(rows) },
    )
    await expect(run(going)).rejects.toThrow('too slow')
    expect(await run(going)).toBe('again')
    expect(await run(going)).toBe('again')
    expect(pruned).toEqual([2_500, 500])
  })
})
