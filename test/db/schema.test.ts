import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { explainDatabaseError, mayPass } from '../../src/store/postgres/explain.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { describeSchema } from '../../tools/generate/schema.ts'
import { createTestDatabase } from '../support/database.ts'
import { use } from '../support/use.ts'

const FOLDER = new URL('../../src/store/postgres/migrations/', import.meta.url)
const FILES = readdirSync(FOLDER).sort()
const NEWEST = FILES.length

const test = use(createTestDatabase)

describe('the schema', () => {
  it('is the one in test/schema.sql (`npm run db:schema` writes it)', async () => {
    expect(await describeSchema(test.database)).toBe(readFileSync(new URL('../schema.sql', import.meta.url), 'utf8'))
  })

  it('is made once by replicas that start together', async () => {
    await test.database.query('drop schema public cascade; create schema public')
    const replicas = Array.from({ length: 3 }, () =>
      createDatabase({ url: test.url, name: 'replica', connections: 1, patient: true }),
    )
    await Promise.all(replicas.map(migrate))
    await Promise.all(replicas.map((replica) => replica.close()))
    const { rows } = await test.database.query<{ count: number }>('select count(*) from schema_migrations')
    expect(rows[0]!.count).toBe(NEWEST)
  })

  it('that is newer than the program is refused, with both versions in the message', async () => {
    await test.database.query(`insert into schema_migrations (version, name) values (99, '0099_future.sql')`)
    await expect(migrate(test.database)).rejects.toThrow(
      `the database has schema 99, this program knows up to ${NEWEST}:`,
    )
  })

  it('waits for no table that another session keeps locked: all is as before, and the next start tries again', async () => {
    await test.database.query('drop schema public cascade; create schema public; create extension pg_trgm')
    for (const file of FILES.slice(0, 3)) await test.database.query(readFileSync(new URL(file, FOLDER), 'utf8'))
    await test.database.query(`
      create table schema_migrations (version int primary key, name text not null, applied_at timestamptz not null default now());
      insert into schema_migrations (version, name) values (1, ''), (2, ''), (3, '')`)
    // As the start has it: without this migration's own limit it would wait for as long as the lock is there.
    const database = createDatabase({ url: test.url, name: 'start', connections: 2, patient: true })
    onTestFinished(() => database.close())
    const { locked, unlock } = lockChecks()
    onTestFinished(unlock)
    await locked

    const error = await migrate(database).catch((problem: unknown) => problem)
    expect(error).toMatchObject({ cause: { code: '55P03' } })
    expect(mayPass(error, false)).toBe(true)
    expect(explainDatabaseError(error, test.url)).toBe(
      `DATABASE_URL: another session on ${new URL(test.url).host} keeps a table locked (a dump? a long query?): end it, then start again`,
    )
    expect(await versionOf()).toBe(3)

    await unlock()
    expect(await migrate(database)).toEqual({ from: 3, to: NEWEST })
    expect(await versionOf()).toBe(NEWEST)
  })
})

/** As one who writes does, until `unlock`. The fourth migration refers to the table. */
function lockChecks(): { locked: Promise<void>; unlock: () => Promise<void> } {
  const isLocked = Promise.withResolvers<void>()
  const isOver = Promise.withResolvers<void>()
  const holding = test.database.transaction(async (tx) => {
    await tx.query('lock table checks in row exclusive mode')
    isLocked.resolve()
    await isOver.promise
  })
  holding.catch(isLocked.reject)
  return {
    locked: isLocked.promise,
    async unlock() {
      isOver.resolve()
      await holding
    },
  }
}

async function versionOf(): Promise<number> {
  const { rows } = await test.database.query<{ version: number }>(
    'select max(version) as version from schema_migrations',
  )
  return rows[0]!.version
}
