/** Migrates to this code's version: numbered files, each in a transaction, under a lock: replicas start at once. */

import { readdir, readFile } from 'node:fs/promises'
import { type Database, MARK, type Queryable } from './database.ts'
import { MIGRATION_LOCK } from './locks.ts'
import { FEATURE_NOT_SUPPORTED, sqlStateOf } from './sqlstate.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/** This program cannot use the database. The message says why, and what to do. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError'
}

const OLDEST_SERVER = 140_000

export interface Migrated {
  readonly from: number
  readonly to: number
}

/** Returns the versions before and after. Throws SchemaError, AppError `unavailable`, or the error of a migration. */
export async function migrate(database: Database): Promise<Migrated> {
  await assertUsable(database)
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.sql')).sort()
  const latest = files.length
  let from: number | undefined
  for (;;) {
    const version = await database.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK])
      // While a migration waits for a lock on a table, all later statements on that table wait too. The start is repeated.
      await tx.query("set local lock_timeout = '1s'")
      await tx.query(
        'create table if not exists schema_migrations (version int primary key, name text not null, applied_at timestamptz not null default now())',
      )
      await createTrigrams(tx)
      const { rows } = await tx.query<{ version: number }>(
        'select coalesce(max(version), 0) as version from schema_migrations',
      )
      const current = rows[0]!.version
      if (current >= latest) return current
      const name = files[current]!
      const version = current + 1
      await tx.query(await readFile(new URL(name, FOLDER), 'utf8'))
      await tx.query('insert into schema_migrations (version, name) values ($1, $2)', [version, name])
      return current
    })
    from ??= version
    if (version > latest) {
      throw new SchemaError(
        `the database has schema ${version}, this program knows up to ${latest}: run the newer release that made it, or restore a backup of schema ${latest}`,
      )
    }
    if (version === latest) return { from, to: latest }
  }
}

export const POOLER =
  'a connection pooler (PgBouncer?) drops the settings of sessions: point DATABASE_URL to PostgreSQL itself'

async function assertUsable(database: Database): Promise<void> {
  const { rows } = await database.query<{ number: string; text: string; mark: string | null }>(
    `select current_setting('server_version_num') as number, current_setting('server_version') as text,
      current_setting('${MARK}', true) as mark`,
  )
  const { number, text, mark } = rows[0]!
  if (mark !== 'on') throw new SchemaError(POOLER)
  if (Number(number) < OLDEST_SERVER)
    throw new SchemaError(
      `the database is PostgreSQL ${text}, 14 or later is needed: upgrade it, or point DATABASE_URL to another`,
    )
}

/** The server lacks the extension or does not allow it, or this user may not create it. */
const NO_EXTENSION = new Set(['58P01', FEATURE_NOT_SUPPORTED, '42501'])

/**
 * Searches need the extension pg_trgm. The caller holds the lock: two processes that create an extension at once fail.
 */
async function createTrigrams(tx: Queryable): Promise<void> {
  try {
    await tx.query('create extension if not exists pg_trgm')
  } catch (error) {
    if (!NO_EXTENSION.has(sqlStateOf(error) ?? '')) throw error
    throw new SchemaError(
      `the database lacks the extension pg_trgm (${(error as Error).message}): run "create extension pg_trgm" in the database as its owner or as a superuser; a server without the extension gets the files with the package postgresql-contrib`,
    )
  }
}
