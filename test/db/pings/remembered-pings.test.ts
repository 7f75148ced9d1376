/** Pings of checks that the recorder remembers: saved without a lock where nothing has come between, and right in any case. */

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { decideChanges } from '../../../src/checks/change.ts'
import { keepBeat } from '../../../src/checks/deadlines/beat.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { getCheck, listFlips, listPings } from '../../../src/checks/find-checks.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import {
  createPingRecorder,
  type Ping,
  type PingRecorder,
  type PingResult,
} from '../../../src/checks/ping/record-ping.ts'
import { createRememberedChecks, type RememberedChecks } from '../../../src/checks/ping/remembered-checks.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { type CheckState, PING_TYPES } from '../../../src/domain/check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { type NewPing, saveUnlocked } from '../../../src/store/checks/change-sets.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { lockStates } from '../../../src/store/checks/states.ts'
import { createDatabase, type Database, type Session } from '../../../src/store/postgres/database.ts'
import { createChance } from '../../process/random.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { replayAll } from '../../support/replay.ts'
import { type SeededCheck, type SeededTenant, seedCheck, seedTenant } from '../../support/seed.ts'
import { watchSession } from '../../support/watched-session.ts'

const clock = { now: systemClock.now }
const SEED = Number(process.env.TEST_SEED ?? 20_261_122)
/** A client hears within this that it must try again. */
const PROMISED_MS = 5_000
let test: TestDatabase
let tenant: SeededTenant
let one: Replica
let two: Replica
let holders: pg.Client[]

/** A process of its own: its connections, its memory, and how it came by what it saved. */
interface Replica {
  readonly name: string
  readonly recorder: PingRecorder
  readonly remembered: RememberedChecks
  readonly database: Database
  /** How often a group was saved under a lock, and how often it was tried without. */
  readonly tries: { locked: number; unlocked: number }
  /** Their sizes, of what was stored. */
  readonly groups: number[]
  readonly errors: unknown[]
  /** The connection breaks when the next group is saved without a lock, and before anybody here hears of it. */
  breakAfterSaving: boolean
}

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.clear()
  tenant = await seedTenant(test.database)
  one = createReplica('one')
  two = createReplica('two')
  holders = []
})
afterEach(async () => {
  for (const holder of holders) await holder.end()
  for (const { recorder, database } of [one, two]) {
    await recorder.stop()
    await database.close()
  }
})

function createReplica(name: string): Replica {
  // As the service makes it: with plans that take rows in the order of the keys, however few there are.
  const database = createDatabase({ url: test.url, name, connections: 2, genericPlans: true, looksUp: true })
  const remembered = createRememberedChecks()
  const tries = { locked: 0, unlocked: 0 }
  const groups: number[] = []
  const errors: unknown[] = []
  const watched = (session: Session): Session => ({
    ...watchSession(session, async (statement, send) => {
      const rows = await send(statement)
      if (!statement.name?.startsWith('save_expected')) return rows
      tries.unlocked += 1
      if (!replica.breakAfterSaving) return rows
      replica.breakAfterSaving = false
      throw new Error('Connection terminated unexpectedly')
    }),
    groupTransaction(budgetMs, work) {
      tries.locked += 1
      return session.groupTransaction(budgetMs, work)
    },
  })
  const recorder = createPingRecorder({
    database: { ...database, session: (use) => database.session((session) => use(watched(session))) },
    remembered,
    now: clock.now,
    onGroup: (size) => groups.push(size),
    onError: (error) => errors.push(error),
  })
  const replica: Replica = {
    name,
    recorder,
    remembered,
    database,
    tries,
    groups,
    errors,
    breakAfterSaving: false,
  }
  return replica
}

function send({ recorder }: Replica, publicId: string, overrides: Partial<Ping> = {}): Promise<PingResult> {
  return recorder.record({
    publicId,
    type: 'success',
    exitCode: 0,
    durationMs: null,
    runId: null,
    body: null,
    at: clock.now(),
    ...overrides,
  })
}

/** What `work` gave, and how the replica's groups were tried meanwhile. */
async function watch<T>({ tries }: Replica, work: () => Promise<T>): Promise<{ result: T } & Replica['tries']> {
  const before = { ...tries }
  const result = await work()
  return { result, locked: tries.locked - before.locked, unlocked: tries.unlocked - before.unlocked }
}

const STORED_UNLOCKED = { result: 'stored', locked: 0, unlocked: 1 }
const STORED_LOCKED = { result: 'stored', locked: 1, unlocked: 0 }
/** Tried without, found to be stale, and done again under the lock. */
const STORED_TWICE_TRIED = { result: 'stored', locked: 1, unlocked: 1 }

const context = () => ({ database: test.database, clock })
const historyOf = async ({ id }: CheckRecord) =>
  (await listPings(context(), tenant, id, { limit: 1_000, after: null })).rows
const flipsOf = async ({ id }: CheckRecord) =>
  (await listFlips(context(), tenant, id, { limit: 1_000, after: null })).rows.map((flip) => flip.reason)
const stateOf = async ({ id }: CheckRecord) => (await getCheck(context(), tenant, id)).state
const textsOf = async (check: CheckRecord) => (await historyOf(check)).map(({ body }) => body?.toString() ?? null)

