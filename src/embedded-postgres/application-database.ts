import pg from 'pg'
import { errorCode } from '../runtime/error-code.ts'
import { APPLICATION_ROLE, DATABASE, SUPERUSER } from './cluster.ts'
import { EmbeddedPostgresError } from './failure.ts'

const CONNECT_MS = 10_000
const INVALID_PASSWORD = '28P01'

/** The URL of a database of the server on `port`. The generated password needs no escaping. */
export function databaseUrl(role: string, password: string, port: number, database: string): string {
  return `postgres://${role}:${password}@127.0.0.1:${port}/${database}`
}

/**
 * Makes the application's role and database where they are missing. The role owns the database and is not a superuser, so
 * that everything which works here works on any other PostgreSQL. Throws EmbeddedPostgresError.
 */
export async function ensureApplicationDatabase(port: number, password: string, dataDir: string): Promise<void> {
  const client = new pg.Client({
    connectionString: databaseUrl(SUPERUSER, password, port, 'postgres'),
    connectionTimeoutMillis: CONNECT_MS,
  })
  // The statement that waits fails by itself.
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ role: boolean; database: boolean }>(
      `select exists (select from pg_roles where rolname = $1) as role,
              exists (select from pg_database where datname = $2) as database`,
      [APPLICATION_ROLE, DATABASE],
    )
    if (!rows[0]?.role) {
      // The log would show a failing statement with the password.
      await client.query('set log_min_error_statement = panic')
      await client.query(`create role ${APPLICATION_ROLE} login password '${password}'`)
    }
    if (!rows[0]?.database) await client.query(`create database ${DATABASE} owner ${APPLICATION_ROLE}`)
  } catch (error) {
    if (errorCode(error) === INVALID_PASSWORD)
      throw new EmbeddedPostgresError(
        'not-ours',
        `the password in ${dataDir}/postgres-password is not the one of the database beside it: ` +
          'remove that file and start again, which sets a new password',
        error,
      )
    throw new EmbeddedPostgresError(
      'failed',
      `the embedded PostgreSQL in data folder ${dataDir} has started but cannot be used ` +
        `(${(error as Error).message}); its log is ${dataDir}/postgres.log`,
      error,
    )
  } finally {
    await client.end().catch(() => {})
  }
}
