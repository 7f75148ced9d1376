import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { logIn } from '../../../src/auth/log-in.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { anOrganization, LOW_COST, manualClock, PASSWORD, tokensOf } from './fixtures.ts'

const EMAIL = 'Ann@example.com'
const WRONG = { name: 'AppError', code: 'unauthenticated', message: 'wrong e-mail address or password' }

let test: TestDatabase
let clock: ReturnType<typeof manualClock>
let organization: Awaited<ReturnType<typeof anOrganization>>

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.clear()
  clock = manualClock()
  organization = await anOrganization(test.database)
  await organization.addUser(EMAIL, 'write')
})

const context = () => ({ database: test.database, clock })
const enter = (input: { email?: string; password?: string; address?: string } = {}) =>
  logIn(context(), tokensOf(clock), { email: EMAIL, password: PASSWORD, address: '192.0.2.1', ...input }, LOW_COST)
describe('the throttle', () => {
  /** Spends tries without computing hashes: what it counts is tested with real ones below. */
  const setUsed = (kind: string, used: number) =>
    test.database.query('update rate_windows set used = $2 where bucket like $1', [`login:${kind}:%`, used])
  const age = (seconds: number) =>
    test.database.query(`update rate_windows set started_at = started_at - $1 * interval '1 second'`, [seconds])
  const usedOf = async (kind: string) => {
    const { rows } = await test.database.query<{ used: number }>('select used from rate_windows where bucket like $1', [
      `login:${kind}:%`,
    ])
    return rows.map(({ used }) => used)
  }
  const fail = (input: { email?: string; address?: string } = {}) =>
    expect(enter({ password: 'wrong horse battery', ...input })).rejects.toMatchObject(WRONG)

  it('rejects even the right password after ten failed log-ins of an account within 15 minutes', async () => {
    await fail({ address: '192.0.2.1' })
    await setUsed('account', 8)
    await fail({ address: '192.0.2.2' })
    await fail({ address: '192.0.2.3' })
    const refused = await enter({ address: '198.51.100.1' }).catch((error) => error)
    expect(refused).toMatchObject({ name: 'AppError', code: 'too_many_requests' })
    expect(refused.retryAfterSeconds).toBeGreaterThan(880)
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(900)
    expect(refused.message).toBe(
      `too many failed log-ins for this account or from this address; try again in ${refused.retryAfterSeconds} seconds`,
    )
    await expect(enter({ email: EMAIL.toUpperCase() })).rejects.toMatchObject({ code: 'too_many_requests' })
    await age(899 - 890)
    await expect(enter()).rejects.toMatchObject({ code: 'too_many_requests' })
    await age(900)
    expect(await enter()).toMatchObject({ expiresInSeconds: 900 })
  })

  it('counts failed log-ins of an account that does not exist in the same way', async () => {
    await fail({ email: 'nobody@example.com' })
    await setUsed('account', 10)
    await expect(enter({ email: 'nobody@example.com' })).rejects.toMatchObject({ code: 'too_many_requests' })
    expect(await enter()).toMatchObject({ expiresInSeconds: 900 })
  })

  it('rejects a network address after fifty failed log-ins, whatever the accounts', async () => {
    await fail({ email: 'nobody@example.com' })
    await setUsed('address', 49)
    await fail({ email: 'somebody@example.com' })
    await expect(enter()).rejects.toMatchObject({ code: 'too_many_requests', retryAfterSeconds: expect.any(Number) })
    expect(await enter({ address: '192.0.2.2' })).toMatchObject({ expiresInSeconds: 900 })
  })

  it('counts the addresses of one IPv6 network together', async () => {
    await fail({ address: '2001:db8::1' })
    await setUsed('address', 50)
    await expect(enter({ address: '2001:db8::ffff' })).rejects.toMatchObject({ code: 'too_many_requests' })
  })

  it('resets the count of an account after a success, but not the other failures of the address', async () => {
    await fail()
    await fail({ email: 'nobody@example.com' })
    await setUsed('account', 9)
    await enter()
    expect(await usedOf('account')).toEqual([9])
    expect(await usedOf('address')).toEqual([2])
    await fail()
    expect((await usedOf('account')).sort()).toEqual([1, 9])
    expect(await usedOf('address')).toEqual([3])
  })

  it('does not count rejected tries', async () => {
    await fail()
    await setUsed('account', 10)
    for (let tries = 1; tries <= 3; tries += 1) {
      await expect(enter()).rejects.toMatchObject({ code: 'too_many_requests' })
    }
    expect(await usedOf('account')).toEqual([10])
    expect(await usedOf('address')).toEqual([1])
  })

  it('keeps the limit for tries at the same time on several replicas', async () => {
    await fail()
    await setUsed('account', 7)
    const other = createDatabase({ url: test.url, name: 'other', connections: 5 })
    const databases = [test.database, other]
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, place) =>
        logIn(
          { database: databases[place % 2]!, clock },
          tokensOf(clock),
          { email: EMAIL, password: 'wrong horse battery', address: `192.0.2.${place}` },
          LOW_COST,
        ).catch((error) => error.code),
      ),
    )
    await other.close()
    expect(outcomes.filter((code) => code === 'unauthenticated')).toHaveLength(3)
    expect(outcomes.filter((code) => code === 'too_many_requests')).toHaveLength(7)
  })

  it('has keys of one length that hold no address', async () => {
    await fail({ email: `${'x'.repeat(10_000)}@example.com`, address: 'y'.repeat(10_000) })
    const { rows } = await test.database.query<{ bucket: string }>('select bucket from rate_windows order by 1')
    expect(rows.map(({ bucket }) => bucket)).toEqual([
      expect.stringMatching(/^login:account:[\w-]{43}$/),
      expect.stringMatching(/^login:address:[\w-]{43}$/),
    ])
  })
})
