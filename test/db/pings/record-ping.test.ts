import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { getCheck, listFlips, listPings } from '../../../src/checks/find-checks.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { createPingRecorder, type Ping, type PingRecorder } from '../../../src/checks/ping/record-ping.ts'
import { createRememberedChecks } from '../../../src/checks/ping/remembered-checks.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type SeededTenant, seedCheck, seedTenant } from '../../support/seed.ts'

const clock = { now: systemClock.now }
let test: TestDatabase
let tenant: SeededTenant
let pingDatabase: Database
let recorder: PingRecorder
let groups: number[]
let errors: unknown[]

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.clear()
  tenant = await seedTenant(test.database)
  groups = []
  errors = []
  pingDatabase = createDatabase({ url: test.url, name: 'pings', connections: 2, genericPlans: true, looksUp: true })
  recorder = createRecorder(pingDatabase)
})
afterEach(async () => {
  await recorder.stop()
  await pingDatabase.close()
})

function createRecorder(database: Database): PingRecorder {
  return createPingRecorder({
    database,
    remembered: createRememberedChecks(),
    now: clock.now,
    onGroup: (size) => groups.push(size),
    onError: (error) => errors.push(error),
  })
}

function aPing(publicId: string, overrides: Partial<Ping> = {}): Ping {
  return {
    publicId,
    type: 'success',
    exitCode: 0,
    durationMs: null,
    runId: null,
    body: null,
    at: clock.now(),
    ...overrides,
  }
}

const historyOf = async (id: string) =>
  (await listPings({ database: test.database, clock }, tenant, id, { limit: 1_000, after: null })).rows
const flipsOf = async (id: string) =>
  (await listFlips({ database: test.database, clock }, tenant, id, { limit: 1_000, after: null })).rows
const stateOf = async (id: string) => (await getCheck({ database: test.database, clock }, tenant, id)).state

describe('a ping', () => {
  it('is in the history with everything it carried, and moves the state', async () => {
    const check = await seedCheck(test.database, tenant)
    const body = Buffer.from([0x66, 0x00, 0xff])
    const ping = aPing(check.publicId, { type: 'fail', exitCode: 3, durationMs: 12, runId: randomUUID(), body })
    expect(await recorder.record(ping)).toBe('stored')
    const [stored] = await historyOf(check.id)
    expect(stored).toMatchObject({ type: 'fail', exitCode: 3, durationMs: 12, runId: ping.runId, source: 'http' })
    expect(Buffer.compare(stored!.body!, body)).toBe(0)
    expect(Math.abs(stored!.createdAt - ping.at)).toBeLessThan(0.002)
    const state = await stateOf(check.id)
    expect(state).toMatchObject({ status: 'down', expectedAt: null, dueAt: null })
    expect(state.lastPingAt).toBe(Math.floor(stored!.createdAt))
    expect((await flipsOf(check.id))[0]).toMatchObject({
      reason: 'failed',
      from: 'new',
      to: 'down',
      pingId: stored!.id,
    })
  })

  it('for nobody is unknown, and harms no other of its group', async () => {
    const check = await seedCheck(test.database, tenant)
    const results = await Promise.all([
      recorder.record(aPing(randomUUID())),
      recorder.record(aPing(check.publicId)),
      recorder.record(aPing(randomUUID())),
      recorder.record(aPing(check.publicId)),
    ])
    expect(results).toEqual(['unknown', 'stored', 'unknown', 'stored'])
    expect(await historyOf(check.id)).toHaveLength(2)
  })

  it('of a run is stored once, whoever of a group or of an earlier one sent it', async () => {
    const check = await seedCheck(test.database, tenant)
    const runId = randomUUID()
    const send = (type: Ping['type']) => recorder.record(aPing(check.publicId, { runId, type }))
    expect(await Promise.all([send('start'), send('start'), send('success'), send('success')])).toEqual([
      'stored',
      'duplicate',
      'stored',
      'duplicate',
    ])
    const { lastPingAt } = await stateOf(check.id)
    expect(await send('success')).toBe('duplicate')
    expect((await stateOf(check.id)).lastPingAt).toBe(lastPingAt)
    expect((await historyOf(check.id)).map((ping) => ping.type)).toEqual(['success', 'start'])
  })

  it('with the run id of another check is its own', async () => {
    const [one, two] = [await seedCheck(test.database, tenant), await seedCheck(test.database, tenant)]
    const runId = randomUUID()
    expect(
      await Promise.all([one, two].map(({ publicId }) => recorder.record(aPing(publicId, { runId, type: 'start' })))),
    ).toEqual(['stored', 'stored'])
  })

  it('while paused is stored, and changes neither status nor deadline', async () => {
    const check = await seedCheck(test.database, tenant)
    await pauseCheck({ database: test.database, clock }, tenant, check.id)
    expect(await recorder.record(aPing(check.publicId, { type: 'fail' }))).toBe('stored')
    expect(await stateOf(check.id)).toMatchObject({ status: 'paused', dueAt: null })
    expect((await stateOf(check.id)).lastPingAt).not.toBeNull()
  })

  it('after the check was removed is unknown, though this process knew it', async () => {
    const check = await seedCheck(test.database, tenant)
    expect(await recorder.record(aPing(check.publicId))).toBe('stored')
    await removeCheck({ database: test.database, clock }, tenant, check.id)
    expect(await recorder.record(aPing(check.publicId))).toBe('unknown')
    expect(await recorder.record(aPing(check.publicId))).toBe('unknown')
  })
})