/** Newest first, no two of one moment. */
async function expectOrdered(check: CheckRecord, count: number): Promise<void> {
  const times = (await historyOf(check)).map((ping) => ping.createdAt)
  expect(times).toHaveLength(count)
  expect(times).toEqual([...new Set(times)].sort((a, b) => b - a))
}

/** Up, and remembered by the replica. */
async function seedUp(replica: Replica, seeded: SeededCheck = {}): Promise<CheckRecord> {
  const check = await seedCheck(test.database, tenant, seeded)
  expect(await watch(replica, () => send(replica, check.publicId))).toEqual(STORED_LOCKED)
  return check
}

async function seedAllUp(replica: Replica, count: number): Promise<CheckRecord[]> {
  const checks: CheckRecord[] = []
  for (let i = 0; i < count; i += 1) checks.push(await seedUp(replica))
  return checks
}

/** Somebody's transaction that holds what it did until it is told how to end. */
async function hold(text: string, values: unknown[]): Promise<{ end(how: 'commit' | 'rollback'): Promise<void> }> {
  const holder = new pg.Client({ connectionString: test.url })
  await holder.connect()
  holders.push(holder)
  await holder.query('begin')
  await holder.query(text, values)
  return {
    end: async (how) => {
      await holder.query(how)
    },
  }
}
const holdRow = ({ key }: CheckRecord) => hold('select from check_states where check_key = $1 for update', [key])

/** Resolves with the process id of the replica's connection that waits for a lock, once there is one. */
function untilWaiting({ name }: Replica): Promise<number> {
  return vi.waitFor(
    async () => {
      const { rows } = await test.database.query<{ pid: number }>(
        `select pid from pg_stat_activity
          where datname = current_database() and application_name = $1 and wait_event_type = 'Lock'`,
        [`heartbeat-operator ${name}`],
      )
      expect(rows).toHaveLength(1)
      return rows[0]!.pid
    },
    { timeout: 1_000, interval: 5 },
  )
}

/** What is remembered of a check, and its row. */
async function readBoth({ remembered }: Replica, { key }: Pick<CheckRecord, 'key'>) {
  const row = await test.database.transaction(async (tx) => {
    const [locked] = await lockStates(tx, [key])
    const { rows } = await tx.query<{ xmin: string }>('select xmin::text from check_states where check_key = $1', [key])
    return { ...locked!, version: Number(rows[0]!.xmin) }
  })
  return { memory: remembered.find([key])?.[0] ?? null, row }
}

describe('a ping of a remembered check', () => {
  it('takes no lock, with all that it may carry', async () => {
    const check = await seedCheck(test.database, tenant)
    const ping = (overrides: Partial<Ping> = {}) => watch(one, () => send(one, check.publicId, overrides))
    expect(await ping()).toEqual(STORED_LOCKED)
    expect(await ping({ durationMs: 12 })).toEqual(STORED_UNLOCKED)
    expect(await ping({ body: Buffer.from([0x66, 0x00, 0xff]) })).toEqual(STORED_UNLOCKED)
    expect(await ping({ type: 'start', exitCode: null })).toEqual(STORED_UNLOCKED)
    expect(await ping({ type: 'log', exitCode: null, body: Buffer.from('half way') })).toEqual(STORED_UNLOCKED)
    expect(await ping()).toEqual(STORED_UNLOCKED)

    const history = await historyOf(check)
    expect(history.map(({ type, exitCode, body }) => [type, exitCode, body?.toString('latin1') ?? null])).toEqual([
      ['success', 0, null],
      ['log', null, 'half way'],
      ['start', null, null],
      ['success', 0, 'f\u0000\u00ff'],
      ['success', 0, null],
      ['success', 0, null],
    ])
    expect(history[4]!.durationMs).toBe(12)
    // The completion of the run that was started, as the core measures it.
    const [started, completed] = [history[2]!.createdAt, history[0]!.createdAt].map(Math.floor) as [number, number]
    expect(history[0]!.durationMs).toBe(completed - started)
    expect(await stateOf(check)).toMatchObject({
      status: 'up',
      lastPingAt: completed,
      lastStartAt: started,
      lastDurationMs: completed - started,
      dueAt: completed + 3_900_000,
    })
    await expectOrdered(check, 6)
  })

  it('with a run id takes a lock, and repeats are told from the first after others without', async () => {
    const check = await seedUp(one)
    const runId = randomUUID()
    const ping = (overrides: Partial<Ping> = {}) => watch(one, () => send(one, check.publicId, overrides))
    expect(await ping({ type: 'start', runId })).toEqual(STORED_LOCKED)
    expect(await ping()).toEqual(STORED_UNLOCKED)
    expect(await ping({ type: 'start', runId })).toEqual({ ...STORED_LOCKED, result: 'duplicate' })
    expect(await ping({ runId })).toEqual(STORED_LOCKED)
    expect(await ping()).toEqual(STORED_UNLOCKED)
    expect(await ping({ runId })).toEqual({ ...STORED_LOCKED, result: 'duplicate' })
    expect(await ping()).toEqual(STORED_UNLOCKED)
    // Among others of one group.
    const given = await watch(one, () =>
      Promise.all([{}, { runId }, {}].map((more) => send(one, check.publicId, more))),
    )
    expect(given).toEqual({ ...STORED_LOCKED, result: ['stored', 'duplicate', 'stored'] })
    await expectOrdered(check, 8)
  })

  it('that flips takes a lock, and its flip and its event are written', async () => {
    const check = await seedUp(one)
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_UNLOCKED)
    expect(await watch(one, () => send(one, check.publicId, { type: 'fail', exitCode: 1 }))).toEqual(STORED_LOCKED)
    expect(await stateOf(check)).toMatchObject({ status: 'down', dueAt: null })
    // It is down already: nothing but its state changes.
    expect(await watch(one, () => send(one, check.publicId, { type: 'fail', exitCode: 1 }))).toEqual(STORED_UNLOCKED)
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_LOCKED)
    expect(await flipsOf(check)).toEqual(['recovered', 'failed', 'first_success', 'created'])
    const { rows } = await test.database.query('select type from events where check_key = $1 order by id', [check.key])
    expect(rows).toEqual([{ type: 'check.down' }, { type: 'check.up' }])
    await expectOrdered(check, 5)
  })

  it('that brings the deadline nearer takes a lock, so that somebody looks at it in time', async () => {
    const check = await seedUp(one, { spec: { maxRuntimeSeconds: 60 } })
    expect(await watch(one, () => send(one, check.publicId, { type: 'start' }))).toEqual(STORED_LOCKED)
    const { row } = await readBoth(one, check)
    expect(row.wakeAt).toBe(row.state.runs[0]!.deadlineAt)
  })
})

