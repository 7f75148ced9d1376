import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { decideChanges } from '../../../src/checks/change.ts'
import type { CheckState } from '../../../src/domain/check.ts'
import { type NewPing, saveUnlocked } from '../../../src/store/checks/change-sets.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { clock, createPingFixture, type PingFixture, pingOf, type Replica } from './fixture.ts'

let t: PingFixture
let one: Replica
beforeAll(async () => {
  t = await createPingFixture()
})
afterAll(() => t.close())
beforeEach(async () => {
  await t.clear()
  one = t.addReplica('one')
})
afterEach(() => t.cleanUp())

/** A ping of each, decided on the rows as they are now. */
async function decidePings(checks: readonly CheckRecord[]) {
  const rows = []
  for (const check of checks) rows.push((await t.readBoth(one, check)).row)
  const ping = { type: 'log', exitCode: null, runId: null, body: Buffer.from('x') } as const
  const changes = rows.map(({ key }) => ({ key, event: { kind: 'log' } as const, at: clock.now(), ping }))
  return { rows, changeSet: decideChanges(rows, changes, 'earlier').changeSet }
}

it('rows that are as expected are saved, once, and their new version is returned', async () => {
  const checks = await t.addCached(one, 2)
  const { rows, changeSet } = await decidePings(checks)
  const { version, stale } = await saveUnlocked(t.database, changeSet, rows)
  expect(stale).toEqual(new Set())
  for (const [index, check] of checks.entries()) {
    const { row } = await t.readBoth(one, check)
    const { state, stampedAt } = changeSet.states[index]!
    expect(row).toEqual({ ...rows[index], state, stampedAt, version })
    expect(await t.textsOf(check)).toEqual(['x', null])
  }
  expect((await saveUnlocked(t.database, changeSet, rows)).stale).toEqual(new Set(checks.map(({ key }) => key)))
  for (const check of checks) await t.expectOrdered(check, 2)
})

it.each([
  ['last_duration_ms', { state: { lastDurationMs: 5_000 } }],
  ['last_start_at', { state: { lastStartAt: 1_795_000_000_000 } }],
  ['runs', { state: { runs: [{ id: null, startedAt: 1_795_000_000_000, deadlineAt: null }] } }],
  ['status', { state: { status: 'paused' } }],
  ['since', { state: { since: 1_795_000_000_000 } }],
  ['reason', { state: { reason: 'recovered' } }],
  ['changes', { state: { changes: [1_795_000_000_000] } }],
  ['notified', { state: { notified: 'new' } }],
  ['quiet_at', { state: { quietAt: 1_795_000_000_000 } }],
  ['incident_since', { state: { notified: 'down', incidentSince: 1_795_000_000_000 } }],
  ['duration_ms of the ping', { ping: { durationMs: 5_000 } }],
  ['run_id of the ping', { ping: { runId: '6f9619ff-8b86-4011-b42d-00c04fc964ff' } }],
] as [string, { state?: Partial<CheckState>; ping?: Partial<NewPing> }][])(
  '%s is saved where that alone has changed, of one check of a group, and back again',
  async (_, { state, ping }) => {
    const [plain, changed] = await t.addCached(one, 2)
    const saveWith = async (difference: Partial<CheckState>, more: Partial<NewPing> = {}) => {
      const { rows, changeSet } = await decidePings([plain, changed])
      const states = changeSet.states.map((one) =>
        one.key === changed.key ? { ...one, state: { ...one.state, ...difference } } : one,
      )
      const pings = changeSet.pings.map((one) => (one.key === changed.key ? { ...one, ...more } : one))
      expect((await saveUnlocked(t.database, { states, pings }, rows)).stale).toEqual(new Set())
      for (const { key, state } of states) expect((await t.readBoth(one, { key })).row.state).toEqual(state)
      return pings.find(({ key }) => key === changed.key)!
    }
    const { id } = await saveWith(state ?? {}, ping)
    const { rows } = await t.database.query('select duration_ms, run_id from pings where id = $1', [id])
    expect(rows).toEqual([{ duration_ms: ping?.durationMs ?? null, run_id: ping?.runId ?? null }])
    const before = (await t.readBoth(one, plain)).row.state
    await saveWith(Object.fromEntries(Object.keys(state ?? {}).map((name) => [name, before[name as keyof CheckState]])))
  },
)

it('rows are locked in the order of their keys, so that no two groups wait for each other', async () => {
  const [first, second] = await t.addCached(one, 2)
  // Written later than the second one, so that it is behind it in the table.
  expect(await one.record(first)).toBe('stored')
  const holding = await t.holdRow(first)
  const both = one.commit([first, second].map((check) => pingOf(check)))
  await t.untilBlocked(one)
  const { rows } = await t.database.query(
    'select from check_states where check_key = $1 for no key update skip locked',
    [second.key],
  )
  expect(rows).toHaveLength(1)
  await holding.end()
  expect((await both).outcomes).toEqual(['stored', 'stored'])
})

it.each([
  ['another version', { version: 1 }],
  ['an earlier version', { version: -1 }],
  ['another time of its newest entry', { stampedAt: 0.001 }],
  ['an earlier time of its newest entry', { stampedAt: -0.001 }],
] as [string, { version?: number; stampedAt?: number }][])(
  'nothing is saved of a row with %s, and its key is returned',
  async (_, { version: later = 0, stampedAt: longer = 0 }) => {
    const [first, stale, last] = await t.addCached(one, 3)
    const { rows, changeSet } = await decidePings([first, stale, last])
    const expected = rows.map((row) =>
      row.key === stale.key ? { ...row, version: row.version + later, stampedAt: row.stampedAt + longer } : row,
    )
    expect((await saveUnlocked(t.database, changeSet, expected)).stale).toEqual(new Set([stale.key]))
    expect((await t.readBoth(one, stale)).row).toEqual(rows[1])
    expect(await t.textsOf(stale)).toEqual([null])
    for (const check of [first, last]) expect(await t.textsOf(check)).toEqual(['x', null])
    expect((await t.database.query('select from ping_bodies')).rows).toHaveLength(2)
  },
)
