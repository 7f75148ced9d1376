import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { listPings } from '../../../src/checks/find-checks.ts'
import { createPingRecorder, type PingRecorder, type PingResult } from '../../../src/checks/record-ping.ts'
import { createRememberedChecks } from '../../../src/checks/remembered-checks.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks.ts'
import { createDatabase, type Database } from '../../../src/store/database.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { type SeededTenant, seedCheck, seedTenant } from '../../support/seed.ts'

const clock = { now: systemClock.now }
/** As many must wait for a second group to begin. */
const MANY = 24

let test: TestDatabase
let tenant: SeededTenant
let database: Database
let recorder: PingRecorder
let groups: number[]
let holders: pg.Client[]

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.clear()
  tenant = await seedTenant(test.database)
  groups = []
  holders = []
  database = createDatabase({ url: test.url, name: 'pings', connections: 4, genericPlans: true, looksUp: true })
  recorder = createPingRecorder({
    database,
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

const makeChecks = (count: number) => Promise.all(Array.from({ length: count }, () => seedCheck(test.database, tenant)))

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

/** `count` of our connections wait for a row that somebody holds. */
async function untilBlocked(count: number): Promise<number[]> {
  for (;;) {
    const { rows } = await test.database.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name = 'heartbeat-operator pings' and datname = current_database()
        and wait_event_type = 'Lock' order by query_start`,
    )
    if (rows.length === count) return rows.map(({ pid }) => pid)
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

it('A second group goes out beside the first when many wait, and not before', async () => {
  const [held, ...others] = await makeChecks(MANY + 1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked(1)
  const sent = others.slice(0, MANY - 1).map((check) => send(check))
  await sleep(20)
  expect({ waiting: recorder.waiting(), groups }).toEqual({ waiting: MANY - 1, groups: [] })
  sent.push(send(others.at(-1)!))
  expect(await Promise.all(sent)).toEqual(Array(MANY).fill('stored'))
  expect(groups).toEqual([MANY])
  await release()
  expect(await first).toBe('stored')
})

it('Two groups never hold pings of the same check: the later one waits for the earlier', async () => {
  const [held, ...others] = await makeChecks(MANY + 1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked(1)
  const second = send(held!, 'log')
  expect(await Promise.all(others.map((check) => send(check)))).toEqual(Array(MANY).fill('stored'))
  expect(recorder.waiting()).toBe(1)
  await release()
  expect(await Promise.all([first, second])).toEqual(['stored', 'stored'])
  expect(await typesOf(held!)).toEqual(['success', 'log'])
})

it('Many pings of one check stay in one line', async () => {
  const [held] = await makeChecks(1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked(1)
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

it('What waits for a check of the second group is taken when that has ended, though the first has nothing to do', async () => {
  const [one, two, ...others] = await makeChecks(MANY + 1)
  const releaseOne = await hold(one!)
  const releaseTwo = await hold(two!)
  const first = send(one!)
  await untilBlocked(1)
  const second = Promise.all([two!, ...others].map((check) => send(check)))
  await untilBlocked(2)
  const last = send(two!, 'log')
  await releaseOne()
  expect(await first).toBe('stored')
  await sleep(20)
  expect(recorder.waiting()).toBe(1)
  await releaseTwo()
  expect(await second).toEqual(Array(MANY).fill('stored'))
  expect(await last).toBe('stored')
  expect(await typesOf(two!)).toEqual(['success', 'log'])
})

it('A connection that breaks fails its own group and not the other', async () => {
  const [one, two, ...others] = await makeChecks(MANY + 1)
  const warmUp = await Promise.all([one!, two!, ...others].map((check) => send(check)))
  expect(warmUp).toEqual(Array(MANY + 1).fill('stored'))
  const releaseOne = await hold(one!)
  const releaseTwo = await hold(two!)
  const first = send(one!)
  const [firstPid] = await untilBlocked(1)
  const second = Promise.all([two!, ...others].map((check) => send(check)))
  await untilBlocked(2)
  await test.database.query('select pg_terminate_backend($1)', [firstPid])
  expect(await first).toBe('unavailable')
  await releaseTwo()
  expect(await second).toEqual(Array(MANY).fill('stored'))
  await releaseOne()
  expect(await send(one!)).toBe('stored')
})

it('Where only one connection is to be had, the first group goes on alone, and nobody is refused', async () => {
  const [held, ...others] = await makeChecks(2 * MANY + 1)
  let sessions = 0
  let refusals = 0
  const alone = createPingRecorder({
    database: {
      ...database,
      async session(use) {
        if (sessions > 0) {
          refusals += 1
          throw Object.assign(new Error('too many connections'), { code: '53300', severity: 'FATAL' })
        }
        sessions += 1
        return database.session(use).finally(() => {
          sessions -= 1
        })
      },
    },
    remembered: createRememberedChecks(),
    now: clock.now,
    onGroup: (size) => groups.push(size),
    onError: () => {},
  })
  const record = (check: CheckRecord) => send(check, 'success', alone)
  const release = await hold(held!)
  const first = record(held!)
  await untilBlocked(1)
  const rest = others.map(record)
  await sleep(20)
  expect({ isWell: alone.isWell(), refusals }).toEqual({ isWell: true, refusals: 1 })
  await release()
  expect(await first).toBe('stored')
  expect(await Promise.all(rest)).toEqual(Array(2 * MANY).fill('stored'))
  await alone.stop()
})

it('What is stored is told so, though the connection breaks over the rest of its group', async () => {
  const [one, two] = await makeChecks(2)
  expect(await Promise.all([send(one!), send(two!)])).toEqual(['stored', 'stored'])
  // Stale for us, and held: the first of the group is saved, and the second then waits for its row.
  await test.database.query('update check_states set grace_seconds = 301 where check_key = $1', [two!.key])
  const release = await hold(two!)
  const sent = [send(one!), send(two!)]
  const [pid] = await untilBlocked(1)
  await test.database.query('select pg_terminate_backend($1)', [pid])
  expect(await Promise.all(sent)).toEqual(['stored', 'unavailable'])
  await release()
  expect(await typesOf(one!)).toEqual(['success', 'success'])
  expect(await typesOf(two!)).toEqual(['success'])
})

it('whenIdle() waits no longer than it is told', async () => {
  const [held] = await makeChecks(1)
  const release = await hold(held!)
  const first = send(held!)
  await untilBlocked(1)
  await recorder.whenIdle(5)
  expect(recorder.waiting()).toBe(0)
  await release()
  expect(await first).toBe('stored')
})

it('stop() and whenIdle() wait for both', async () => {
  const [one, two, ...others] = await makeChecks(MANY + 1)
  const releaseOne = await hold(one!)
  const releaseTwo = await hold(two!)
  const first = send(one!)
  await untilBlocked(1)
  const second = Promise.all([two!, ...others].map((check) => send(check)))
  await untilBlocked(2)
  const ended: string[] = []
  const idle = recorder.whenIdle().then(() => ended.push('idle'))
  const stopped = recorder.stop().then(() => ended.push('stopped'))
  await releaseOne()
  expect(await first).toBe('stored')
  await sleep(20)
  expect(ended).toEqual([])
  await releaseTwo()
  expect(await second).toEqual(Array(MANY).fill('stored'))
  await Promise.all([idle, stopped])
  expect(ended.sort()).toEqual(['idle', 'stopped'])
})
