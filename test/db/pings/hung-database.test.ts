/** A client hears within five seconds that it must try again, on whichever connection and at whichever statement the database hangs. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { PING_LIMITS } from '../../../src/checks/ping/commit.ts'
import { createPingRecorder, type PingRecorder } from '../../../src/checks/ping/record.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { CONNECT_MS, createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { type PostgresServer, startPostgresServer } from '../../support/postgres-server.ts'
import { eventually } from '../../support/until.ts'
import { pingOf } from './fixture.ts'

const PROMISED_MS = 5_000
/** Time passes this much faster here. */
const PACE = 4
/** Enough for each connection that hangs to be followed by an open one: the time that a new one takes has no other pace. */
const CONNECTIONS = 20

let server: PostgresServer
let database: Database
beforeAll(async () => {
  server = await startPostgresServer({ settings: { fsync: 'off' } })
})
afterAll(() => server[Symbol.asyncDispose]())
beforeEach(async () => {
  database = createDatabase({ url: server.url, name: 'hung', connections: CONNECTIONS, statementMs: 300 })
  // All connections are open and idle: the service takes each for a good one.
  await Promise.all(Array.from({ length: CONNECTIONS }, () => database.query('select pg_sleep(0.1)')))
  expect(database.connections()).toMatchObject({ total: CONNECTIONS, idle: CONNECTIONS })
})
afterEach(async () => {
  await server.resume()
  await database.close()
})

it('every ping has its result in time, also when its second connection hangs too', async () => {
  const recorder = await createRecorder()
  await server.pause()
  const startedAt = systemClock.now()
  const holdUps = countHoldUps()
  const results: Promise<Outcome>[] = []
  // This process does not know the ids yet, so that the first statement is the one that looks them up.
  await eventually(
    'the last pings come 4.5 s after the pause',
    () => {
      results.push(record(recorder))
      return systemClock.now() - startedAt > 4_500 / PACE
    },
    { retryErrors: false },
  )
  const settled = await Promise.all(results)
  expect(new Set(settled.map(({ result }) => result))).toEqual(new Set(['unavailable']))
  expect(Math.max(...settled.map(({ ms }) => ms))).toBeLessThan(PROMISED_MS / PACE + holdUps.end())
  await server.resume()
  await recorder.stop()
})

it('a ping that is sent again has its result in time, also when its second connection must be opened first', () => {
  const { budgetMs, minBudgetMs, retryMs } = PING_LIMITS
  expect(Math.max(budgetMs, retryMs + CONNECT_MS + minBudgetMs)).toBeLessThanOrEqual(PROMISED_MS - 500)
})

it('every statement of a database that hangs ends, also without a budget', async () => {
  await server.pause()
  const startedAt = systemClock.now()
  const outcomes = await Promise.allSettled([
    database.query('select 1'),
    database.queryColumns({ name: 'one', text: 'select 1' }),
    database.eachRow({ text: 'select 1' }, () => {}),
    database.transaction((tx) => tx.query('select 1')),
    database.session((session) => session.within(500, (db) => db.query('select 1'))),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
  expect(systemClock.now() - startedAt).toBeLessThan(PROMISED_MS)
  await server.resume()
  expect((await database.query<{ one: number }>('select 1 as one')).rows).toEqual([{ one: 1 }])
})

/** With the limits of the service, divided by PACE. */
async function createRecorder(): Promise<PingRecorder> {
  const patient = createDatabase({ url: server.url, name: 'migrations', connections: 1, patient: true })
  await migrate(patient)
  await patient.close()
  const { budgetMs, minBudgetMs, retryMs } = PING_LIMITS
  const limits = { budgetMs: budgetMs / PACE, minBudgetMs: minBudgetMs / PACE, retryMs: retryMs / PACE }
  return createPingRecorder({
    database,
    now: systemClock.now,
    onGroup: () => {},
    onError: () => {},
    limits: { alone: limits, spool: limits },
  })
}

type Outcome = { result: string; ms: number }

async function record(recorder: PingRecorder, publicId: string = crypto.randomUUID()): Promise<Outcome> {
  const ping = pingOf({ publicId })
  const result = await recorder.record(ping)
  return { result, ms: systemClock.now() - ping.at }
}

const TICK_MS = 10

/** How long the machine has held this process up, in milliseconds: a timer of the service that is late by that much is not at fault. */
function countHoldUps(): { end(): number } {
  let heldMs = 0
  let tickAt = systemClock.now() + TICK_MS
  const look = () => {
    const lateMs = systemClock.now() - tickAt
    if (lateMs > TICK_MS) heldMs += lateMs
    tickAt = systemClock.now() + TICK_MS
  }
  const timer = setInterval(look, TICK_MS)
  return {
    end() {
      look()
      clearInterval(timer)
      return heldMs
    },
  }
}
