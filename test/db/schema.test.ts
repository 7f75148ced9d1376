import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { describeSchema } from '../support/schema.ts'

const NEWEST = readdirSync(new URL('../../src/store/postgres/migrations', import.meta.url)).length

let test: TestDatabase
beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())

describe('the schema', () => {
  it('is the one in test/schema.sql (`npm run db:schema` writes it)', async () => {
    expect(await describeSchema(test.database)).toBe(readFileSync(new URL('../schema.sql', import.meta.url), 'utf8'))
  })

  it('is made once by replicas that start together', async () => {
    await test.database.query('drop schema public cascade')
    await test.database.query('create schema public')
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
})
