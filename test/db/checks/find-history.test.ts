/** The filters of a check's history, and that no statement reads more than a bounded part of it. */

import { expect, it } from 'vitest'
import { type BodyForm, getPing, listPings as listPiece } from '../../../src/checks/find-history.ts'
import { PING_TYPES, type PingType } from '../../../src/domain/check.ts'
import { inPieces, type PageRequest } from '../../../src/domain/page.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { SCANNED_ROWS } from '../../../src/store/history/pings.ts'
import type { Statement } from '../../../src/store/postgres/database.ts'
import { listFlips, listPings } from '../../support/lists.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, addPingRow, addTenant, NOW, useFixture } from './fixture.ts'

const fixture = useFixture()
const everything = { limit: 1_000, after: null }
const check = useEach(() => addCheck(fixture, fixture.tenant))

/** Rows of history with ids in their order, many at once. */
async function addPings(key: number, types: readonly PingType[]): Promise<string[]> {
  const ids = types.map((_, index) => newId(NOW + index / 1_000))
  await fixture.database.query(
    `insert into pings (id, check_key, type, source, created_at)
      select id, $1, type, 0, to_timestamp($2 / 1000.0) from unnest($3::uuid[], $4::int2[]) row (id, type)`,
    [key, NOW, ids, types.map((type) => PING_TYPES.indexOf(type))],
  )
  return ids
}

/** The statements that `work` issues. */
async function recordStatements(work: (context: typeof fixture.context) => Promise<unknown>): Promise<Statement[]> {
  const statements: Statement[] = []
  const { database } = fixture
  await work({
    ...fixture.context,
    database: {
      ...database,
      query: (statement, values) => {
        statements.push(typeof statement === 'string' ? { text: statement, values: values ?? [] } : statement)
        return database.query(statement, values)
      },
    },
  })
  return statements
}

interface Plan {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly Plans?: readonly Plan[]
}

async function plansOf(statement: Statement): Promise<Plan[]> {
  const { rows } = await fixture.database.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    `explain (analyze, format json) ${statement.text}`,
    statement.values,
  )
  const all = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(all)]
  return all(rows[0]!['QUERY PLAN'][0].Plan)
}

it('pings are found by type, by time from `since` on and before `until`, and by all of them, page after page', async () => {
  const types: PingType[] = ['start', 'success', 'start', 'fail', 'start', 'log']
  for (const [index, type] of types.entries()) await addPingRow(fixture, check.key, NOW + index * 10, { type })
  const found = async (filter: Parameters<typeof listPings>[4], limit = 1_000) => {
    const { rows, next } = await listPings(fixture.context, fixture.tenant, check.id, { limit, after: null }, filter)
    return [rows.map(({ createdAt, type }) => `${type} ${createdAt - NOW}`), next !== null]
  }
  expect(await found({ type: 'fail' })).toEqual([['fail 30'], false])
  expect(await found({ type: 'start' })).toEqual([['start 40', 'start 20', 'start 0'], false])
  expect(await found({ type: 'start' }, 2)).toEqual([['start 40', 'start 20'], true])
  expect(await found({ type: 'start' }, 3)).toEqual([['start 40', 'start 20', 'start 0'], false])
  expect(await found({ since: NOW + 30 })).toEqual([['log 50', 'start 40', 'fail 30'], false])
  expect(await found({ since: NOW + 30.001 })).toEqual([['log 50', 'start 40'], false])
  expect(await found({ until: NOW + 20 })).toEqual([['success 10', 'start 0'], false])
  expect(await found({ until: NOW + 20.001 })).toEqual([['start 20', 'success 10', 'start 0'], false])
  expect(await found({ type: 'start', since: NOW + 10, until: NOW + 40 })).toEqual([['start 20'], false])
  expect(await found({ since: NOW + 60 })).toEqual([[], false])
  expect(await found({ since: -1e12, until: 1e15 })).toMatchObject([{ length: 6 }, false])

  const first = await listPings(
    fixture.context,
    fixture.tenant,
    check.id,
    { limit: 1, after: null },
    { until: NOW + 40 },
  )
  const rest = { limit: 1_000, after: first.next }
  const { rows } = await listPings(fixture.context, fixture.tenant, check.id, rest, { until: NOW + 40, type: 'start' })
  expect([...first.rows, ...rows].map(({ createdAt }) => createdAt - NOW)).toEqual([30, 20, 0])
})

it('flips are found by their own time, which is before the time of their id', async () => {
  for (const at of [10, 20, 30])
    await fixture.database.query(
      `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason)
        values ($1, $2, to_timestamp($3 / 1000.0), to_timestamp($3 / 1000.0), 1, 2, 'missed')`,
      [newId(NOW + at + 5_000), check.key, NOW + at],
    )
  const found = async (filter: Parameters<typeof listFlips>[4]) =>
    (await listFlips(fixture.context, fixture.tenant, check.id, everything, filter)).rows.map(({ at }) => at - NOW)
  expect(await found({})).toEqual([30, 20, 10, 0])
  expect(await found({ since: NOW + 20 })).toEqual([30, 20])
  expect(await found({ until: NOW + 20 })).toEqual([10, 0])
  expect(await found({ since: NOW + 10, until: NOW + 30 })).toEqual([20, 10])
  expect(await found({ since: -1e14, until: 1e15 })).toEqual([30, 20, 10, 0])
})

