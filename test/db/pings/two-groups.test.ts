import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { listPings } from '../../../src/checks/find-checks.ts'
import { createPingRecorder, type PingRecorder, type PingResult } from '../../../src/checks/ping/record-ping.ts'
import { createRememberedChecks } from '../../../src/checks/ping/remembered-checks.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { createDatabase, type Database, type Session } from '../../../src/store/postgres/database.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type SeededTenant, seedCheck, seedTenant } from '../../support/seed.ts'
import { watchSession } from '../../support/watched-session.ts'

const clock = { now: systemClock.now }
/** As many must wait for a second group to begin. */
const MANY = 24

let test: TestDatabase
let tenant: SeededTenant
let database: Database
let recorder: PingRecorder
let groups: number[]
/** Statements that save without a lock, as they were sent. */
let saved: string[]
let holders: pg.Client[]

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.clear()
  tenant = await seedTenant(test.database)
  groups = []
  saved = []
  holders = []
  database = createDatabase({ url: test.url, name: 'pings', connections: 2, genericPlans: true, looksUp: true })
  recorder = createPingRecorder({
    database: { ...database, session: (use) => database.session((session) => use(watched(session))) },
    remembered: createRememberedChecks(),
    now: clock.now,
    onGroup: (size) => groups.push(size),
    onError: () => {},
  })
})
afterEach(async () => {
  for (const holder of holders) await holder.end()
  await recorder.stop()
  await database.close()
})

const watched = (session: Session) =>
  watchSession(session, (statement, send) => {
    if (statement.name?.startsWith('save_expected')) saved.push(statement.name)
    return send(statement)
  })

const makeChecks = (count: number) => Promise.all(Array.from({ length: count }, () => seedCheck(test.database, tenant)))

/** Their rows are remembered, since each was pinged. */
async function makeRemembered(count: number): Promise<CheckRecord[]> {
  const checks = await makeChecks(count)
  expect(await Promise.all(checks.map((check) => send(check)))).toEqual(Array(count).fill('stored'))
  groups.length = 0
  saved.length = 0
  return checks
}

/** Holds the row of a check until the returned function is called. */
async function hold({ key }: CheckRecord): Promise<() => Promise<unknown>> {
  const holder = new pg.Client({ connectionString: test.url })
  holder.on('error', () => {})
  holders.push(holder)
  await holder.connect()
  await holder.query('begin')
  await holder.query('select from check_states where check_key = $1 for update', [key])
  return () => holder.query('rollback')
}