describe('what is remembered', () => {
  it(`is the row, after each group of pings of all kinds (seed ${SEED})`, async () => {
    const chance = createChance(SEED)
    const specs: NonNullable<SeededCheck['spec']>[] = [
      {},
      { maxRuntimeSeconds: 60 },
      { schedule: '*/5 * * * *', timeZone: 'UTC' },
      {},
    ]
    const checks: CheckRecord[] = []
    for (const spec of specs) checks.push(await seedCheck(test.database, tenant, { spec }))
    let at = clock.now()
    let sent = 0
    while (sent < 200) {
      const runs = chance.isLucky(0.2)
      const results: Promise<PingResult>[] = []
      for (let left = chance.between(1, 6); left > 0; left -= 1) {
        // Forwards by up to twenty minutes, to the microsecond; now and then a clock that is behind.
        at += chance.isLucky(0.1) ? -5_000 : chance.between(0, 1_200_000_000) / 1_000
        const type = chance.isLucky(0.6) ? 'success' : chance.pick(PING_TYPES)
        results.push(
          send(one, chance.pick(checks).publicId, {
            type,
            durationMs: chance.isLucky(0.3) ? chance.between(0, 604_800_000) : null,
            runId: runs && chance.isLucky(0.5) ? randomUUID() : null,
            body: chance.isLucky(0.3) ? Buffer.from(`ping ${sent}`) : null,
            at,
          }),
        )
        sent += 1
      }
      expect(new Set(await Promise.all(results))).toEqual(new Set(['stored']))
      for (const check of checks) {
        const { memory, row } = await readBoth(one, check)
        if (memory !== null) expect(memory).toEqual(row)
      }
    }
    for (const check of checks) {
      const { memory, row } = await readBoth(one, check)
      expect(memory === null).toBe(row!.state.runs.length > 2)
    }
    // Both ways were taken, and nobody was in the way.
    expect(one.tries.unlocked).toBeGreaterThan(10)
    expect(one.tries.locked).toBeGreaterThan(10)
    expect(one.tries.unlocked + one.tries.locked).toBe(one.groups.length)
    expect((await replayAll(test.database, { isGiven: () => true })).problems).toEqual([])
  })
})

