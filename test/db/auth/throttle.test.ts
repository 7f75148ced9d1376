import { beforeEach, describe, expect, it } from 'vitest'
import { logIn } from '../../../src/auth/log-in.ts'
import { hashPassword } from '../../../src/auth/passwords.ts'
import { pruneAged } from '../../../src/store/history/pruning.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { noteLoginAddress } from '../../../src/store/tenancy/login-addresses.ts'
import { boundFailures, lockFailures } from '../../../src/store/tenancy/login-failures.ts'
import { DAY } from '../../support/builders.ts'
import { EMAIL, PASSWORD, START, tokensOf, useOrganization } from './fixtures.ts'

const WRONG = { name: 'AppError', code: 'unauthenticated', message: 'wrong e-mail address or password' }
const THROTTLED = { name: 'AppError', code: 'too_many_requests' }
const WINDOW_MS = 15 * 60_000

const { test, clock, organization, enter } = useOrganization()
beforeEach(() => organization.addUser(EMAIL, 'write'))

type Attempt = Parameters<typeof enter>[0]

const fail = (input: Attempt = {}) =>
  expect(enter({ password: 'wrong horse battery', ...input })).rejects.toMatchObject(WRONG)
const failTimes = async (count: number, toInput: (attempt: number) => Attempt = () => ({})) => {
  for (let attempt = 1; attempt <= count; attempt += 1) await fail(toInput(attempt))
}
const addressOf = (place: number) => `198.51.100.${place}`
const isThrottled = (input: Attempt = {}) => expect(enter(input)).rejects.toMatchObject(THROTTLED)
const isIn = async (input: Attempt = {}) => expect(await enter(input)).toMatchObject({ expiresIn: 900 })
/** Entries of the audit log about an account. */
const countFailuresOf = async (email: string) => {
  const { rows } = await test.database.query<{ action: string; count: number }>(
    `select action, count(*) as count from audit_log
      where target_name = $1 and action in ('login.failed', 'login.locked') group by 1 order by 1`,
    [email],
  )
  return Object.fromEntries(rows.map(({ action, count }) => [action, count]))
}
const countBuckets = async () => (await test.database.query('select from login_failures')).rowCount

describe('the strict limit', () => {
  it('is ten failed log-ins of an account from one address in 15 minutes, even for the right password', async () => {
    await failTimes(9)
    await isIn()
    clock.time += 60_000
    await fail()
    const rejected = await enter().catch((error) => error)
    expect(rejected).toMatchObject({ ...THROTTLED, retryAfterSeconds: 840 })
    expect(rejected.message).toBe(
      'too many failed log-ins for this account or from this address; try again in 840 seconds',
    )
    await isThrottled({ email: ' aNN@EXAMPLE.com ' })
    clock.time = START + WINDOW_MS - 1
    await isThrottled()
    clock.time = START + WINDOW_MS
    await isIn()
  })

  it('ten wrong log-ins from one address do not shut the account for others', async () => {
    await failTimes(10, () => ({ address: '203.0.113.7' }))
    await isThrottled({ address: '203.0.113.7' })
    await isIn()
  })

  it('slides: ten failures at the end of one quarter of an hour allow none at the beginning of the next', async () => {
    await fail()
    clock.time += WINDOW_MS - 1
    await failTimes(9)
    clock.time += 1
    await fail()
    await isThrottled()
    clock.time += WINDOW_MS - 1
    await failTimes(9)
    await isThrottled()
  })

  it('counts an account that does not exist in the same way', async () => {
    await failTimes(10, () => ({ email: 'nobody@example.com' }))
    await isThrottled({ email: 'nobody@example.com' })
    await isIn()
  })

  it('takes the addresses of one IPv6 network together', async () => {
    await failTimes(10, (attempt) => ({ address: `2001:db8::${attempt}` }))
    await isThrottled({ address: '2001:db8::ffff' })
    await isIn({ address: '2001:db8:0:1::1' })
  })

  it('is not reset by a success', async () => {
    await failTimes(9)
    await isIn()
    await fail()
    await isThrottled()
  })

  it('does not count what it rejects', async () => {
    await failTimes(10)
    clock.time += WINDOW_MS - 1
    for (let attempt = 1; attempt <= 3; attempt += 1) await isThrottled()
    clock.time += 1
    await failTimes(10)
  })

  it('holds for attempts at the same time on two replicas', async () => {
    await failTimes(7)
    const other = createDatabase({ url: test.url, name: 'other', connections: 5 })
    const attempts = Array.from({ length: 10 }, (_, place) =>
      enter({ password: 'wrong horse battery' }, place % 2 === 0 ? test.database : other).catch(({ code }) => code),
    )
    const outcomes = await Promise.all(attempts)
    await other.close()
    expect(outcomes.filter((code) => code === 'unauthenticated')).toHaveLength(3)
    expect(outcomes.filter((code) => code === 'too_many_requests')).toHaveLength(7)
  })
})

