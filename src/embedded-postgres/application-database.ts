import pg from 'pg'
import { errorCode } from '../runtime/error-code.ts'
import { APPLICATION_ROLE, DATABASE, SUPERUSER } from './cluster.ts'
import { EmbeddedPostgresError } from './failure.ts'

const CONNECT_MS = 10_000
const INVALID_PASSWORD = '28P01'

/** The address of a database of the server on `port`; the password is of a kind that needs no escaping. */
export function databaseUrl(role: string, password: string, port: number, database: string): string {
  return `postgres://${role}:${password}@127.0.0.1:${port}/${database}`
}

/**
 * Sees that the application's role and database exist, and by that, that the server takes connections. The role owns the
 * database and is no superuser: what works here works on a PostgreSQL that somebody else runs.
 */
export async function ensureApplicationDatabase(port: number, password: string, dataDir: string): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl(SUPERUSER, password, port, 'postgres'),
    connectionTimeoutMillis: CONNECT_MS,
  })
  client.on('error', () => {}) // the statement that is waiting fails by itself
  try {
    await client.connect()
    const { rows } = await client.query<{ role: boolean; database: boolean }>(
      `select exists (select from pg_roles where rolname = $1) as role,
              exists (select from pg_database where datname = $2) as database`,
      [APPLICATION_ROLE, DATABASE],
    )
    const found = rows[0]
    if (!found?.role) {
      await client.query('set log_min_error_statement = panic') // a failing statement would be logged with the password
      await client.query(`create role ${APPLICATION_ROLE} login password '${password}'`)
    }
    if (!found?.database) await client.query(`create database ${DATABASE} owner ${APPLICATION_ROLE}`)
  } catch (error) {
    if (errorCode(error) !== INVALID_PASSWORD) throw cannotUse(dataDir, error)
    throw new EmbeddedPostgresError(
      'not-ours',
      `the password in ${dataDir}/postgres-password is not that of the database beside it: ` +
        'remove that file and start again, which sets a new password',
      error,
    )
  } finally {
    await client.end().catch(() => {})
  }
}

const cannotUse = (dataDir: string, error: unknown) =>
  new EmbeddedPostgresError(
    'failed',
    `the embedded PostgreSQL in data folder ${dataDir} has started but cannot be used ` +
      `(${error instanceof Error ? error.message : String(error)}); its log is ${dataDir}/postgres.log`,
    error,
  )