describe('what somebody else has changed meanwhile is found out', () => {
  it('by another replica that was pinged', async () => {
    const check = await seedUp(one)
    expect(await send(two, check.publicId, { type: 'start', body: Buffer.from('two') })).toBe('stored')
    expect(await watch(one, () => send(one, check.publicId, { body: Buffer.from('one') }))).toEqual(STORED_TWICE_TRIED)
    expect(await textsOf(check)).toEqual(['one', 'two', null])
    await expectOrdered(check, 3)
    // The start that only the other one has seen.
    expect((await historyOf(check))[0]!.durationMs).not.toBeNull()
    const { memory, row } = await readBoth(one, check)
    expect(memory).toEqual(row)
  })

  it('by another replica whose ping flipped it', async () => {
    const check = await seedUp(one)
    expect(await send(two, check.publicId, { type: 'fail' })).toBe('stored')
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_TWICE_TRIED)
    expect(await flipsOf(check)).toEqual(['recovered', 'failed', 'first_success', 'created'])
    await expectOrdered(check, 3)
  })

  it('by a person who pauses, and resumes', async () => {
    const check = await seedUp(one)
    await pauseCheck(context(), tenant, check.id)
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_TWICE_TRIED)
    expect(await stateOf(check)).toMatchObject({ status: 'paused', expectedAt: null, dueAt: null })
    expect(await watch(one, () => send(one, check.publicId, { type: 'fail' }))).toEqual(STORED_UNLOCKED)
    expect(await stateOf(check)).toMatchObject({ status: 'paused', dueAt: null })
    await resumeCheck(context(), tenant, check.id)
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_TWICE_TRIED)
    expect((await stateOf(check)).status).toBe('up')
    expect(await flipsOf(check)).toEqual(['first_success', 'resumed', 'paused', 'first_success', 'created'])
    await expectOrdered(check, 4)
  })

  it('by a person who gives it another spec', async () => {
    const check = await seedUp(one)
    await updateCheck(context(), tenant, check.id, { periodSeconds: 60, graceSeconds: 7 })
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_TWICE_TRIED)
    const { lastPingAt, expectedAt, dueAt } = await stateOf(check)
    expect([expectedAt, dueAt]).toEqual([lastPingAt! + 60_000, lastPingAt! + 67_000])
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_UNLOCKED)
    const later = await stateOf(check)
    expect(later.dueAt).toBe(later.lastPingAt! + 67_000)
    await expectOrdered(check, 3)
  })

  it("by somebody's SQL", async () => {
    const check = await seedUp(one)
    await test.database.query('update check_states set grace_seconds = 11 where check_key = $1', [check.key])
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_TWICE_TRIED)
    const { lastPingAt, dueAt } = await stateOf(check)
    expect(dueAt).toBe(lastPingAt! + 3_611_000)
    await expectOrdered(check, 2)
  })

  it("by somebody's SQL that leaves no schedule to work with", async () => {
    const check = await seedUp(one)
    await test.database.query(
      `update check_states set period_seconds = null, schedule = 'nonsense', time_zone = 'UTC' where check_key = $1`,
      [check.key],
    )
    expect(await send(one, check.publicId)).toBe('unavailable')
    expect(String(one.errors[0])).toContain('cannot be read')
    await expectOrdered(check, 1)
  })

  it('by a person who removes it', async () => {
    const [check, other] = [await seedUp(one), await seedUp(one)]
    await removeCheck(context(), tenant, check.id)
    const both = () => Promise.all([check, other].map(({ publicId }) => send(one, publicId)))
    expect(await watch(one, both)).toEqual({ ...STORED_TWICE_TRIED, result: ['unknown', 'stored'] })
    expect(await both()).toEqual(['unknown', 'stored'])
    await expectOrdered(other, 3)
    const { rows } = await test.database.query('select from pings where check_key = $1', [check.key])
    expect(rows).toEqual([])
  })

  it('by somebody whose transaction commits while the ping waits for it', async () => {
    const [check, other] = [await seedUp(one), await seedUp(one)]
    const changing = await hold('update check_states set grace_seconds = 11 where check_key = $1', [check.key])
    const watching = watch(one, () =>
      Promise.all([check, other].map(({ publicId }) => send(one, publicId, { body: Buffer.from('late') }))),
    )
    await untilWaiting(one)
    await changing.end('commit')
    expect(await watching).toEqual({ ...STORED_TWICE_TRIED, result: ['stored', 'stored'] })
    const { lastPingAt, dueAt } = await stateOf(check)
    expect(dueAt).toBe(lastPingAt! + 3_611_000)
    for (const each of [check, other]) {
      expect(await textsOf(each)).toEqual(['late', null])
      await expectOrdered(each, 2)
    }
  })

  it('and where such a transaction takes it back, nothing has come between', async () => {
    const check = await seedUp(one)
    const changing = await hold('update check_states set grace_seconds = 11 where check_key = $1', [check.key])
    const watching = watch(one, () => send(one, check.publicId))
    await untilWaiting(one)
    await changing.end('rollback')
    expect(await watching).toEqual(STORED_UNLOCKED)
    const { lastPingAt, dueAt } = await stateOf(check)
    expect(dueAt).toBe(lastPingAt! + 3_900_000)
    await expectOrdered(check, 2)
  })
})