/** Our connection waits for a row that somebody holds. */
async function untilBlocked(): Promise<number> {
  for (;;) {
    const { rows } = await test.database.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name = 'heartbeat-operator pings' and datname = current_database()
        and wait_event_type = 'Lock'`,
    )
    if (rows.length === 1) return rows[0]!.pid
    await sleep(5)
  }
}

function send({ publicId }: CheckRecord, type: 'success' | 'log' = 'success', to = recorder): Promise<PingResult> {
  return to.record({
    publicId,
    type,
    exitCode: type === 'success' ? 0 : null,
    durationMs: null,
    runId: null,
    body: null,
    at: clock.now(),
  })
}

const typesOf = async ({ id }: CheckRecord) =>
  (await listPings({ database: test.database, clock }, tenant, id, { limit: 100, after: null })).rows
    .map(({ type }) => type)
    .reverse()

it('A second group goes out behind the first, on the same connection, when many wait, and not before', async () => {
  const [held, ...others] = await makeRemembered(MANY + 1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  const sent = others.slice(0, MANY - 1).map((check) => send(check))
  await sleep(20)
  expect({ waiting: recorder.waiting(), saved: saved.length }).toEqual({ waiting: MANY - 1, saved: 1 })
  sent.push(send(others.at(-1)!))
  await sleep(20)
  // Sent, though the first has not come back.
  expect({ waiting: recorder.waiting(), saved: saved.length, groups }).toEqual({ waiting: 0, saved: 2, groups: [] })
  expect(database.connections().total).toBe(1)
  await release()
  expect(await Promise.all([first, ...sent])).toEqual(Array(MANY + 1).fill('stored'))
  expect(groups).toEqual([1, MANY])
})

it('A third waits for one of the two, however many wait', async () => {
  const [held, ...others] = await makeRemembered(3 * MANY + 1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  const rest = others.map((check) => send(check))
  await sleep(20)
  expect({ waiting: recorder.waiting(), saved: saved.length }).toEqual({ waiting: 2 * MANY, saved: 2 })
  await release()
  expect(await Promise.all([first, ...rest])).toEqual(Array(3 * MANY + 1).fill('stored'))
})

it.each([
  ['remembered', makeRemembered],
  ['not known yet', makeChecks],
])('Two groups never hold pings of the same check, %s: the later one waits for the earlier', async (_, make) => {
  const [held, ...others] = await make(MANY + 1)
  const before = await typesOf(held!)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  const second = send(held!, 'log')
  const rest = others.map((check) => send(check))
  // All but the last, which came after the look, and the one of the held check.
  expect(recorder.waiting()).toBe(2)
  await release()
  expect(await Promise.all([first, second, ...rest])).toEqual(Array(MANY + 2).fill('stored'))
  expect(await typesOf(held!)).toEqual([...before, 'success', 'log'])
})

it('Many pings of one check stay in one line', async () => {
  const [held] = await makeChecks(1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  const types = Array.from(
    { length: 2 * MANY },
    (_, index) => (index % 3 === 0 ? 'log' : 'success') as 'log' | 'success',
  )
  const rest = types.map((type) => send(held!, type))
  await sleep(20)
  expect(recorder.waiting()).toBe(2 * MANY)
  await release()
  expect(await Promise.all([first, ...rest])).toEqual(Array(2 * MANY + 1).fill('stored'))
  expect(await typesOf(held!)).toEqual(['success', ...types])
  expect(groups).toEqual([1, 2 * MANY])
})

it('A few that are free go with the next group, not alone behind the first', async () => {
  const [held, free] = await makeRemembered(2)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  const alone = send(free!)
  const blocked = Array.from({ length: 2 * MANY }, () => send(held!, 'log'))
  await sleep(20)
  expect({ waiting: recorder.waiting(), saved: saved.length }).toEqual({ waiting: 2 * MANY + 1, saved: 1 })
  await release()
  expect(await Promise.all([first, alone, ...blocked])).toEqual(Array(2 * MANY + 2).fill('stored'))
  expect(groups).toEqual([1, 2 * MANY + 1])
})

it('What waits for a check of the second group is taken when that has ended, though the first has nothing to do', async () => {
  const [one, two, ...others] = await makeRemembered(MANY + 1)
  const before = await typesOf(two!)
  const release = await hold(one!)
  const first = send(one!)
  await untilBlocked()
  const second = [two!, ...others].map((check) => send(check))
  const last = send(two!, 'log')
  expect(recorder.waiting()).toBe(1)
  await release()
  expect(await Promise.all([first, ...second, last])).toEqual(Array(MANY + 2).fill('stored'))
  expect(await typesOf(two!)).toEqual([...before, 'success', 'log'])
})

it('A second group waits where the first needs a transaction of several statements', async () => {
  const others = await makeRemembered(MANY)
  const [held] = await makeChecks(1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  const second = Promise.all(others.map((check) => send(check)))
  let isTold = false
  void second.then(() => {
    isTold = true
  })
  await sleep(50)
  expect({ waiting: recorder.waiting(), isTold }).toEqual({ waiting: 0, isTold: false })
  await release()
  expect(await first).toBe('stored')
  expect(await second).toEqual(Array(MANY).fill('stored'))
})

it('One that fails leaves the other alone', async () => {
  const others = await makeRemembered(MANY)
  const [held] = await makeChecks(1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  const second = Promise.all(others.map((check) => send(check)))
  // Its lock is not to be had: its transaction is rolled back.
  expect(await first).toBe('unavailable')
  expect(await second).toEqual(Array(MANY).fill('stored'))
  await release()
  expect(await typesOf(held!)).toEqual([])
  for (const check of others) expect(await typesOf(check)).toEqual(['success', 'success'])
})

it('A row that is held in each of them fails its own ping, and no other', async () => {
  const [one, two, ...others] = await makeRemembered(MANY + 2)
  const releases = [await hold(one!), await hold(two!)]
  const first = [one!, others.pop()!].map((check) => send(check))
  await untilBlocked()
  const second = [two!, ...others].map((check) => send(check))
  const startedAt = clock.now()
  expect(await Promise.all(first)).toEqual(['unavailable', 'stored'])
  expect(await Promise.all(second)).toEqual(['unavailable', ...Array(MANY - 1).fill('stored')])
  expect(clock.now() - startedAt).toBeLessThan(5_000)
  for (const release of releases) await release()
})

it('Pings of groups on their way are told to wait as well, or their checks would be found missing meanwhile', async () => {
  const [held, ...others] = await makeRemembered(MANY + 1)
  expect(recorder.oldestWaitMs()).toBe(0)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  await sleep(100)
  const second = others.map((check) => send(check))
  expect(recorder.waiting()).toBe(0)
  await sleep(50)
  expect(recorder.oldestWaitMs()).toBeGreaterThanOrEqual(150)
  await release()
  await Promise.all([first, ...second])
  expect(recorder.oldestWaitMs()).toBe(0)
})

it('A group that waits for the transaction of the other was never sent: it gets another connection', async () => {
  const others = await makeRemembered(MANY)
  const [held] = await makeChecks(1)
  const release = await hold(held!)
  const first = send(held!)
  const pid = await untilBlocked()
  const second = Promise.all(others.map((check) => send(check)))
  await sleep(20)
  await test.database.query('select pg_terminate_backend($1)', [pid])
  expect(await second).toEqual(Array(MANY).fill('stored'))
  await release()
  expect(['stored', 'unavailable']).toContain(await first)
})

it('A connection that breaks fails both groups, and nobody who waits', async () => {
  const [one, two, last, ...others] = await makeRemembered(MANY + 2)
  const release = await hold(one!)
  const first = send(one!)
  const pid = await untilBlocked()
  const second = [two!, ...others].map((check) => send(check))
  const third = send(last!)
  expect(recorder.waiting()).toBe(1)
  await test.database.query('select pg_terminate_backend($1)', [pid])
  expect(await Promise.all([first, ...second])).toEqual(Array(MANY + 1).fill('unavailable'))
  expect(await third).toBe('stored')
  await release()
  expect(await send(one!)).toBe('stored')
  expect(recorder.isWell()).toBe(true)
})

it('What is stored is told so, though the connection breaks over the rest of its group', async () => {
  const [one, two] = await makeChecks(2)
  expect(await Promise.all([send(one!), send(two!)])).toEqual(['stored', 'stored'])
  // Stale for us, and held: the first of the group is saved, and the second then waits for its row.
  await test.database.query('update check_states set grace_seconds = 301 where check_key = $1', [two!.key])
  const release = await hold(two!)
  const sent = [send(one!), send(two!)]
  const pid = await untilBlocked()
  await test.database.query('select pg_terminate_backend($1)', [pid])
  expect(await Promise.all(sent)).toEqual(['stored', 'unavailable'])
  await release()
  expect(await typesOf(one!)).toEqual(['success', 'success'])
  expect(await typesOf(two!)).toEqual(['success'])
})

it('yieldToPings() waits no longer than 20 ms', async () => {
  const [held] = await makeChecks(1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked()
  await recorder.yieldToPings()
  expect(recorder.waiting()).toBe(0)
  await release()
  expect(await first).toBe('stored')
})

it('stop() waits for both', async () => {
  const [one, ...others] = await makeRemembered(MANY + 1)
  const release = await hold(one!)
  const first = send(one!)
  await untilBlocked()
  const second = Promise.all(others.map((check) => send(check)))
  const ended: string[] = []
  const stopped = recorder.stop().then(() => ended.push('stopped'))
  void second.then(() => ended.push('second'))
  await sleep(20)
  expect(ended).toEqual([])
  await release()
  expect(await first).toBe('stored')
  expect(await second).toEqual(Array(MANY).fill('stored'))
  await stopped
  expect(ended).toEqual(['second', 'stopped'])
})

/** A recorder whose connection breaks at those look-ups of keys, counted from 1: before anything was written. */
function createBreaking(isBroken: (lookUp: number) => boolean): { recorder: PingRecorder; sessions: () => number } {
  let sessions = 0
  let lookUps = 0
  const breakable = (session: Session) =>
    watchSession(session, async (statement, send) => {
      if (statement.name === 'find_keys') lookUps += 1
      if (statement.name === 'find_keys' && isBroken(lookUps)) throw new Error('Connection terminated unexpectedly')
      return send(statement)
    })
  const breaking = createPingRecorder({
    database: {
      ...database,
      session(use) {
        sessions += 1
        return database.session((session) => use(breakable(session)))
      },
    },
    remembered: createRememberedChecks(),
    now: clock.now,
    onGroup: () => {},
    onError: () => {},
  })
  return { recorder: breaking, sessions: () => sessions }
}

it('A group of which nothing was written yet gets another connection', async () => {
  const [check] = await makeChecks(1)
  const { recorder: breaking, sessions } = createBreaking((lookUp) => lookUp === 1)
  expect(await send(check!, 'success', breaking)).toBe('stored')
  expect({ sessions: sessions(), isWell: breaking.isWell() }).toEqual({ sessions: 2, isWell: true })
})

it('A group gets another connection once, then it is told to try again', async () => {
  const [check] = await makeChecks(1)
  const { recorder: breaking, sessions } = createBreaking(() => true)
  expect(await send(check!, 'success', breaking)).toBe('unavailable')
  expect({ sessions: sessions(), isWell: breaking.isWell(), waiting: breaking.waiting() }).toEqual({
    sessions: 2,
    isWell: false,
    waiting: 0,
  })
})

it('Once one has committed, the next may have another connection again', async () => {
  const [one, two] = await makeChecks(2)
  const { recorder: breaking, sessions } = createBreaking((lookUp) => lookUp === 1 || lookUp === 3)
  const first = send(one!, 'success', breaking)
  const second = first.then(() => send(two!, 'success', breaking))
  expect(await Promise.all([first, second])).toEqual(['stored', 'stored'])
  expect(sessions()).toBe(4)
})
