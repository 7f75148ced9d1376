/** How long look-ups wait, when they are tried again, and what counts while the database does not answer. What they find is tested in test/db/pings/find-addressed.test.ts. */

import { describe, expect, it } from 'vitest'
import { createFindAddressed } from '../../../../src/checks/ping/find-addressed.ts'
import { unavailable } from '../../../../src/domain/errors.ts'
import type { Context } from '../../../../src/store/context.ts'
import type { Database } from '../../../../src/store/postgres/database.ts'
import { settle } from '../../../support/until.ts'

/** A database whose look-ups are answered one by one, and a clock that is moved by hand. */
function createStage() {
  const clock = { time: 0, now: () => clock.time }
  /** The database's clock. */
  const databaseClock = { jumpMs: 0, now: () => clock.time + databaseClock.jumpMs }
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
  const { byName, byToken } = createFindAddressed({
    database,
    context: { database, clock: databaseClock } as unknown as Context,
    now: clock.now,
    countCreation: async () => {},
    remembered: 2,
  })
  /** Answers the newest look-up. */
  const answer = (...rows: unknown[][]) => asked.at(-1)!.resolve(rows)
  /** The database does not answer in time what it has not answered yet. */
  const hang = async () => {
    clock.time += 1_000
    for (const { reject } of asked) reject(unavailable())
    await settle()
  }
  return { byName, byToken, asked, clock, databaseClock, answer, hang }
}

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

it.each([10_000, -10_000])("a jump of the database's clock by %i ms changes no limit of time", async (jumpMs) => {
  const { byToken, asked, clock, databaseClock } = createStage()
  const first = byToken('first')
  const late = byToken('late').catch((error) => error)
  clock.time = 1
  const other = byToken('in-time')
  clock.time = 1_501
  databaseClock.jumpMs = jumpMs
  asked[0]!.resolve([['first', 'id-1']])
  expect(await first).toBe('id-1')
  await settle()
  expect(asked[1]!.tokens).toEqual(['in-time'])
  asked[1]!.resolve([['in-time', 'id-2']])
  expect(await other).toBe('id-2')
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

describe('while the database does not answer', () => {
  const NAME = { pingKey: 'k'.repeat(22), slug: 'job' }
  const row = (publicId: string | null, place = 1) => [place, 'organization', 'project', publicId]

  it('a name and a token lead where they led last; what was never looked up fails', async () => {
    const { byName, byToken, answer, hang } = createStage()
    const named = byName(NAME, false)
    answer(row('id-1'))
    expect(await named).toEqual({ publicId: 'id-1', isNew: false })
    const pushed = byToken('token')
    answer(['token', 'id-2'])
    expect(await pushed).toBe('id-2')

    for (const isCreating of [false, true]) {
      const again = byName(NAME, isCreating)
      await hang()
      expect(await again).toEqual({ publicId: 'id-1', isNew: false })
    }
    const token = byToken('token')
    await hang()
    expect(await token).toBe('id-2')
    const unknown = [byName({ ...NAME, slug: 'other' }, true), byToken('other')].map((one) =>
      one.catch((error) => error),
    )
    await hang()
    for (const error of await Promise.all(unknown)) expect(error).toMatchObject({ code: 'unavailable' })
  })

  it('an answer counts at once: a revoked key, a removed check and another check of that name', async () => {
    const { byName, byToken, answer, hang, clock } = createStage()
    const ask = async (...rows: unknown[][]) => {
      const named = byName(NAME, false)
      answer(...rows)
      return (await named)?.publicId ?? null
    }
    const askInVain = async () => {
      const named = byName(NAME, false).catch((error) => error.code)
      await hang()
      return (await named).publicId ?? (await named)
    }
    expect(await ask(row('id-1'))).toBe('id-1')
    expect(await ask(row('id-2'))).toBe('id-2')
    expect(await askInVain()).toBe('id-2')
    expect(await ask(row(null))).toBeNull()
    expect(await askInVain()).toBe('unavailable')
    expect(await ask(row('id-3'))).toBe('id-3')
    expect(await askInVain()).toBe('id-3')
    expect(await ask()).toBeNull()
    expect(await askInVain()).toBe('unavailable')

    const pushed = byToken('token')
    answer(['token', 'id-4'])
    expect(await pushed).toBe('id-4')
    const slow = byToken('another')
    const late = byToken('token').catch((error) => error)
    clock.time += 1_501
    answer()
    expect(await slow).toBeNull()
    await settle()
    answer()
    // It waited for too long, but the database answers.
    expect(await late).toMatchObject({ code: 'unavailable' })
  })

  it('what waits fails with the look-up in flight, and is not asked one second after the other', async () => {
    const { byToken, asked, hang } = createStage()
    const all = Array.from({ length: 1_200 }, (_, place) => byToken(`token-${place}`).catch((error) => error.code))
    await hang()
    expect(new Set(await Promise.all(all))).toEqual(new Set(['unavailable']))
    expect(asked).toHaveLength(1)
  })

  it('the names that were used last are remembered', async () => {
    const { byToken, answer, hang } = createStage()
    for (const token of ['first', 'second', 'first', 'third']) {
      const found = byToken(token)
      answer([token, `id of ${token}`])
      expect(await found).toBe(`id of ${token}`)
    }
    const again = ['first', 'second', 'third'].map((token) => byToken(token).catch((error) => error.code))
    await hang()
    expect(await Promise.all(again)).toEqual(['id of first', 'unavailable', 'id of third'])
  })
})