describe('a group of remembered checks', () => {
  it('of which one is stale is stored once each, with every result in its place', async () => {
    const [first, stale, last] = (await seedAllUp(one, 3)) as [CheckRecord, CheckRecord, CheckRecord]
    expect(await send(two, stale.publicId, { body: Buffer.from('two') })).toBe('stored')
    one.groups.length = 0
    const pings: [string, string | null][] = [
      [last.publicId, 'a'],
      [stale.publicId, 'b'],
      [randomUUID(), 'c'],
      [first.publicId, null],
      [stale.publicId, 'd'],
      [first.publicId, 'e'],
    ]
    const given = await watch(one, () =>
      Promise.all(
        pings.map(([publicId, text]) => send(one, publicId, { body: text === null ? null : Buffer.from(text) })),
      ),
    )
    expect(given).toEqual({
      ...STORED_TWICE_TRIED,
      result: ['stored', 'stored', 'unknown', 'stored', 'stored', 'stored'],
    })
    // Those of the stale one are a group of their own.
    expect(one.groups).toEqual([4, 2])
    expect(await textsOf(first)).toEqual(['e', null, null])
    expect(await textsOf(stale)).toEqual(['d', 'b', 'two', null])
    expect(await textsOf(last)).toEqual(['a', null])
    for (const [check, count] of [
      [first, 3],
      [stale, 4],
      [last, 2],
    ] as const)
      await expectOrdered(check, count)
    const { rows } = await test.database.query('select body from ping_bodies')
    expect(rows).toHaveLength(5)
    for (const check of [first, stale, last]) {
      const { memory, row } = await readBoth(one, check)
      expect(memory).toEqual(row)
    }
  })

  it('of which all are stale is stored once each, and one that is gone is unknown', async () => {
    const checks = await seedAllUp(one, 4)
    const gone = checks[1]!
    for (const { publicId } of checks) expect(await send(two, publicId)).toBe('stored')
    await removeCheck(context(), tenant, gone.id)
    const results = await Promise.all(checks.map(({ publicId }) => send(one, publicId, { body: Buffer.from('x') })))
    expect(results).toEqual(['stored', 'unknown', 'stored', 'stored'])
    for (const check of checks) {
      if (check === gone) continue
      expect(await textsOf(check)).toEqual(['x', null, null])
      await expectOrdered(check, 3)
    }
    const { rows } = await test.database.query('select from ping_bodies')
    expect(rows).toHaveLength(3)
  })

  it.each([
    ['that is stale', true],
    ['that is as it was', false],
  ])('leaves out one %s whose row somebody holds, and tells its job to try again', async (_, isStale) => {
    const [first, held, last] = (await seedAllUp(one, 3)) as [CheckRecord, CheckRecord, CheckRecord]
    if (isStale) expect(await send(two, held.publicId, { body: Buffer.from('x') })).toBe('stored')
    const holding = await holdRow(held)
    const startedAt = clock.now()
    const results = await Promise.all(
      [first, held, held, last].map(({ publicId }) => send(one, publicId, { body: Buffer.from('x') })),
    )
    expect(results).toEqual(['stored', 'unavailable', 'unavailable', 'stored'])
    expect(clock.now() - startedAt).toBeLessThan(PROMISED_MS)
    await holding.end('rollback')
    for (const check of [first, last]) await expectOrdered(check, 2)
    await expectOrdered(held, isStale ? 2 : 1)

    expect(await Promise.all([first, held, last].map(({ publicId }) => send(one, publicId)))).toEqual([
      'stored',
      'stored',
      'stored',
    ])
    for (const check of [first, last]) await expectOrdered(check, 3)
    await expectOrdered(held, isStale ? 3 : 2)
  })

  it('loses one ping to a row that PostgreSQL refuses, not the others', async () => {
    const checks = await seedAllUp(one, 8)
    await test.database.query(`alter table pings add constraint poison check (duration_ms is distinct from 666)`)
    try {
      const { result, unlocked } = await watch(one, () =>
        Promise.all(
          checks.map(({ publicId }, index) =>
            send(one, publicId, { durationMs: index === 3 ? 666 : 1, body: Buffer.of(index) }),
          ),
        ),
      )
      expect(result).toEqual(checks.map((_, index) => (index === 3 ? 'unavailable' : 'stored')))
      expect(unlocked).toBeGreaterThan(0)
      expect(one.errors).toHaveLength(1)
      for (const [index, check] of checks.entries()) await expectOrdered(check, index === 3 ? 1 : 2)
      const { rows } = await test.database.query('select from ping_bodies')
      expect(rows).toHaveLength(7)
    } finally {
      await test.database.query('alter table pings drop constraint poison')
    }
    expect(await watch(one, () => send(one, checks[3]!.publicId))).toEqual(STORED_UNLOCKED)
  })
})

describe('two replicas that share the pings of checks', () => {
  it('hardly try without a lock, for each time it was in vain they lock twice as many groups', async () => {
    const checks = await Promise.all(Array.from({ length: 3 }, () => seedCheck(test.database, tenant)))
    for (let round = 0; round < 600; round += 1) {
      const { publicId } = checks[round % 3]!
      expect(await send(one, publicId)).toBe('stored')
      expect(await send(two, publicId)).toBe('stored')
    }
    // The first groups find nothing remembered. Then 1 + 2 + 4 + ... + 256 lie between ten tries.
    for (const { tries } of [one, two]) {
      expect(tries.unlocked).toBeGreaterThan(1)
      expect(tries.unlocked).toBeLessThanOrEqual(10)
      expect(tries.locked).toBe(600)
    }
    for (const check of checks) await expectOrdered(check, 400)
  })

  it('never wait for more than 512 groups', async () => {
    const check = await seedUp(one)
    const tries: number[] = []
    for (let round = 0; round < 1_700; round += 1) {
      // As if somebody had written the row.
      one.remembered.renew(one.remembered.find([check.key])!, 1)
      const { unlocked } = await watch(one, () => send(one, check.publicId))
      if (unlocked > 0) tries.push(round)
    }
    expect(tries.map((round, index) => round - (tries[index - 1] ?? -1))).toEqual([
      1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 512,
    ])
  })

  it('try again at once when they no longer do', async () => {
    const check = await seedUp(one)
    const ofOne = () => watch(one, () => send(one, check.publicId))
    const ofTwo = async () => expect(await send(two, check.publicId)).toBe('stored')
    await ofTwo()
    expect(await ofOne()).toEqual(STORED_TWICE_TRIED)
    await ofTwo()
    expect(await ofOne()).toEqual(STORED_TWICE_TRIED)
    expect(await ofOne()).toEqual(STORED_LOCKED)
    await ofTwo()
    expect(await ofOne()).toEqual(STORED_TWICE_TRIED)
    for (let i = 0; i < 3; i += 1) expect(await ofOne()).toEqual(STORED_LOCKED)
    expect(await ofOne()).toEqual(STORED_UNLOCKED)
    // From here on as if nobody had ever been in the way.
    await ofTwo()
    expect(await ofOne()).toEqual(STORED_TWICE_TRIED)
    expect(await ofOne()).toEqual(STORED_UNLOCKED)
    await expectOrdered(check, 15)
  })
})

