/** What a person reads who set DATABASE_URL wrongly: the first connection as main.ts makes it, and the line that explains its error. */

import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { explainDatabaseError } from '../../src/store/postgres/explain.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { createTestDatabase } from '../support/database.ts'
import { findFreePort } from '../support/ports.ts'
import { use } from '../support/use.ts'

const PASSWORD = 'hunter2-s3cret'

const test = use(createTestDatabase)
beforeAll(async () => {
  await test.database.query(`create role guest_of_${process.pid} login password '${PASSWORD}'`)
})
afterAll(async () => {
  await test.database.query(`drop owned by guest_of_${process.pid}; drop role guest_of_${process.pid}`)
})

async function failureOf(url: string): Promise<string> {
  const database = createDatabase({ url, name: 'start', connections: 1, patient: true })
  const error = await migrate(database).catch((reason: unknown) => reason)
  await database.close()
  expect(error).toBeInstanceOf(Error)
  const line = explainDatabaseError(error, url)
  expect(line).not.toContain(new URL(url).password)
  return line
}

function changed(change: (url: URL) => void): string {
  const url = new URL(test.url)
  change(url)
  return url.href
}

it.each<[string, (url: URL) => void, RegExp]>([
  [
    'a wrong password',
    (url) => (url.password = PASSWORD),
    /^DATABASE_URL: [\w.:]+ refuses user \w+ or the password: correct them$/,
  ],
  [
    'an unknown user',
    (url) => Object.assign(url, { username: 'nobody', password: PASSWORD }),
    /^DATABASE_URL: [\w.:]+ refuses user nobody or the password: correct them$/,
  ],
  [
    'an unknown database',
    (url) => (url.pathname = '/nowhere'),
    /^DATABASE_URL: there is no database nowhere on [\w.:]+: create it, or name another$/,
  ],
  [
    'an unknown host',
    (url) => (url.hostname = 'nowhere.invalid'),
    /^DATABASE_URL: there is no host nowhere\.invalid: correct the name$/,
  ],
])('%s is explained in a line', async (_name, change, line) => {
  expect(await failureOf(changed(change))).toMatch(line)
})

it('a port without a listener is explained in a line', async () => {
  const port = await findFreePort()
  expect(await failureOf(changed((url) => Object.assign(url, { hostname: '127.0.0.1', port })))).toBe(
    `DATABASE_URL: nothing listens on 127.0.0.1:${port}: start PostgreSQL there, or correct the address`,
  )
})

it('a user who may not create tables is explained in a line', async () => {
  await test.database.query('drop schema public cascade')
  await test.database.query(`create schema public; grant usage on schema public to guest_of_${process.pid}`)
  const url = changed((copy) => Object.assign(copy, { username: `guest_of_${process.pid}`, password: PASSWORD }))
  expect(await failureOf(url)).toMatch(/^DATABASE_URL: user guest_of_\d+ lacks rights in database /)
})

it('a user who may not create the extension of searches reads what to do; with the extension the same user starts', async () => {
  await test.database.query('drop schema public cascade')
  await test.database.query(`create schema public; grant create, usage on schema public to guest_of_${process.pid}`)
  const url = changed((copy) => Object.assign(copy, { username: `guest_of_${process.pid}`, password: PASSWORD }))
  const line =
    /^the database lacks the extension pg_trgm \(.+\): run "create extension pg_trgm" in the database as its owner/
  expect(await failureOf(url)).toMatch(line)
  const { rows } = await test.database.query(`select from pg_tables where schemaname = 'public'`)
  expect(rows).toEqual([])
  await test.database.query('create extension pg_trgm')
  const database = createDatabase({ url, name: 'start', connections: 1, patient: true })
  onTestFinished(() => database.close())
  expect(await migrate(database)).toMatchObject({ from: 0 })
})

it('a server that lacks the extension of searches, or does not allow it, is explained in a line; an outage has its own line', async () => {
  const failing = (code: string) =>
    ({
      ...test.database,
      transaction: (work) =>
        test.database.transaction((tx) =>
          work({
            ...tx,
            query: (async (statement: Parameters<typeof tx.query>[0], values?: unknown[]) => {
              if (statement !== 'create extension if not exists pg_trgm') return tx.query(statement, values)
              throw Object.assign(new Error('as the server says'), { code, severity: 'ERROR' })
            }) as typeof tx.query,
          }),
        ),
    }) as typeof test.database
  const lineFor = (code: string) =>
    migrate(failing(code)).catch((error: unknown) => explainDatabaseError(error, test.url))
  for (const code of ['58P01', '0A000', '42501'])
    expect(await lineFor(code)).toMatch(/^the database lacks the extension pg_trgm \(as the server says\): run /)
  expect(await lineFor('57P03')).toMatch(/is still starting up/)
})

it('a read-only database is explained in a line', async () => {
  const url = changed((copy) => copy.searchParams.set('options', '-c default_transaction_read_only=on'))
  expect(await failureOf(url)).toMatch(/^DATABASE_URL: .* is read-only/)
})

it('a schema newer than the program is rejected', async () => {
  await test.database.query('drop schema public cascade')
  await test.database.query('create schema public')
  await migrate(test.database)
  await test.database.query(`insert into schema_migrations (version, name) values (4711, '4711_future.sql')`)
  expect(await failureOf(test.url)).toMatch(
    /^the database has schema 4711, this program knows up to \d+: run the newer release that made it, or restore a backup of schema \d+$/,
  )
})
