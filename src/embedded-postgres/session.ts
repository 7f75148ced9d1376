/** Connections of the superuser: who owns a server, and the database of the application. */

import pg from 'pg'
import { systemClock } from '../runtime/clock.ts'
import { APPLICATION_ROLE, DATABASE, SUPERUSER } from './cluster.ts'
import { EmbeddedPostgresError } from './failure.ts'

export type Client = pg.Client

const CONNECT_MS = 10_000
/** The letters `ownr`: the same in all releases. Others hold locks with small numbers in the database `postgres`. */
const OWNER_LOCK = 0x6f776e72
/** A server takes a moment to notice that its owner was killed. */
const OWNER_TRIES = 20
const OWNER_PAUSE_MS = 50

/** The URL of a database of the server on `port`. The generated password needs no escaping. */
export function databaseUrl(role: string, password: string, port: number, database: string): string {
  return `postgres://${role}:${password}@127.0.0.1:${port}/${database}`
}

export async function connect(port: number, password: string): Promise<Client> {
  const client = new pg.Client({
    connectionString: databaseUrl(SUPERUSER, password, port, 'postgres'),
    connectionTimeoutMillis: CONNECT_MS,
    application_name: `process ${process.pid}`,
  })
  // The statement that waits fails by itself.
  client.on('error', () => {})
  try {
    await client.connect()
    return client
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
}

/**
 * Makes this process the owner of the server for as long as the connection lasts: the owner alone stops the server, and
 * the server notices when the owner was killed. Throws EmbeddedPostgresError `in-use` when another process is the
 * owner.
 */
export async function own(client: Client, dataDir: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const { rows } = await client.query('select pg_try_advisory_lock($1) as is_ours', [OWNER_LOCK])
    if (rows[0].is_ours) return
    if (tries === OWNER_TRIES) break
    await systemClock.sleep(OWNER_PAUSE_MS)
  }
  const { rows } = await client.query(
    `select application_name from pg_stat_activity join pg_locks using (pid) where locktype = 'advisory' and objid = $1`,
    [OWNER_LOCK],
  )
  const owner = rows[0]?.application_name ?? 'another process'
  throw new EmbeddedPostgresError(
    'in-use',
    `data folder ${dataDir} is in use by ${owner}: stop it, or set DATA_DIR to another folder`,
  )
}

/**
 * Makes the application's role and database where they are missing. The role owns the database and is not a superuser,
 * so that everything which works here works on any other PostgreSQL.
 */
export async function ensureApplicationDatabase(client: Client, password: string): Promise<void> {
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
}