describe('the evaluator', () => {
  const TEN_SECONDS = { spec: { periodSeconds: 10, graceSeconds: 0 } }
  const beat = () =>
    keepBeat({ database: two.database, recorder: { isWell: () => true, recovered: () => {} }, onGap: () => {} })

  async function expire({ database, remembered }: Replica): Promise<string[]> {
    const flips: string[] = []
    const options = {
      database,
      remembered,
      batch: 500,
      oldestPingWaitMs: () => 0,
      monotonicMs: systemClock.now,
      onFlip: (reason: string) => flips.push(reason),
      onFailed: (error: unknown) => expect(error).toBeUndefined(),
    }
    await beat()
    while ((await expireOverdue(options)) === 'again');
    return flips
  }

  /** Pinged for the first time that long ago. */
  async function seedUpSince(replica: Replica, ageMs: number): Promise<CheckRecord> {
    const at = clock.now() - ageMs
    const check = await seedCheck(test.database, tenant, { ...TEN_SECONDS, now: () => at })
    expect(await send(replica, check.publicId, { at })).toBe('stored')
    return check
  }

  it('that put a check off has told the memory of its process', async () => {
    const check = await seedUpSince(one, 15_000)
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_UNLOCKED)
    expect(await send(two, check.publicId)).toBe('stored')
    expect(await send(one, check.publicId)).toBe('stored')
    const { row: before } = await readBoth(one, check)
    expect(await expire(one)).toEqual([])
    const { memory, row } = await readBoth(one, check)
    expect(row.wakeAt).toBeGreaterThan(before.wakeAt!)
    expect(row.version).not.toBe(before.version)
    expect(memory).toEqual(row)
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_UNLOCKED)
    await expectOrdered(check, 5)
  })

  it('of another process is found out', async () => {
    const check = await seedUpSince(one, 15_000)
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_UNLOCKED)
    expect(await expire(two)).toEqual([])
    // It has no use for what was not pinged there.
    expect(two.remembered.find([check.key])).toBeNull()
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_TWICE_TRIED)
    await expectOrdered(check, 3)
  })

  it.each([
    ['its own process', () => one, STORED_LOCKED],
    ['another process', () => two, STORED_TWICE_TRIED],
  ])('of %s that took a check down is followed by one flip up', async (_, ofWhom, expected) => {
    const check = await seedUpSince(one, 15_000)
    expect(await expire(ofWhom())).toEqual(['missed'])
    expect((await stateOf(check)).status).toBe('down')
    expect(await watch(one, () => send(one, check.publicId))).toEqual(expected)
    expect((await stateOf(check)).status).toBe('up')
    expect(await flipsOf(check)).toEqual(['recovered', 'missed', 'first_success', 'created'])
    const { rows } = await test.database.query('select type from events where check_key = $1 order by id', [check.key])
    expect(rows).toEqual([{ type: 'check.down' }, { type: 'check.up' }])
    expect(await watch(one, () => send(one, check.publicId))).toEqual(STORED_UNLOCKED)
    await expectOrdered(check, 3)
  })

  it('beside two replicas and a person leaves what the history says', async () => {
    const chance = createChance(SEED)
    const checks: CheckRecord[] = []
    for (const seeded of [TEN_SECONDS, {}, {}, { spec: { maxRuntimeSeconds: 3_600 } }, TEN_SECONDS]) {
      const at = clock.now() - 15_000
      checks.push(await seedCheck(test.database, tenant, { ...seeded, now: () => at }))
    }
    // What was up a while ago is overdue at once.
    for (const { publicId } of checks)
      expect(await send(one, publicId, { exitCode: 1_000, at: clock.now() - 14_000 })).toBe('stored')

    let flips = (await expire(one)).length
    let isOver = false
    const until = async (work: (round: number) => Promise<unknown>) => {
      for (let round = 0; !isOver; round += 1) await work(round)
    }
    const evaluating = until(async () => {
      // Somebody wants all to be looked at: each is put off again, and told to the memory of its process.
      for (const { key } of checks)
        await test.database.transaction((tx) =>
          tx.query('update check_states set wake_at = now() where check_key = $1 and wake_at > now()', [key]),
        )
      flips += (await expire(one)).length
    })
    let turned = 0
    const turning = until(async (round) => {
      await (round % 2 === 0 ? pauseCheck : resumeCheck)(context(), tenant, checks[1]!.id)
      turned += 1
    })
    const pinging = [one, two].map(async (replica, part) => {
      const results: PingResult[] = []
      for (let index = 0; index < 300; ) {
        const group: Promise<PingResult>[] = []
        for (let left = chance.between(1, 5); left > 0 && index < 300; left -= 1, index += 1) {
          const exitCode = part * 300 + index
          group.push(
            send(replica, chance.pick(checks).publicId, {
              type: chance.isLucky(0.7) ? 'success' : chance.pick(PING_TYPES),
              // None other has it: the history tells who is missing.
              exitCode,
              body: chance.isLucky(0.3) ? Buffer.from(`ping ${exitCode}`) : null,
              runId: chance.isLucky(0.05) ? randomUUID() : null,
            }),
          )
        }
        results.push(...(await Promise.all(group)))
      }
      return results
    })
    const results = (await Promise.all(pinging)).flat()
    isOver = true
    await Promise.all([evaluating, turning])

    expect(new Set(results)).toEqual(new Set(['stored']))
    const { rows } = await test.database.query<{ code: number; body: Buffer | null }>(
      `select exit_code as code, body from pings p left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id
        where exit_code < 1000 order by exit_code`,
    )
    expect(rows.map(({ code }) => code)).toEqual(Array.from({ length: 600 }, (_, code) => code))
    for (const { code, body } of rows) if (body !== null) expect(body.toString()).toBe(`ping ${code}`)
    expect((await replayAll(test.database, { isGiven: () => false })).problems).toEqual([])
    // It is worth something only if all of it happened.
    expect(flips).toBeGreaterThan(0)
    expect(turned).toBeGreaterThan(2)
    expect(one.tries.unlocked + two.tries.unlocked).toBeGreaterThan(2)
  })
})

