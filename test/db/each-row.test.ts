import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type Database } from '../../src/store/postgres/database.ts'
import { createTestDatabase, PATIENT_MS } from '../support/database.ts'
import { use } from '../support/use.ts'

let database: Database
const test = use(createTestDatabase)
beforeAll(async () => {
  database = createDatabase({ url: test.url, name: 'rows', connections: 1, statementMs: PATIENT_MS })
})
afterAll(async () => {
  await database.close()
})

/** Three columns, the middle one null in every other row. */
const numbers = (count: number) => ({
  text: `select n, case when n % 2 = 0 then 'even' end, true from generate_series(1, $1::int) n`,
  values: [count],
})

async function collect(count: number): Promise<unknown[][]> {
  const rows: unknown[][] = []
  await database.eachRow(numbers(count), (row) => rows.push(row))
  return rows
}

describe('reading row by row', () => {
  it('passes every row once, in order', async () => {
    expect(await collect(3)).toEqual([
      [1, null, true],
      [2, 'even', true],
      [3, null, true],
    ])
    expect(await collect(0)).toEqual([])
    expect((await collect(20_001)).map(([n]) => n)).toEqual(Array.from({ length: 20_001 }, (_, index) => index + 1))
  })

  it('yields to the event loop in between, however many rows there are', async () => {
    let rows = 0
    let isOver = false
    const seen: number[] = []
    const look = () => {
      if (isOver) return
      seen.push(rows)
      setImmediate(look)
    }
    setImmediate(look)
    await database.eachRow(numbers(100_000), () => {
      rows += 1
      // Slower than PostgreSQL, so that rows pile up.
      for (const until = performance.now() + 0.005; performance.now() < until; );
    })
    isOver = true
    const steps = seen.map((count, index) => count - (seen[index - 1] ?? 0))
    // A turn of the event loop has the rows of one fetch.
    expect(steps.filter((step) => step > 0)).toEqual(Array.from({ length: 100 }, () => 1_000))
  })

  it('throws what onRow threw, and the connection goes on', async () => {
    const received: unknown[] = []
    const reading = database.eachRow(numbers(5_000), ([n]) => {
      received.push(n)
      if (n === 2) throw new Error('enough')
    })
    await expect(reading).rejects.toThrow('enough')
    expect(received).toEqual([1, 2])
    expect(await collect(1)).toEqual([[1, null, true]])
  })

  it('throws as other statements do: an SQL error, or a broken connection', async () => {
    await expect(database.eachRow({ text: 'select 1 / 0' }, () => {})).rejects.toMatchObject({ code: '22012' })
    expect(await collect(1)).toEqual([[1, null, true]])
    const own = createDatabase({ url: test.url, name: 'cut', connections: 1 })
    const cut = own.eachRow(
      { text: 'select pg_terminate_backend(pg_backend_pid()) from generate_series(1, 2)' },
      () => {},
    )
    await expect(cut).rejects.toMatchObject({ code: 'unavailable' })
    await own.close()
  })
})
