import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Scope } from '../../../src/domain/access.ts'
import { pruneAged } from '../../../src/store/history/pruning.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { shareOf, takeCall } from '../../../src/tenancy/rate-limit.ts'
import { createTestDatabase } from '../../support/database.ts'
import { use } from '../../support/use.ts'

const organization = randomUUID()

const test = use(createTestDatabase)
beforeEach(() => test.clear())

const take = (limit: number, id = organization, scope: Scope = 'admin') =>
  takeCall({ database: test.database }, id, scope, limit)
/** Moves the windows back in time, as if that much had passed. */
const age = (seconds: number) =>
  test.database.query(`update rate_windows set started_at = started_at - $1 * interval '1 second'`, [seconds])
const readWindow = async () => {
  const { rows } = await test.database.query<{ used: number; startedAt: number }>(
    'select used, started_at as "startedAt" from rate_windows',
  )
  return rows[0]
}

describe('takeCall', () => {
  it('counts down to zero, then rejects', async () => {
    expect(await take(3)).toEqual({ isAllowed: true, limit: 3, remaining: 2, resetSeconds: 60 })
    expect(await take(3)).toMatchObject({ isAllowed: true, remaining: 1 })
    expect(await take(3)).toMatchObject({ isAllowed: true, remaining: 0 })
    expect(await take(3)).toMatchObject({ isAllowed: false, limit: 3, remaining: 0 })
    expect(await take(3)).toMatchObject({ isAllowed: false, remaining: 0 })
  })

  it('neither extends the window nor counts when it rejects', async () => {
    for (let call = 1; call <= 3; call += 1) await take(2)
    const full = await readWindow()
    for (let call = 1; call <= 20; call += 1) expect(await take(2)).toMatchObject({ isAllowed: false })
    expect(await readWindow()).toEqual(full)
    expect((await take(5)).isAllowed).toBe(true)
  })

  it('returns how long the present window lasts while calls remain, at least one second', async () => {
    await take(10)
    await age(45)
    expect((await take(10)).resetSeconds).toBe(15)
    await age(14.9)
    expect((await take(10)).resetSeconds).toBe(1)
  })

  it('counts the share of the window before that lies within the last minute', async () => {
    /** The present window began so long ago, whatever time this test takes. */
    const takeAt = async (seconds: number) => {
      await test.database.query(`update rate_windows set started_at = now() - $1 * interval '1 second'`, [seconds])
      return take(100)
    }
    await take(100)
    await test.database.query('update rate_windows set used = 100')
    // Nearly a quarter of the window before is over: 76 of its calls count.
    expect(await takeAt(74.05)).toEqual({ isAllowed: true, limit: 100, remaining: 23, resetSeconds: 46 })
    for (let call = 1; call <= 23; call += 1) expect(await takeAt(14.05)).toMatchObject({ isAllowed: true })
    expect(await takeAt(14.05)).toMatchObject({ isAllowed: false, remaining: 0 })
    // These 24 are the window before that.
    expect(await takeAt(74.05)).toMatchObject({ isAllowed: true, remaining: 100 - 18 - 1 })
  })

  it('allows at most the limit within a minute across the boundary of two windows', async () => {
    for (let call = 1; call <= 10; call += 1) await take(10)
    await age(59)
    expect(await take(10)).toMatchObject({ isAllowed: false })
    await age(1.5)
    expect(await take(10)).toMatchObject({ isAllowed: true, remaining: 0 })
    expect(await take(10)).toMatchObject({ isAllowed: false })
  })

  it.each([0, 20, 59])('forbids for as long as it says, and allows then (%s s into the window)', async (seconds) => {
    for (let call = 1; call <= 10; call += 1) await take(10)
    await age(60 + seconds)
    while ((await take(10)).isAllowed);
    const { resetSeconds } = await take(10)
    await age(resetSeconds - 1.2)
    expect(await take(10)).toMatchObject({ isAllowed: false })
    await age(1.2)
    expect(await take(10)).toMatchObject({ isAllowed: true })
  })

  it('forgets both windows after two minutes', async () => {
    for (let call = 1; call <= 3; call += 1) await take(2)
    await age(120)
    expect(await take(2)).toEqual({ isAllowed: true, limit: 2, remaining: 1, resetSeconds: 60 })
    expect(await take(2)).toMatchObject({ isAllowed: true, remaining: 0 })
    expect(await take(2)).toMatchObject({ isAllowed: false })
  })

  it('keeps the last tenth for admins', async () => {
    for (const scope of ['read', 'write'] as const) {
      while ((await take(30, organization, scope)).isAllowed);
      expect(await take(30, organization, scope)).toMatchObject({ isAllowed: false, limit: 30, remaining: 0 })
    }
    expect(await take(30)).toMatchObject({ isAllowed: true, limit: 30, remaining: 2 })
    expect(await take(30, organization, 'read')).toMatchObject({ isAllowed: false, remaining: 0 })
    for (const remaining of [1, 0]) expect(await take(30)).toMatchObject({ isAllowed: true, remaining })
    expect(await take(30)).toMatchObject({ isAllowed: false })
  })

  it.each([
    [1_000, 900],
    [25, 22],
    [10, 9],
    [9, 8],
    [1, 1],
  ])('of %s calls others than admins may use %s', (limit, share) => {
    expect([shareOf('admin', limit), shareOf('write', limit), shareOf('read', limit)]).toEqual([limit, share, share])
  })

  it('counts each organization separately', async () => {
    const other = randomUUID()
    await take(1)
    expect(await take(1)).toMatchObject({ isAllowed: false })
    expect(await take(1, other)).toMatchObject({ isAllowed: true })
  })

  it('starts a new window when the clock of the server was set back', async () => {
    for (let call = 1; call <= 2; call += 1) await take(1)
    await age(-3_600)
    expect(await take(1)).toEqual({ isAllowed: true, limit: 1, remaining: 0, resetSeconds: 60 })
    expect(await take(1)).toMatchObject({ isAllowed: false })
  })

  it('applies a changed limit at once', async () => {
    for (let call = 1; call <= 5; call += 1) await take(10)
    expect(await take(3)).toMatchObject({ isAllowed: false, remaining: 0 })
    expect(await take(10)).toMatchObject({ isAllowed: true })
  })

  it('allows exactly as many calls as the limit, over all replicas', async () => {
    const limit = 60
    const other = createDatabase({ url: test.url, name: 'other', connections: 5 })
    for (let round = 1; round <= 3; round += 1) {
      const calls = Array.from({ length: 150 }, (_, place) =>
        takeCall({ database: place % 2 === 0 ? test.database : other }, organization, 'admin', limit),
      )
      const taken = await Promise.all(calls)
      const allowed = taken.filter(({ isAllowed }) => isAllowed)
      expect(allowed).toHaveLength(limit)
      // All numbers differ: none was counted twice.
      const remaining = allowed.map((call) => call.remaining).sort((one, two) => one - two)
      expect(remaining).toEqual(Array.from({ length: limit }, (_, place) => place))
      for (const { resetSeconds } of taken) {
        expect(resetSeconds).toBeGreaterThanOrEqual(58)
        expect(resetSeconds).toBeLessThanOrEqual(60)
      }
      await age(120)
    }
    await other.close()
  })
})

describe('pruneAged', () => {
  it('deletes old windows up to a limit, and no others', async () => {
    await test.database.query(
      `insert into rate_windows select 'calls:old ' || n, now() - interval '901 seconds', 5 from generate_series(1, 3) n`,
    )
    await test.database.query(`insert into rate_windows values ('calls:new', now() - interval '890 seconds', 5)`)
    const forget = (limit: number) => pruneAged(test.database, 'rate_windows', Date.now() - 900_000, limit)
    expect([await forget(2), await forget(2), await forget(2)]).toEqual([2, 1, 0])
    const { rows } = await test.database.query<{ bucket: string }>('select bucket from rate_windows')
    expect(rows).toEqual([{ bucket: 'calls:new' }])
  })
})