describe('a connection that breaks', () => {
  /** Two pings of one group, of which one waits for a row; their connection is cut. */
  async function cutWhileWaiting([held, other]: readonly [CheckRecord, CheckRecord]) {
    const holding = await holdRow(held)
    const both = Promise.all([held, other].map(({ publicId }) => send(one, publicId, { body: Buffer.from('x') })))
    const pid = await untilWaiting(one)
    const cut = () => test.database.query('select pg_terminate_backend($1)', [pid])
    return { both, cut, holding }
  }

  it('while a ping waits for a row fails that ping in time, and no later one', async () => {
    const [held, other] = [await seedUp(one), await seedUp(one)]
    const startedAt = clock.now()
    const { both, cut, holding } = await cutWhileWaiting([held, other])
    await cut()
    const results = await both
    expect(clock.now() - startedAt).toBeLessThan(PROMISED_MS)
    // Nothing of their group is saved. It may be tried again, as far as nobody holds a row.
    expect(results[0]).toBe('unavailable')
    expect(['stored', 'unavailable']).toContain(results[1])
    await expectOrdered(held, 1)
    await expectOrdered(other, results[1] === 'stored' ? 2 : 1)
    await holding.end('rollback')
    // As a client does that is told to try again.
    await vi.waitFor(async () => expect(await send(one, other.publicId)).toBe('stored'), {
      timeout: 1_000,
      interval: 5,
    })
    // What was remembered is still true, for nothing was saved.
    expect(await watch(one, () => send(one, held.publicId))).toEqual(STORED_UNLOCKED)
    await expectOrdered(held, 2)
    await expectOrdered(other, results[1] === 'stored' ? 3 : 2)
    expect(one.recorder.isWell()).toBe(true)
  })

  it('while a ping waits for a row does not fail the pings that wait behind it', async () => {
    const [held, other] = [await seedUp(one), await seedUp(one)]
    const { both, cut, holding } = await cutWhileWaiting([held, other])
    const behind = send(one, other.publicId)
    await cut()
    expect((await both)[0]).toBe('unavailable')
    // Its group was never on its way.
    expect(await behind).toBe('stored')
    await holding.end('rollback')
  })

  it('after a group was saved leaves a memory that is behind, which is found out', async () => {
    const [check, other] = [await seedUp(one), await seedUp(one)]
    one.breakAfterSaving = true
    const both = (text: string) =>
      Promise.all([check, other].map(({ publicId }) => send(one, publicId, { body: Buffer.from(text) })))
    // Nobody can know that it is stored.
    expect(await both('first')).toEqual(['unavailable', 'unavailable'])
    expect(await watch(one, () => both('second'))).toEqual({ ...STORED_TWICE_TRIED, result: ['stored', 'stored'] })
    for (const each of [check, other]) {
      expect(await textsOf(each)).toEqual(['second', 'first', null])
      await expectOrdered(each, 3)
      const { memory, row } = await readBoth(one, each)
      expect(memory).toEqual(row)
    }
  })
})

