import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createDatabase, type Database, type Queryable, type Session } from '../../src/store/postgres/database.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const BUDGET_MS = 4_000

let test: TestDatabase
let database: Database

beforeAll(async () => {
  test = await createTestDatabase()
  database = createDatabase({ url: test.url, name: 'sessions', connections: 2 })
})
afterAll(async () => {
  await database.close()
  await test.close()
})

/** The transaction that a statement runs in, once one has a number. */
const transactionOf = async (db: Queryable) =>
  (await db.queryColumns({ text: 'select pg_current_xact_id_if_assigned()::text' }))[0]![0] as string | null

const begin = async (tx: Queryable) =>
  (await tx.queryColumns({ text: 'select pg_current_xact_id()::text' }))[0]![0] as string

function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** A transaction that stays open until `open` is called, or fails then. */
async function holdOpen(
  session: Session,
  fails = false,
): Promise<{ id: string; open: () => void; ended: Promise<unknown> }> {
  const { opened, open } = gate()
  const { opened: begun, open: tellBegun } = gate()
  let id = ''
  const ended = session
    .groupTransaction(BUDGET_MS, async (tx) => {
      id = await begin(tx)
      tellBegun()
      await opened
      if (fails) throw new Error('changed my mind')
      return { result: await transactionOf(tx), save: async () => {} }
    })
    .catch((error: Error) => error.message)
  await begun
  return { id, open, ended }
}

it.each([
  ['that commits', false],
  ['that fails', true],
])("No statement of another user of the session gets into somebody's transaction %s", async (_, fails) => {
  await database.session(async (session) => {
    const { id, open, ended } = await holdOpen(session, fails)
    const seen: (string | null)[] = []
    const others = [1, 2, 3].map(() =>
      session.within(BUDGET_MS, async (db) => seen.push(await transactionOf(db), await transactionOf(db))),
    )
    await sleep(30)
    expect(seen).toEqual([])
    open()
    expect(await ended).toBe(fails ? 'changed my mind' : id)
    await Promise.all(others)
    expect(seen).toEqual(Array(6).fill(null))
  })
})

it('Transactions of several users follow each other', async () => {
  await database.session(async (session) => {
    const ids = await Promise.all(
      [1, 2, 3, 4].map(() =>
        session.groupTransaction(BUDGET_MS, async (tx) => {
          const id = await begin(tx)
          await sleep(5)
          return { result: [id, await transactionOf(tx)], save: async () => {} }
        }),
      ),
    )
    for (const [first, last] of ids) expect(last).toBe(first)
    expect(new Set(ids.map(([id]) => id)).size).toBe(4)
  })
})

it('Statements of several users go out at once, and in their order', async () => {
  const sent = vi.spyOn(pg.Client.prototype, 'query')
  await database.session(async (session) => {
    sent.mockClear()
    const order: number[] = []
    const answers = [1, 2, 3].map((number) =>
      session.within(BUDGET_MS, async (db) => {
        await db.query('select pg_sleep(0.02)')
        order.push(number)
      }),
    )
    // A turn of the event loop, which no answer can have come in: the first takes 20 ms.
    await new Promise((resolve) => setImmediate(resolve))
    expect({ sent: sent.mock.calls.length, order }).toEqual({ sent: 3, order: [] })
    await Promise.all(answers)
    expect(order).toEqual([1, 2, 3])
  })
  sent.mockRestore()
})

it('A wait for somebody else counts for the budget, and ends the connection for both', async () => {
  const message = (error: Error) => error.message
  const startedAt = performance.now()
  const session = database.session(async (session) => {
    const hung = session.groupTransaction(BUDGET_MS, async (tx) => {
      await tx.query('select pg_sleep(30)')
      return { result: null, save: async () => {} }
    })
    const late = session.within(50, (db) => db.query('select 1'))
    const [first] = await Promise.all([hung.catch(message), late.catch(message)])
    expect(first).toMatch(/took too long/)
    await late
  })
  await expect(session).rejects.toThrow()
  expect(performance.now() - startedAt).toBeLessThan(BUDGET_MS / 2)
  // The next one gets another connection.
  expect((await database.query<{ one: number }>('select 1 as one')).rows).toEqual([{ one: 1 }])
})
