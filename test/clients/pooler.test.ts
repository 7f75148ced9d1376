/**
 * DATABASE_URL leads to a PgBouncer (docs/operate/production.md): the start ends and says so, and never serves. And
 * why: what PgBouncer leaves of that which the service needs.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createEmptyDatabase, type EmptyDatabase } from '../support/database.ts'
import { startPgBouncer } from '../support/pgbouncer.ts'
import { databaseEnvironment, spawnService } from '../support/service-process.ts'

let database: EmptyDatabase
beforeAll(async () => {
  database = await createEmptyDatabase()
})
afterAll(() => database?.close())

const REFUSAL =
  'a connection pooler (PgBouncer?) drops the settings of sessions: point DATABASE_URL to PostgreSQL itself'
/** What PgBouncer drops in silence when it is set up for programs that send settings. */
const IGNORED = 'options, statement_timeout, lock_timeout, idle_in_transaction_session_timeout'

it.each([
  ['session', '', `${REFUSAL} (unsupported startup parameter: options)`],
  ['transaction', '', `${REFUSAL} (unsupported startup parameter: options)`],
  ['session', IGNORED, REFUSAL],
  ['transaction', IGNORED, REFUSAL],
])('in %s mode, ignoring the parameters "%s"', async (pool_mode, ignore_startup_parameters, refusal) => {
  await using pooler = await startPgBouncer(database.url, { pool_mode, ignore_startup_parameters })
  await using service = spawnService({ ...databaseEnvironment(pooler.url), DATABASE_WAIT_SECONDS: '60' })
  const { status } = await service.end()
  expect({ status, stdout: service.stdout, stderr: service.stderr }).toEqual({
    status: 2,
    stdout: '',
    stderr: `${refusal}\n`,
  })
})

describe.each([
  { pool_mode: 'session', hasNotices: true },
  { pool_mode: 'transaction', hasNotices: false },
])('in $pool_mode mode', ({ pool_mode, hasNotices }) => {
  it('drops the settings, and keeps locks of transactions', async () => {
    await using clients = await connect(pool_mode)
    const { pooled, direct } = clients
    const timeout = (client: pg.Client) => one(client, 'show statement_timeout')
    expect([await timeout(pooled), await timeout(direct)]).toEqual(['0', '4711ms'])
    await pooled.query('begin')
    await pooled.query('select pg_advisory_xact_lock(4711)')
    expect(await one(direct, 'select pg_try_advisory_xact_lock(4711)')).toBe(false)
    await pooled.query('commit')
    expect(await one(direct, 'select pg_try_advisory_xact_lock(4711)')).toBe(true)
  })

  it(`notices arrive: ${hasNotices}`, async () => {
    await using clients = await connect(pool_mode)
    const { pooled, direct } = clients
    const notices: string[] = []
    pooled.on('notification', ({ channel }) => notices.push(channel))
    await pooled.query('listen changes')
    await direct.query('notify changes')
    await sleep(500)
    expect(notices).toEqual(hasNotices ? ['changes'] : [])
  })
})

/** One client through a PgBouncer, as the service connects, and one without. */
async function connect(pool_mode: string) {
  await using undo = new AsyncDisposableStack()
  const pooler = undo.use(await startPgBouncer(database.url, { pool_mode, ignore_startup_parameters: IGNORED }))
  const open = async (connectionString: string) => {
    const client = new pg.Client({ connectionString, statement_timeout: 4_711 })
    await client.connect()
    undo.defer(() => client.end())
    return client
  }
  const pooled = await open(pooler.url)
  const direct = await open(database.url)
  const running = undo.move()
  return { pooled, direct, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

async function one(client: pg.Client, statement: string): Promise<unknown> {
  return Object.values((await client.query(statement)).rows[0])[0]
}
