import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { PruneLimits } from '../../../src/checks/prune-history.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import type { PingType } from '../../../src/domain/check.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { DAY, HOUR, MINUTE } from '../../support/builders.ts'
import { listFlips, listPings } from '../../support/lists.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, addPingRow, countRows, NOW, ping, pruneAll, useFixture } from './fixture.ts'

const MICROSECOND_MS = 0.001

const fixture = useFixture()
const { tenant } = fixture
const check = useEach(() => addCheck(fixture, tenant))

const pinged = (type: PingType, at: number, given = {}, of = check) =>
  fixture.database.transaction((tx) => ping(tx, of, type, at, given))
const prune = (limits: Partial<PruneLimits>) => pruneAll(fixture, limits)
const pings = async (of = check) =>
  (await listPings(fixture.context, tenant, of.id, { limit: 1_000, after: null })).rows
const flips = async (of = check) =>
  (await listFlips(fixture.context, tenant, of.id, { limit: 1_000, after: null })).rows

describe('of the pings of a check', () => {
  it('the newest stay, up to the number that is kept', async () => {
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

  it('those stay that are not older than what is kept', async () => {
    const limit = NOW - 90 * DAY
    const kept = await addPingRow(fixture, check.key, limit)
    await addPingRow(fixture, check.key, limit - MICROSECOND_MS)
    await addPingRow(fixture, check.key, limit - DAY)
    expect(await prune({ maxDays: 90 })).toMatchObject({ deleted: { pings: 2 } })
    expect((await pings()).map(({ id }) => id)).toEqual([kept])
  })

  it('the bodies go with them, and no other', async () => {
    for (let i = 0; i < 3; i += 1) await addPingRow(fixture, check.key, NOW + i, { body: Buffer.from(`body ${i}`) })
    await prune({ maxPings: 2 })
    expect((await pings()).map(({ body }) => String(body))).toEqual(['body 2', 'body 1'])
    expect(await countRows(fixture, 'ping_bodies', check.key)).toBe(2)
  })

  it.each(['success', 'warn', 'fail'] as const)('the newest completion stays, however old: %s', async (type) => {
    await pinged('success', NOW + 1_000)
    await pinged(type, NOW + 2_000.5, { body: Buffer.from('why') })
    for (let i = 0; i < 5; i += 1) await pinged('log', NOW + 3_000 + i)
    fixture.clock.time = NOW + 1_000 * DAY
    expect(await prune({ maxPings: 2, maxDays: 90 })).toMatchObject({ deleted: { pings: 6 } })
    expect(await pings()).toMatchObject([{ type, createdAt: NOW + 2_000.5, body: Buffer.from('why') }])
  })

  it('the newest start stays, also beside a newer completion', async () => {
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

  it('the starts of runs that are remembered stay, those of closed runs go', async () => {
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

  it('nothing else of the same moments stays', async () => {
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

  it('none stays once the check is gone', async () => {
    await addPingRow(fixture, check.key, NOW, { body: Buffer.from('x') })
    const gone = await addCheck(fixture, tenant)
    await removeCheck(fixture.context, tenant, gone.id)
    for (let i = 0; i < 3; i += 1)
      await addPingRow(fixture, gone.key, NOW + i, { type: 'success', body: Buffer.from('x') })
    expect(await prune({})).toMatchObject({ deleted: { pings: 3 } })
    expect(await countRows(fixture, 'ping_bodies', gone.key)).toBe(0)
    expect(await pings()).toHaveLength(1)
  })
})

async function addFlip(key: number, at: number): Promise<string> {
  const id = newId(at)
  await fixture.database.query(
    `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason) values ($1, $2, to_timestamp($3 / 1000.0), to_timestamp($3 / 1000.0), 1, 2, 'missed')`,
    [id, key, at],
  )
  return id
}

describe('of the flips of a check', () => {
  it('those stay that are not older than what is kept', async () => {
    const limit = NOW - 90 * DAY
    const kept = await addFlip(check.key, limit)
    await addFlip(check.key, limit - MICROSECOND_MS)
    expect(await prune({ maxDays: 90, maxPings: 1 })).toMatchObject({ deleted: { flips: 1 } })
    expect((await flips()).map(({ id }) => id).at(-1)).toBe(kept)
    expect(await flips()).toHaveLength(2)
  })

  it('the newest stays, however old', async () => {
    await pinged('success', NOW + 1_000)
    fixture.clock.time = NOW + 1_000 * DAY
    await prune({ maxDays: 90 })
    expect((await flips()).map(({ reason }) => reason)).toEqual(['first_success'])
  })

  it('none stays once the check is gone', async () => {
    const gone = await addCheck(fixture, tenant)
    await removeCheck(fixture.context, tenant, gone.id)
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

  it('events stay that are not older than what is kept', async () => {
    const limit = NOW - 90 * DAY
    for (const at of [limit - MICROSECOND_MS, limit, NOW]) {
      await fixture.database.query(
        `insert into events (id, check_key, flip_id, type, data, created_at) values ($1, $2, $1, 'check.down', '{}', to_timestamp($3 / 1000.0))`,
        [newId(at), check.key, at],
      )
    }
    expect(await prune({ maxDays: 90 })).toMatchObject({ deleted: { events: 1 } })
    expect(await left('events', 'created_at')).toEqual([limit, NOW])
  })

  it('gaps stay for 800 days: a schedule and its grace are at most a year each', async () => {
    const limit = NOW - 800 * DAY
    for (const at of [limit - MICROSECOND_MS, limit, NOW]) {
      await fixture.database.query(
        'insert into gaps (started_at, ended_at) values (to_timestamp($1 / 1000.0), to_timestamp($2 / 1000.0))',
        [at - MINUTE, at],
      )
    }
    expect(await prune({ maxDays: 1 })).toMatchObject({ deleted: { gaps: 1 } })
    expect(await left('gaps', 'ended_at')).toEqual([limit, NOW])
  })

  it('refresh tokens stay for a day past their expiry', async () => {
    const userId = randomUUID()
    await fixture.database.query(
      `insert into users (id, organization_id, email, password_hash, scope) values ($1, $2, 'a@example.com', 'x', 'read')`,
      [userId, tenant.organizationId],
    )
    const expiries = [NOW - DAY - 1, NOW - DAY + 1, NOW + HOUR]
    for (const at of expiries) {
      await fixture.database.query(
        'insert into refresh_tokens (token_hash, family_id, user_id, expires_at) values ($1, $2, $3, to_timestamp($4 / 1000.0))',
        [Buffer.from(String(at)), randomUUID(), userId, at],
      )
    }
    expect(await prune({})).toMatchObject({ deleted: { refresh_tokens: 1 } })
    expect(await left('refresh_tokens', 'expires_at')).toEqual(expiries.slice(1))
  })

  it('rate windows stay for two days, as those of a day count in part for the next one', async () => {
    for (const [bucket, hours] of [
      ['old', 49],
      ['young', 47],
      ['now', 0],
    ] as const) {
      await fixture.database.query(
        'insert into rate_windows (bucket, started_at, used) values ($1, to_timestamp($2 / 1000.0), 1)',
        [bucket, fixture.clock.time - hours * 3_600_000],
      )
    }
    expect(await prune({})).toMatchObject({ deleted: { rate_windows: 1 } })
    expect(await left('rate_windows', 'bucket')).toEqual(['now', 'young'])
  })
})