describe('the wide limits', () => {
  it('fifty failed log-ins from an address shut it, but for accounts that have logged in from there', async () => {
    await organization.addUser('bob@example.com', 'read')
    await isIn()
    await failTimes(49, (attempt) => ({ email: `made-up-${attempt}@example.com` }))
    await isIn({ email: 'bob@example.com', address: addressOf(1) })
    await fail({ email: 'nobody@example.com' })

    const startedAt = performance.now()
    const took = async (attempt: Promise<unknown>) => {
      await attempt
      return performance.now() - startedAt
    }
    const times = await Promise.all([
      took(isIn()),
      took(isThrottled({ password: 'wrong horse battery' })),
      took(isThrottled({ email: 'bob@example.com' })),
      took(isThrottled({ email: 'nobody@example.com' })),
    ])
    // Whether the account knows the address does not show in the time.
    expect(Math.min(...times)).toBeGreaterThan(950)
    await isIn({ address: addressOf(2) })
  })

  it('a hundred failed log-ins of an account shut it from new addresses', async () => {
    await isIn({ address: addressOf(250) })
    await failTimes(99, (attempt) => ({ address: addressOf(attempt % 20) }))
    await isIn({ address: addressOf(251) })
    await fail({ address: addressOf(100) })
    clock.time += WINDOW_MS - 1
    await Promise.all([isThrottled({ address: addressOf(252) }), isIn({ address: addressOf(250) })])
    clock.time += 1
    await isIn({ address: addressOf(252) })
  })

  it('a hundred failed log-ins from an IPv6 /56 shut it, from whichever /64 they come', async () => {
    const inNetwork = (subnet: number) => `2001:db8:1:2${subnet.toString(16).padStart(2, '0')}::1`
    await isIn({ address: inNetwork(0xfe) })
    await failTimes(99, (attempt) => ({ email: `made-up-${attempt}@example.com`, address: inNetwork(attempt) }))
    await isIn({ address: inNetwork(0xff) })
    await fail({ email: 'nobody@example.com', address: inNetwork(100) })
    await isThrottled({ address: inNetwork(0xfd) })
    await Promise.all([isIn({ address: inNetwork(0xfe) }), isIn({ address: '2001:db8:1:300::1' })])
  })

  it('are passed for 30 days after a log-in', async () => {
    const shut = () => failTimes(50, (attempt) => ({ email: `made-up-${attempt}@example.com` }))
    await isIn()
    clock.time += 30 * DAY
    await shut()
    await isIn()
    await test.database.query(`update login_addresses set last_at = last_at - interval '30 days 1 millisecond'`)
    await isThrottled()
    expect(await pruneAged(test.database, 'login_addresses', clock.time - 30 * DAY, 10)).toBe(1)
  })

  it('above them an account gets ten guesses from an address, over all replicas, each with its entry', async () => {
    const ann = { password: 'wrong horse battery' }
    const bob = { email: 'bob@example.com', password: 'wrong horse battery' }
    const cleo = { email: 'cleo@example.com', password: 'wrong horse battery' }
    for (const { email } of [bob, cleo]) await organization.addUser(email)
    await isIn()
    await isIn({ email: bob.email })
    for (const victim of [ann, bob]) await failTimes(5, () => victim)
    await failTimes(40, (attempt) => ({ email: `made-up-${attempt}@example.com` }))

    clock.time += 60_000
    const other = createDatabase({ url: test.url, name: 'other', connections: 5 })
    const guess = (input: Attempt, times: number) =>
      Array.from({ length: times }, (_, place) =>
        expect(enter(input, place % 2 === 0 ? test.database : other)).rejects.toMatchObject({
          ...THROTTLED,
          retryAfterSeconds: 840,
        }),
      )
    // Cleo has not logged in from here: no password of hers is computed.
    await Promise.all([...guess(ann, 8), ...guess(bob, 4), ...guess(cleo, 10)])
    await other.close()
    expect(await countFailuresOf(EMAIL)).toEqual({ 'login.failed': 10, 'login.locked': 1 })
    expect(await countFailuresOf(bob.email)).toEqual({ 'login.failed': 9 })
    // The time to wait remains that of the wide limit.
    await Promise.all([...guess({}, 1), isIn({ email: bob.email })])

    // The wide limit ends, for which none of these counted; the strict one holds on.
    clock.time = START + WINDOW_MS
    await failTimes(5)
    await isThrottled()
    // With the guesses, the address would have more than its 50 failures.
    await failTimes(44, (attempt) => ({ email: `made-up-${attempt}@example.com` }))
    for (const { email } of [bob, cleo]) await isIn({ email })
  })

  it('a guess counts whose address is shut while it is computed, if a right one would pass', async () => {
    await isIn()
    await organization.addUser('bob@example.com')
    const shutMeanwhile = async (email: string) => {
      const { database } = test
      const transaction: typeof database.transaction = async (work) => {
        await failTimes(1, () => ({ email: `made-up-for-${email}` }))
        return database.transaction(work)
      }
      const attempt = enter({ email, password: 'wrong horse battery' }, { ...database, transaction })
      await expect(attempt).rejects.toMatchObject(THROTTLED)
    }
    await failTimes(49, (attempt) => ({ email: `made-up-${attempt}@example.com` }))
    await shutMeanwhile(EMAIL)
    await test.database.query(`update login_failures set failed_at = failed_at[2:] where cardinality(failed_at) = 50`)
    await shutMeanwhile('bob@example.com')
    expect(await countFailuresOf(EMAIL)).toEqual({ 'login.failed': 1 })
    expect(await countFailuresOf('bob@example.com')).toEqual({})
  })
})

