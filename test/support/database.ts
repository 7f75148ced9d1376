/** Databases of the run's PostgreSQL, one for each test file: migrated ones are cloned from a template, which the first file makes. */

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { createDatabase, type Database } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { eventually } from './until.ts'

const TEMPLATE = 'heartbeat_template'
const TEMPLATE_LOCK = 4711
/** For the statements of a test, some of which write thousands of rows: on a busy machine, that takes longer than the service lets one take. */
export const PATIENT_MS = 20_000

export interface EmptyDatabase extends AsyncDisposable {
  readonly url: string
  close(): Promise<void>
}

export interface TestDatabase extends EmptyDatabase {
  readonly database: Database
  /** Empties every table except for what migrations put there. */
  clear(): Promise<void>
}

/** A database without tables, for programs that migrate it themselves. */
export function createEmptyDatabase(): Promise<EmptyDatabase> {
  return makeDatabase(() => Promise.resolve('template1'))
}

/** A migrated database with a pool of its own. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { url, close } = await makeDatabase(prepareTemplate)
  const database = createDatabase({ url, name: 'test', connections: 5, statementMs: PATIENT_MS })
  // The first connection to a new database can take longer than the pool waits, on a machine that is busy with other work.
  await eventually('the new database is reached', async () => (await database.query('select')).rowCount === 1)
  let emptyTables: string | undefined
  const closeBoth = async () => {
    await database.close()
    await close()
  }
  return {
    url,
    database,
    async clear() {
      emptyTables ??= await writeEmptyTables(database)
      await database.query(emptyTables)
    },
    close: closeBoth,
    [Symbol.asyncDispose]: closeBoth,
  }
}

/**
 * Deletes, which takes a fortieth of the time of a truncate where tables hold a few rows; foreign keys are left unchecked meanwhile. Statements
 * that are sent together are one transaction, which ends when one fails: what a failed test has left cannot fail all that come after it.
 */
async function writeEmptyTables(database: Database): Promise<string> {
  const { rows } = await database.query<{ statement: string }>(
    `select format('delete from %I', tablename) as statement from pg_tables
      where schemaname = 'public' and tablename not in ('schema_migrations', 'service_beat')
    union all
    select format('select setval(%L, %s, false)', sequencename, start_value) from pg_sequences where schemaname = 'public'
    union all
    select 'update service_beat set beat_at = null'`,
  )
  const statements = rows.map(({ statement }) => statement)
  return ['set local session_replication_role = replica', ...statements].join(';')
}

/** Resolves when at least this many statements of the database wait for a lock. */
export async function untilWaiting({ database }: Pick<TestDatabase, 'database'>, count: number): Promise<void> {
  await eventually(`${count} statements wait for a lock`, async () => {
    const { rows } = await database.query<{ waiting: number }>(
      `select count(*) as waiting from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows[0]!.waiting >= count
  })
}

async function makeDatabase(template: (admin: pg.Client, adminUrl: string) => Promise<string>): Promise<EmptyDatabase> {
  const adminUrl = inject('postgresUrl')
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await asAdmin(adminUrl, async (admin) => {
    // To copy the files costs half of what it costs to copy them through the log, the default.
    await admin.query(`create database ${name} template ${await template(admin, adminUrl)} strategy file_copy`)
  })
  const close = () => asAdmin(adminUrl, (admin) => admin.query(`drop database ${name} with (force)`))
  return { url: withDatabase(adminUrl, name), close, [Symbol.asyncDispose]: close }
}

/** Returns the name of the template; the first of all workers makes it. */
async function prepareTemplate(admin: pg.Client, adminUrl: string): Promise<string> {
  await admin.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK])
  const { rowCount } = await admin.query('select from pg_database where datname = $1 and datistemplate', [TEMPLATE])
  if (rowCount !== 0) return TEMPLATE
  await admin.query(`drop database if exists ${TEMPLATE}`)
  await admin.query(`create database ${TEMPLATE}`)
  const url = withDatabase(adminUrl, TEMPLATE)
  const database = createDatabase({ url, name: 'template', connections: 1, patient: true })
  await migrate(database)
  await database.close()
  await admin.query(`alter database ${TEMPLATE} is_template true`)
  return TEMPLATE
}

async function asAdmin(url: string, use: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  try {
    await use(admin)
  } finally {
    await admin.end()
  }
}

function withDatabase(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}