it('one ping is found by its id, by the own people of its check', async () => {
  const other = await addCheck(fixture, fixture.tenant)
  const body = Buffer.from([0, 255])
  const id = await addPingRow(fixture, check.key, NOW, { body })
  const get = (who = fixture.tenant, checkId = check.id, pingId = id) => getPing(fixture.context, who, checkId, pingId)
  expect(await get()).toMatchObject({ id, type: 'log', body })
  await expect(get(await addTenant(fixture))).rejects.toMatchObject({ message: 'check not found' })
  await expect(get(fixture.tenant, other.id)).rejects.toMatchObject({ message: 'ping not found' })
  for (const pingId of ['no-uuid', newId(NOW)])
    await expect(get(fixture.tenant, check.id, pingId)).rejects.toMatchObject({ message: 'ping not found' })
})

it('a rare type is found by statements that each read a bounded number of rows, by the primary key', async () => {
  const types = Array.from({ length: 2 * SCANNED_ROWS + 10 }, (): PingType => 'success')
  types[0] = types[SCANNED_ROWS] = 'fail'
  const ids = await addPings(check.key, types)
  await fixture.database.query('analyze pings')
  const read = (context: typeof fixture.context, limit: number) =>
    listPings(context, fixture.tenant, check.id, { limit, after: null }, { type: 'fail' })
  expect((await read(fixture.context, 10)).rows.map(({ id }) => id)).toEqual([ids[SCANNED_ROWS], ids[0]])
  expect(await read(fixture.context, 1)).toMatchObject({
    rows: [{ id: ids[SCANNED_ROWS] }],
    next: { id: ids[SCANNED_ROWS] },
  })

  const statements = await recordStatements((context) => read(context, 10))
  const finding = statements.filter(({ name }) => name === 'find_ping_ids_of_type')
  expect(finding).toHaveLength(3)
  for (const statement of finding) {
    const scans = (await plansOf(statement)).filter((plan) => plan['Relation Name'] === 'pings')
    expect(scans.map((plan) => plan['Index Name'])).toEqual(['pings_pkey'])
    expect(scans[0]!['Actual Rows']).toBeLessThanOrEqual(SCANNED_ROWS)
  }
})

it.each<[BodyForm, number]>([
  ['full', 10_240],
  ['cut', 800],
  ['none', 0],
])('pings with %s bodies are read in pieces of at most 64 KB of bodies, complete and in order', async (body, size) => {
  const ids = await addPings(
    check.key,
    Array.from({ length: 250 }, (): PingType => 'log'),
  )
  await fixture.database.query(
    `insert into ping_bodies (check_key, ping_id, body)
      select $1, id, decode(repeat('01', 10240), 'hex') from unnest($2::uuid[]) id`,
    [check.key, ids],
  )
  const sizes: number[] = []
  const seen: string[] = []
  const read = (piece: PageRequest) => listPiece(fixture.context, fixture.tenant, check.id, { body }, piece)
  for await (const { rows } of inPieces(everything, read)) {
    sizes.push(rows.reduce((sum, row) => sum + (row.body?.length ?? 0), 0))
    for (const row of rows) {
      expect(row.body?.length ?? 0).toBe(size)
      seen.push(row.id)
    }
  }
  expect(seen).toEqual(ids.toReversed())
  expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536)
})

it('pings without a text are read by one statement, those with short ones too', async () => {
  const ids = await addPings(
    check.key,
    Array.from({ length: 100 }, (): PingType => 'success'),
  )
  await fixture.database.query(`insert into ping_bodies (check_key, ping_id, body) values ($1, $2, 'short')`, [
    check.key,
    ids[50],
  ])
  const statements = await recordStatements(async (context) => {
    expect((await listPings(context, fixture.tenant, check.id, everything)).rows).toHaveLength(100)
  })
  expect(statements.filter(({ name }) => name === 'read_pings')).toHaveLength(1)
})

it('pings that are pruned while a list is read are left out, and the rest follows', async () => {
  const ids = await addPings(
    check.key,
    Array.from({ length: 700 }, (): PingType => 'log'),
  )
  const seen: string[] = []
  const read = (piece: PageRequest) => listPiece(fixture.context, fixture.tenant, check.id, { body: 'full' }, piece)
  for await (const { rows } of inPieces(everything, read)) {
    seen.push(...rows.map(({ id }) => id))
    // The second piece is gone as a whole, and a part of the third.
    await fixture.database.query('delete from pings where id = any($1)', [ids.toReversed().slice(100, 250)])
  }
  expect(seen).toEqual([...ids.toReversed().slice(0, 100), ...ids.toReversed().slice(250)])
})