describe('groups', () => {
  it('form of what arrives while the last one commits', async () => {
    const check = await seedCheck(test.database, tenant)
    await recorder.record(aPing(check.publicId))
    groups = []
    const results = await Promise.all(Array.from({ length: 1_200 }, () => recorder.record(aPing(check.publicId))))
    expect(new Set(results)).toEqual(new Set(['stored']))
    expect(groups.reduce((sum, size) => sum + size, 0)).toBe(1_200)
    expect(Math.max(...groups)).toBeLessThanOrEqual(500)
    expect(groups.length).toBeLessThan(10)
    expect(await historyOf(check.id)).toHaveLength(1_000)
  })

  it('apply the pings of one check in their order of arrival', async () => {
    const check = await seedCheck(test.database, tenant)
    await Promise.all(
      ['start', 'fail', 'success', 'fail', 'success'].map((type) =>
        recorder.record(aPing(check.publicId, { type: type as Ping['type'] })),
      ),
    )
    expect((await historyOf(check.id)).map((ping) => ping.type)).toEqual([
      'success',
      'fail',
      'success',
      'fail',
      'start',
    ])
    expect((await flipsOf(check.id)).map((flip) => flip.reason)).toEqual([
      'recovered',
      'failed',
      'recovered',
      'failed',
      'created',
    ])
  })

  it('date every entry of a check after the one before, whatever the clocks say', async () => {
    const check = await seedCheck(test.database, tenant)
    const later = clock.now() + 60_000
    await recorder.record(aPing(check.publicId, { at: later }))
    await recorder.record(aPing(check.publicId, { at: later - 120_000 }))
    const [second, first] = await historyOf(check.id)
    expect(second!.createdAt).toBeGreaterThan(first!.createdAt)
    expect((await stateOf(check.id)).lastPingAt).toBe(Math.floor(second!.createdAt))
  })

  it('lose one ping to a broken check, not the others', async () => {
    const [broken, fine] = [await seedCheck(test.database, tenant), await seedCheck(test.database, tenant)]
    await test.database.query(
      `update check_states set period_seconds = null, schedule = 'nonsense', time_zone = 'UTC' where check_key = $1`,
      [broken.key],
    )
    expect(await Promise.all([broken, fine].map(({ publicId }) => recorder.record(aPing(publicId))))).toEqual([
      'unavailable',
      'stored',
    ])
    expect(String(errors[0])).toContain('cannot be read')
  })

  it('lose one ping to a row that PostgreSQL refuses, not the others', async () => {
    const checks = await Promise.all(Array.from({ length: 8 }, () => seedCheck(test.database, tenant)))
    await test.database.query(`alter table pings add constraint poison check (duration_ms is distinct from 666)`)
    try {
      const results = await Promise.all(
        checks.map(({ publicId }, index) => recorder.record(aPing(publicId, { durationMs: index === 3 ? 666 : 1 }))),
      )
      expect(results).toEqual(checks.map((_, index) => (index === 3 ? 'unavailable' : 'stored')))
      for (const [index, { id }] of checks.entries()) expect(await historyOf(id)).toHaveLength(index === 3 ? 0 : 1)
    } finally {
      await test.database.query('alter table pings drop constraint poison')
    }
  })

  it('answer a repeat as its first: never 200 for what is not stored', async () => {
    const [held, gone] = [await seedCheck(test.database, tenant), await seedCheck(test.database, tenant)]
    expect(await recorder.record(aPing(gone.publicId))).toBe('stored')
    await removeCheck({ database: test.database, clock }, tenant, gone.id)
    const holder = new pg.Client({ connectionString: test.url })
    await holder.connect()
    await holder.query('begin')
    await holder.query('select from check_states where check_key = $1 for update', [held.key])
    const runId = randomUUID()
    const twice = (publicId: string) => [1, 2].map(() => recorder.record(aPing(publicId, { runId })))
    // The first goes out alone; the others form a group behind it.
    const first = recorder.record(aPing(randomUUID()))
    expect(await Promise.all(twice(held.publicId))).toEqual(['unavailable', 'unavailable'])
    await holder.query('rollback')
    await holder.end()
    expect(await first).toBe('unknown')
    const second = recorder.record(aPing(held.publicId))
    expect(await Promise.all(twice(gone.publicId))).toEqual(['unknown', 'unknown'])
    expect(await second).toBe('stored')
  })

  it('leave out a check whose row somebody holds, and tell its job to try again', async () => {
    const [held, free] = [await seedCheck(test.database, tenant), await seedCheck(test.database, tenant)]
    const holder = new pg.Client({ connectionString: test.url })
    await holder.connect()
    await holder.query('begin')
    await holder.query('select from check_states where check_key = $1 for update', [held.key])
    expect(await Promise.all([held, free].map(({ publicId }) => recorder.record(aPing(publicId))))).toEqual([
      'unavailable',
      'stored',
    ])
    await holder.query('rollback')
    await holder.end()
    expect(await recorder.record(aPing(held.publicId))).toBe('stored')
  })
})