describe('many log-ins at once', () => {
  const COST = { logN: 13, r: 8, p: 1 }

  it.each<[string, (place: number) => Attempt]>([
    ['with a right password', () => ({})],
    ['from an IPv6 /56', (place) => ({ email: `made-up-${place}@example.com`, address: `2001:db8:1:2${place}::1` })],
    ['at one account', (place) => ({ password: 'wrong horse battery', address: addressOf(place) })],
  ])('%s leave a place for others', async (_, toInput) => {
    const stored = await hashPassword(PASSWORD, COST)
    await test.database.query('update users set password_hash = $1', [stored])
    await organization.addUser('bob@example.com', 'read', stored)
    const log = (input: Attempt) =>
      logIn({ database: test.database, clock, passwordCost: COST }, tokensOf(clock), {
        ...{ email: EMAIL, password: PASSWORD, address: '192.0.2.1' },
        ...input,
      }).then(
        () => 'in',
        ({ code }) => code,
      )
    const flood = Array.from({ length: 60 }, (_, place) => log(toInput(place + 10)))
    await Promise.race(flood)
    for (const place of [1, 2, 3]) expect(await log({ email: 'bob@example.com', address: addressOf(place) })).toBe('in')
    expect(await Promise.all(flood)).toContain('unavailable')
  })
})

describe('the limit of right passwords', () => {
  const countRight = (count: number) =>
    test.database.query(`update rate_windows set used = $1 where bucket like 'logins:%'`, [count])

  it('is 300 for an account from one address in 15 minutes', async () => {
    await organization.addUser('bob@example.com')
    await isIn()
    await countRight(299)
    await isIn()
    const rejected = await enter().catch((error) => error)
    expect(rejected).toMatchObject({ ...THROTTLED, retryAfterSeconds: expect.any(Number) })
    expect(rejected.message).toMatch(
      /^too many log-ins of this account from this address: keep a session, or use an API key; try again in 9?\d\d seconds$/,
    )
    await fail()
    await Promise.all([isIn({ address: addressOf(1) }), isIn({ email: 'bob@example.com' })])
    await test.database.query(`update rate_windows set started_at = now() - interval '30 minutes'`)
    await isIn()
  })

  it('holds for log-ins at the same time on two replicas', async () => {
    await isIn()
    await countRight(297)
    const other = createDatabase({ url: test.url, name: 'other', connections: 5 })
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, place) =>
        enter({}, place % 2 === 0 ? test.database : other).then(
          () => 'in',
          ({ code }) => code,
        ),
      ),
    )
    await other.close()
    expect(outcomes.sort()).toEqual([...Array(3).fill('in'), ...Array(5).fill('too_many_requests')])
  })
})

describe('what the throttle stores', () => {
  it('has keys of one length that hold no address', async () => {
    await fail({ email: `${'x'.repeat(10_000)}@example.com`, address: 'y'.repeat(10_000) })
    const { rows } = await test.database.query<{ bucket: string }>('select bucket from login_failures order by 1')
    expect(rows.map(({ bucket }) => bucket)).toEqual(
      ['account', 'address', 'strict'].map((kind) => expect.stringMatching(new RegExp(`^${kind}:[\\w-]{43}$`))),
    )
  })

  it('ends with the window', async () => {
    await failTimes(3, (attempt) => ({ email: `made-up-${attempt}@example.com`, address: addressOf(attempt) }))
    expect(await countBuckets()).toBe(9)
    clock.time += WINDOW_MS + 1
    await fail()
    expect(await countBuckets()).toBe(3)
  })

  it('is bounded, and the oldest gives way', async () => {
    const flood = (from: number) =>
      test.database.transaction(async (tx) => {
        const buckets = Array.from({ length: 50 }, (_, place) => ({ bucket: `made up ${from + place}`, limit: 1 }))
        await lockFailures(tx, buckets, START + from)
        await boundFailures(tx, START - WINDOW_MS, 200)
      })
    for (let round = 0; round < 10; round += 1) await flood(round * 50)
    expect(await countBuckets()).toBeLessThanOrEqual(200)
    const { rows } = await test.database.query(`select from login_failures where bucket = 'made up 499'`)
    expect(rows).toHaveLength(1)
  })

  it('holds the latest hundred addresses of a user', async () => {
    const { id } = await organization.addUser('bob@example.com')
    for (let place = 1; place <= 101; place += 1) {
      await noteLoginAddress(test.database, id, addressOf(place), START + place)
    }
    const { rows } = await test.database.query<{ address: string }>(
      'select address from login_addresses where user_id = $1 order by last_at',
      [id],
    )
    expect([rows.length, rows[0]!.address]).toEqual([100, addressOf(2)])
  })
})
