import { expect, it } from 'vitest'
import { createPingRecorder, type Ping } from '../../../src/checks/ping/record-ping.ts'
import { createRememberedChecks } from '../../../src/checks/ping/remembered-checks.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { startPostgresServer } from '../../support/postgres-server.ts'
import { until } from '../../support/until.ts'

/** A client hears within five seconds that it must try again, on whichever connection and at whichever statement the database hangs. */
const PROMISED_MS = 5_000

it('tells every ping in time, also those that get a second connection which hangs too', async () => {
  await using server = await startPostgresServer({ settings: { fsync: 'off' } })
  const database = createDatabase({ url: server.url, name: 'pings', connections: 3, genericPlans: true, looksUp: true })
  await migrate(database)
  // All connections are open and idle: none has to be opened first, so that each is believed in.
  await Promise.all(Array.from({ length: 3 }, () => database.query('select pg_sleep(0.1)')))
  expect(database.connections()).toMatchObject({ total: 3, idle: 3 })
  const recorder = createPingRecorder({
    database,
    remembered: createRememberedChecks(),
    now: systemClock.now,
    onGroup: () => {},
    onError: () => {},
  })

  await server.pause()
  const startedAt = systemClock.now()
  const answers: Promise<{ result: string; ms: number }>[] = []
  // Ids that this process does not know yet, so that the first statement is the one that looks them up.
  await until(() => {
    const at = systemClock.now()
    const ping: Ping = {
      publicId: crypto.randomUUID(),
      type: 'success',
      exitCode: 0,
      durationMs: null,
      runId: null,
      body: null,
      at,
    }
    answers.push(recorder.record(ping).then((result) => ({ result, ms: systemClock.now() - at })))
    return at - startedAt > 4_500
  })
  const told = await Promise.all(answers)
  expect(new Set(told.map(({ result }) => result))).toEqual(new Set(['unavailable']))
  expect(Math.max(...told.map(({ ms }) => ms))).toBeLessThan(PROMISED_MS)
  await server.resume()
  await recorder.stop()
  await database.close()
})

it('ends every statement of a database that hangs, also those without a budget', async () => {
  await using server = await startPostgresServer({ settings: { fsync: 'off' } })
  const database = createDatabase({ url: server.url, name: 'hung', connections: 5, statementMs: 300 })
  await Promise.all(Array.from({ length: 5 }, () => database.query('select pg_sleep(0.1)')))
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
  await database.close()
})