describe('two replicas', () => {
  it('that ping the same checks store every ping, in one order, with matching flips', async () => {
    const checks = await Promise.all(Array.from({ length: 20 }, () => seedCheck(test.database, tenant)))
    const otherDatabase = createDatabase({
      url: test.url,
      name: 'other',
      connections: 2,
      genericPlans: true,
      looksUp: true,
    })
    const other = createRecorder(otherDatabase)
    const types = ['success', 'fail', 'start', 'log'] as const
    const sent = await Promise.all(
      Array.from({ length: 2_000 }, (_, index) =>
        (index % 2 === 0 ? recorder : other).record(
          aPing(checks[index % 20]!.publicId, { type: types[(index * 7) % 4]! }),
        ),
      ),
    )
    expect(new Set(sent)).toEqual(new Set(['stored']))
    for (const { id } of checks) {
      const history = await historyOf(id)
      expect(history).toHaveLength(100)
      const times = history.map((ping) => ping.createdAt)
      expect(times).toEqual([...times].sort((a, b) => b - a))
      expect(new Set(times).size).toBe(100)
      const flips = [...(await flipsOf(id))].reverse()
      expect(flips.map((flip) => flip.from)).toEqual([null, ...flips.slice(0, -1).map((flip) => flip.to)])
      expect((await stateOf(id)).status).toBe(flips.at(-1)!.to)
    }
    await other.stop()
    await otherDatabase.close()
  })
})

describe('stopping', () => {
  it('commits what was accepted, and accepts no more', async () => {
    const check = await seedCheck(test.database, tenant)
    const accepted = Array.from({ length: 600 }, () => recorder.record(aPing(check.publicId)))
    await recorder.stop()
    expect(new Set(await Promise.all(accepted))).toEqual(new Set(['stored']))
    expect(await recorder.record(aPing(check.publicId))).toBe('unavailable')
  })
})

describe('the hot row', () => {
  it('is updated without touching an index when a ping only pushes the deadline on', async () => {
    // A database of its own, whose counters count nothing else.
    const own = await createTestDatabase()
    const ownPings = createDatabase({ url: own.url, name: 'pings', connections: 1, genericPlans: true, looksUp: true })
    const check = await seedCheck(own.database, await seedTenant(own.database))
    const ownRecorder = createRecorder(ownPings)
    for (let i = 0; i < 51; i += 1) await ownRecorder.record(aPing(check.publicId))
    await ownPings.close()
    const { rows } = await own.database.query<{ wake_at: number; due_at: number }>(
      'select wake_at, due_at from check_states',
    )
    expect(rows[0]!.due_at).toBeGreaterThan(rows[0]!.wake_at)
    const counts = async () =>
      (
        await own.database.query<{ updates: number; others: number }>(
          `select n_tup_upd as updates, n_tup_upd - n_tup_hot_upd as others from pg_stat_all_tables where relname = 'check_states'`,
        )
      ).rows[0]!
    await expect.poll(async () => (await counts()).updates, { timeout: 10_000 }).toBe(52)
    // The first ping arms the wake-up time; a page may fill up once.
    expect((await counts()).others).toBeLessThanOrEqual(2)
    await own.close()
  })
})