describe('saving without a lock', () => {
  /** A ping of each, decided on the rows as they are now. */
  async function decidePings(checks: readonly CheckRecord[]) {
    const rows = []
    for (const check of checks) rows.push((await readBoth(one, check)).row)
    const ping = { type: 'log', exitCode: null, runId: null, body: Buffer.from('x') } as const
    const changes = rows.map(({ key }) => ({ key, event: { kind: 'log' } as const, at: clock.now(), ping }))
    return { rows, changeSet: decideChanges(rows, changes, 'earlier').changeSet }
  }

  it('saves rows that are as expected, and tells their new version', async () => {
    const checks = await seedAllUp(one, 2)
    const { rows, changeSet } = await decidePings(checks)
    const { version, stale } = await saveUnlocked(test.database, changeSet, rows)
    expect(stale).toEqual(new Set())
    for (const [index, check] of checks.entries()) {
      const { row } = await readBoth(one, check)
      expect(row).toEqual({ ...rows[index], stampedAt: changeSet.states[index]!.stampedAt, version })
      expect(await textsOf(check)).toEqual(['x', null])
    }
    // Once only.
    expect((await saveUnlocked(test.database, changeSet, rows)).stale).toEqual(new Set(checks.map(({ key }) => key)))
    for (const check of checks) await expectOrdered(check, 2)
  })

  it.each([
    ['last_duration_ms', { state: { lastDurationMs: 5_000 } }],
    ['last_start_at', { state: { lastStartAt: 1_795_000_000_000 } }],
    ['runs', { state: { runs: [{ id: null, startedAt: 1_795_000_000_000, deadlineAt: null }] } }],
    ['status', { state: { status: 'paused' } }],
    ['since', { state: { since: 1_795_000_000_000 } }],
    ['duration_ms of the ping', { ping: { durationMs: 5_000 } }],
    ['run_id of the ping', { ping: { runId: '6f9619ff-8b86-4011-b42d-00c04fc964ff' } }],
  ] as [string, { state?: Partial<CheckState>; ping?: Partial<NewPing> }][])(
    'saves %s where that alone has changed, of one check of a group, and back again',
    async (_, { state, ping }) => {
      const [plain, changed] = (await seedAllUp(one, 2)) as [CheckRecord, CheckRecord]
      const saveWith = async (difference: Partial<CheckState>, more: Partial<NewPing> = {}) => {
        const { rows, changeSet } = await decidePings([plain, changed])
        const states = changeSet.states.map((one) =>
          one.key === changed.key ? { ...one, state: { ...one.state, ...difference } } : one,
        )
        const pings = changeSet.pings.map((one) => (one.key === changed.key ? { ...one, ...more } : one))
        expect((await saveUnlocked(test.database, { states, pings }, rows)).stale).toEqual(new Set())
        for (const { key, state } of states) expect((await readBoth(one, { key })).row.state).toEqual(state)
        return pings.find(({ key }) => key === changed.key)!
      }
      const { id } = await saveWith(state ?? {}, ping)
      const { rows } = await test.database.query('select duration_ms, run_id from pings where id = $1', [id])
      expect(rows).toEqual([{ duration_ms: ping?.durationMs ?? null, run_id: ping?.runId ?? null }])
      const before = (await readBoth(one, plain)).row.state
      const back = Object.fromEntries(Object.keys(state ?? {}).map((name) => [name, before[name as keyof CheckState]]))
      await saveWith(back)
    },
  )

  it('locks in the order of the keys, so that nobody waits for it in a circle', async () => {
    const [first, second] = (await seedAllUp(one, 2)) as [CheckRecord, CheckRecord]
    // Written later than the second one, so that it is behind it in the table.
    expect(await send(one, first.publicId)).toBe('stored')
    const holding = await holdRow(first)
    const both = Promise.all([first, second].map(({ publicId }) => send(one, publicId)))
    await untilWaiting(one)
    const { rows } = await test.database.query(
      'select from check_states where check_key = $1 for no key update skip locked',
      [second.key],
    )
    expect(rows).toHaveLength(1)
    await holding.end('rollback')
    expect(await both).toEqual(['stored', 'stored'])
  })

  it.each([
    ['another version', { version: 1 }],
    ['a version of before', { version: -1 }],
    ['another time of its newest entry', { stampedAt: 0.001 }],
    ['an earlier time of its newest entry', { stampedAt: -0.001 }],
  ] as [string, { version?: number; stampedAt?: number }][])(
    'saves nothing of a row with %s, and names it',
    async (_, difference) => {
      const [first, stale, last] = (await seedAllUp(one, 3)) as [CheckRecord, CheckRecord, CheckRecord]
      const { rows, changeSet } = await decidePings([first, stale, last])
      const expected = rows.map(({ key, version, stampedAt, state }) => {
        const { version: more = 0, stampedAt: later = 0 } = key === stale.key ? difference : {}
        return { version: version + more, stampedAt: stampedAt + later, state }
      })
      expect((await saveUnlocked(test.database, changeSet, expected)).stale).toEqual(new Set([stale.key]))
      expect((await readBoth(one, stale)).row).toEqual(rows[1])
      expect(await textsOf(stale)).toEqual([null])
      for (const check of [first, last]) expect(await textsOf(check)).toEqual(['x', null])
      const { rows: bodies } = await test.database.query('select from ping_bodies')
      expect(bodies).toHaveLength(2)
    },
  )
})
