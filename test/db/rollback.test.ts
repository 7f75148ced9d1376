/**
 * The way back of the database: the statement of docs/operations.md lets the release before start, and then this one again.
 */

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { listBlocksOf } from '../support/documents.ts'
import { findDueFormerly } from '../support/former-release.ts'
import { describeSchema } from '../support/schema.ts'
import { restoreFixture } from '../support/upgrade/restore.ts'

/** Of the release before v1. */
const FORMER = 17
const statement = listBlocksOf('test/db/rollback.test.ts')[0]!.text
const stack = new AsyncDisposableStack()
let database: Database

beforeAll(async () => {
  const restored = await restoreFixture()
  stack.defer(() => restored.close())
  database = createDatabase({ url: restored.url, name: 'test', connections: 2, patient: true })
  stack.defer(() => database.close())
})
afterAll(() => stack.disposeAsync())

async function findSchema(): Promise<number> {
  const { rows } = await database.query<{ version: number }>('select max(version) as version from schema_migrations')
  return rows[0]!.version
}

/** All rows of the tables that people fill. */
async function readRows(): Promise<unknown[]> {
  const tables = [
    'checks',
    'check_states',
    'projects',
    'channels',
    'pings',
    'flips',
    'events',
    'deliveries',
    'tombstones',
  ]
  return Promise.all(tables.map(async (table) => (await database.query(`select * from ${table} order by 1, 2`)).rows))
}

/** Lets a check that is overdue follow a source. Returns its key. */
async function followSource(): Promise<number> {
  const { rows } = await database.query<{ key: number }>(
    `update check_states set job_area = 'default', status = 1, expected_at = now() - interval '2 minutes', due_at = now() - interval '1 minute',
      wake_at = now() - interval '1 minute' where check_key = (select min(check_key) from check_states) returning check_key as key`,
  )
  const { key } = rows[0]!
  await database.query(`insert into cron_jobs (check_key, name) values ($1, 'nightly')`, [key])
  return key
}

it('Upgrade: the schema that the release before knows is named again, and the next upgrade finds all that it left', async () => {
  const { to } = await migrate(database)
  const followed = await followSource()
  const rows = await readRows()
  await database.query(statement)
  // What its start compares with its own number.
  expect(await findSchema()).toBe(FORMER)
  expect(await readRows()).toEqual(rows)
  // Its evaluator calls nothing missed whose Jobs nothing records any more.
  await database.query('update service_beat set beat_at = now()')
  expect(await findDueFormerly(database)).not.toContain(followed)
  expect(await migrate(database)).toEqual({ from: FORMER, to })
  expect(await readRows()).toEqual(rows)
  expect(await describeSchema(database)).toBe(readFileSync(new URL('../schema.sql', import.meta.url), 'utf8'))
})
