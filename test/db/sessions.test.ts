import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createDatabase, type Database } from '../../src/store/postgres/database.ts'
import { CommitUnknown } from '../../src/store/postgres/sqlstate.ts'
import { createTestDatabase } from '../support/database.ts'
import { use } from '../support/use.ts'

const BUDGET_MS = 4_000

let database: Database

const test = use(createTestDatabase)
beforeAll(async () => {
  await test.database.query("create table notes (text text check (text <> 'poison'))")
  database = createDatabase({ url: test.url, name: 'sessions', connections: 2 })
})
afterAll(async () => {
  await database.close()
})

const notes = async () => {
  const { rows } = await test.database.query<{ text: string }>('delete from notes returning text')
  return rows.map(({ text }) => text)
}
const textOf = (text: string) => ({ text: 'insert into notes values ($1)', values: [text] })

it('A group transaction reads and writes in one transaction, and returns what the write returned', async () => {
  const numberOf = 'select pg_current_xact_id()::text as number, pg_current_xact_id_if_assigned() is not null as is_in'
  const result = await database.session((session) =>
    session.groupTransaction(
      BUDGET_MS,
      async (tx) => (await tx.query<{ number: string }>(numberOf)).rows[0]!.number,
      async (tx, before) => {
        const [{ rows }] = await Promise.all([tx.query<{ number: string }>(numberOf), tx.query(textOf('kept'))])
        return rows[0]!.number === before
      },
    ),
  )
  expect(result).toBe(true)
  expect(await notes()).toEqual(['kept'])
})

it.each(['read', 'write'])(
  'A group transaction whose %s fails leaves nothing, and the connection goes on',
  async (phase) => {
    await database.session(async (session) => {
      const failing = session.groupTransaction(
        BUDGET_MS,
        (tx) => Promise.all([tx.query(textOf('lost')), phase === 'read' && tx.query(textOf('poison'))]),
        (tx) => Promise.all([tx.query(textOf('lost')), tx.query(textOf('poison'))]),
      )
      await expect(failing).rejects.toMatchObject({ code: '23514' })
      await session.within(BUDGET_MS, (db) => db.query(textOf('later')))
    })
    expect(await notes()).toEqual(['later'])
  },
)

it.each(['read', 'write'])(
  'A connection that breaks in the %s leaves a commit unknown only in the write',
  async (phase) => {
    const cut = 'select pg_terminate_backend(pg_backend_pid())'
    const breaking = database.session((session) =>
      session
        .groupTransaction(
          BUDGET_MS,
          (tx) => tx.query(phase === 'read' ? cut : 'select 1'),
          (tx) => tx.query(cut),
        )
        .catch((error) => {
          expect(error instanceof CommitUnknown).toBe(phase === 'write')
          throw error
        }),
    )
    await expect(breaking).rejects.toMatchObject({ code: 'unavailable' })
  },
)

it('Statements of a session go out without waiting for each other', async () => {
  const sent = vi.spyOn(pg.Client.prototype, 'query')
  await database.session(async (session) => {
    sent.mockClear()
    await session.within(BUDGET_MS, async (db) => {
      const all = [1, 2, 3].map((number) => db.query(`select pg_sleep(0.02), ${number} as number`))
      expect(sent.mock.calls).toHaveLength(3)
      expect((await Promise.all(all)).map(({ rows }) => (rows[0] as { number: number }).number)).toEqual([1, 2, 3])
    })
  })
  sent.mockRestore()
})

it('A budget that runs out ends the connection; the next session has another one', async () => {
  const startedAt = performance.now()
  const hung = database.session((session) => session.within(50, (db) => db.query('select pg_sleep(30)')))
  await expect(hung).rejects.toMatchObject({ cause: { message: expect.stringMatching(/took too long/) } })
  // Far below the 30 seconds of the statement.
  expect(performance.now() - startedAt).toBeLessThan(15_000)
  expect((await database.query<{ one: number }>('select 1 as one')).rows).toEqual([{ one: 1 }])
})
