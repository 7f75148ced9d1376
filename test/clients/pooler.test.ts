/** DATABASE_URL leads to a PgBouncer (docs/operate/production.md): the start ends and says so, and never serves. */

import { afterAll, beforeAll, expect, it } from 'vitest'
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
