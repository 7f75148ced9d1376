import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createHasCheck } from '../../../../src/checks/ping/has-check.ts'
import type { Database } from '../../../../src/store/postgres/database.ts'
import { settle } from '../../../support/until.ts'

const KNOWN = randomUUID()

/** A database whose statements are answered one by one. */
function createDatabase() {
  const answers: (PromiseWithResolvers<unknown[][]> & { ids: number })[] = []
  const queryColumns = ({ values }: { values: readonly unknown[] }) => {
    // The header of an array has 20 bytes, each UUID 20.
    const answer = { ...Promise.withResolvers<unknown[][]>(), ids: ((values[0] as Buffer).length - 20) / 20 }
    answers.push(answer)
    return answer.promise
  }
  return { database: { queryColumns } as unknown as Database, answers }
}

it('asks for all ids that wait while a statement is in flight in the next one, each once', async () => {
  const { database, answers } = createDatabase()
  const hasCheck = createHasCheck(database)
  const first = hasCheck(KNOWN)
  const others = [hasCheck(KNOWN), hasCheck(KNOWN), hasCheck(randomUUID())]
  expect(answers.map(({ ids }) => ids)).toEqual([1])
  answers[0]!.resolve([[KNOWN, 7]])
  expect(await first).toBe(true)
  expect(answers.map(({ ids }) => ids)).toEqual([1, 2])
  answers[1]!.resolve([[KNOWN, 7]])
  expect(await Promise.all(others)).toEqual([true, true, false])
})

it('fails with the statement, and works again', async () => {
  const { database, answers } = createDatabase()
  const hasCheck = createHasCheck(database)
  const [first, second] = [hasCheck(KNOWN), hasCheck(KNOWN)]
  answers[0]!.reject(new Error('no connection'))
  await expect(first).rejects.toThrow('no connection')
  answers[1]!.resolve([])
  expect(await second).toBe(false)
})

it('takes 10,000 ids, of which 500 go at once, and rejects one more', async () => {
  const { database, answers } = createDatabase()
  const hasCheck = createHasCheck(database)
  const asked = Array.from({ length: 10_500 }, () => hasCheck(randomUUID()).catch((error: Error) => error.message))
  expect(answers.map(({ ids }) => ids)).toEqual([1])
  const last = await asked.at(-1)
  expect(last).toContain('cannot reach its database')
  for (let i = 0; i < 21; i += 1) {
    answers[i]!.resolve([])
    await settle()
  }
  expect(new Set(answers.map(({ ids }) => ids))).toEqual(new Set([1, 500]))
  const results = await Promise.all(asked)
  expect(results.filter((result) => result === false)).toHaveLength(10_001)
})
