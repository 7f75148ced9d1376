/** How long look-ups wait, and when they are tried again. What they find is tested in test/db/pings/find-addressed.test.ts. */

import { expect, it } from 'vitest'
import { createFindAddressed } from '../../../../src/checks/ping/find-addressed.ts'
import { unavailable } from '../../../../src/domain/errors.ts'
import type { Context } from '../../../../src/store/context.ts'
import type { Database } from '../../../../src/store/postgres/database.ts'

/** A database whose look-ups are answered one by one, and a clock that is moved by hand. */
function createStage() {
  const clock = { time: 0, now: () => clock.time }
  const asked: (PromiseWithResolvers<unknown[][]> & { tokens: string[]; budgetMs: number })[] = []
  const session = (use: (session: unknown) => Promise<unknown>) =>
    use({
      within: (budgetMs: number, work: (db: unknown) => Promise<unknown>) =>
        work({
          queryColumns({ values }: { values: [string[]] }) {
            const answer = { ...Promise.withResolvers<unknown[][]>(), tokens: values[0], budgetMs }
            asked.push(answer)
            return answer.promise
          },
        }),
    })
  const database = { session } as unknown as Database
  const { byToken } = createFindAddressed({
    database,
    context: { database, clock } as unknown as Context,
    countCreation: async () => {},
  })
  return { byToken, asked, clock }
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

it('a look-up that waited more than 1.5 seconds behind another one is given up; the others are asked together', async () => {
  const { byToken, asked, clock } = createStage()
  const first = byToken('first')
  const late = byToken('late').catch((error) => error)
  clock.time = 1
  const others = ['in-time', 'in-time', 'unknown'].map(byToken)
  clock.time = 1_501
  asked[0]!.resolve([['first', 'id-1']])
  expect(await first).toBe('id-1')
  await settle()
  expect(asked.map(({ tokens, budgetMs }) => [tokens, budgetMs])).toEqual([
    [['first'], 1_000],
    [['in-time', 'in-time', 'unknown'], 1_000],
  ])
  asked[1]!.resolve([['in-time', 'id-2']])
  expect(await Promise.all(others)).toEqual(['id-2', 'id-2', null])
  expect(await late).toMatchObject({ code: 'unavailable' })
})

it('a look-up whose connection breaks at once is tried once more, a slow one or another fault is not', async () => {
  const { byToken, asked, clock } = createStage()
  const again = byToken('again')
  clock.time = 500
  asked[0]!.reject(unavailable())
  await settle()
  asked[1]!.resolve([['again', 'id']])
  expect(await again).toBe('id')

  const slow = byToken('slow')
  clock.time = 1_001
  asked[2]!.reject(unavailable())
  await expect(slow).rejects.toMatchObject({ code: 'unavailable' })

  const broken = byToken('broken')
  asked[3]!.reject(new Error('a fault'))
  await expect(broken).rejects.toThrow('a fault')
  expect(asked).toHaveLength(4)

  const twice = byToken('twice')
  asked[4]!.reject(unavailable())
  await settle()
  asked[5]!.reject(unavailable())
  await expect(twice).rejects.toMatchObject({ code: 'unavailable' })
  expect(asked).toHaveLength(6)
})
