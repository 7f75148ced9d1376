/** Sign-in with an identity provider, against a real one. */

import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { verifyPassword } from '../../../src/auth/passwords.ts'
import { createFindDashboardCaller } from '../../../src/auth/sessions.ts'
import { createSignIn, type SignIn } from '../../../src/auth/sign-in.ts'
import type { AuditEntry } from '../../../src/domain/audit.ts'
import type { SignInProvider } from '../../../src/domain/issuer.ts'
import { untilWaiting } from '../../support/database.ts'
import { CLIENT, startIdentityProvider, type TestProvider } from '../../support/identity-provider.ts'
import { startReceiver } from '../../support/receiver.ts'
import { anOrganization, SECRET_KEY, useOrganization } from './fixtures.ts'

const ORIGIN = 'http://127.0.0.1:8081'
const BACK = { origin: ORIGIN, address: '192.0.2.1' }
const LOST = {
  code: 'unauthenticated',
  message:
    'this sign-in began in another browser, at another address of this service, or more than ten minutes ago: sign in again',
}
const USED = { code: 'unauthenticated', message: 'this sign-in was finished before, or took too long: sign in again' }

const onProblem = vi.fn()
const onAudit = vi.fn<(entry: AuditEntry) => void>()

let provider: TestProvider
beforeAll(async () => {
  const redirectUris = ['Example', 'Other'].map((name) => `${ORIGIN}/login/${name}/callback`)
  provider = await startIdentityProvider({ redirectUris })
  return provider.close
})
const { test, clock, organization, ...own } = useOrganization(Date.now)
beforeEach(() => {
  provider.account = { sub: 'ann', email: 'ann@example.com', email_verified: true }
  onProblem.mockClear()
  onAudit.mockClear()
})

const context = () => ({ ...own.context(), onAudit })
const entry = (fields: Partial<SignInProvider> = {}): SignInProvider => ({
  name: 'Example',
  issuer: provider.url,
  clientId: CLIENT.client_id,
  clientSecret: CLIENT.client_secret,
  users: new Map(),
  newUserScope: null,
  ...fields,
})
const aSignIn = (fields?: Partial<SignInProvider>, secretKey = SECRET_KEY) =>
  createSignIn(context(), secretKey, [entry(fields), entry({ ...fields, name: 'Other' })], onProblem)

/** From the button to the way back: the cookie of the browser, and the query of the callback. */
async function walk(signIn: SignIn, name = 'Example', next = '/checks?status=down') {
  const { location, cookie } = await signIn.begin(name, next, ORIGIN)
  const { search, origin, pathname } = await provider.authorize(location)
  expect(origin + pathname).toBe(`${ORIGIN}/login/${name}/callback`)
  return { cookie, query: search }
}
/** The user of the session that it begins. */
async function finish(
  signIn: SignIn,
  { cookie, query }: { cookie: string | undefined; query: string },
  name = 'Example',
) {
  const token = await signIn.finish(name, await signIn.open(name, cookie), { ...BACK, query })
  const caller = await createFindDashboardCaller(context())(token, BACK.address)
  const { id, name: email, organizationId, scope } = caller!
  return { id, email, organizationId, scope }
}

describe('a sign-in', () => {
  it('identifies the user with the verified address', async () => {
    const ann = await organization.addUser('ann@example.com', 'write')
    const signIn = aSignIn()
    expect(signIn.names).toEqual(['Example', 'Other'])
    const way = await walk(signIn)
    expect(await signIn.open('Example', way.cookie)).toMatchObject({ next: '/checks?status=down' })
    const user = { id: ann.id, email: 'ann@example.com', organizationId: organization.id, scope: 'write' }
    expect(await finish(signIn, way)).toEqual(user)
    expect(onProblem).not.toHaveBeenCalled()
    expect(onAudit.mock.calls).toMatchObject([
      [
        {
          action: 'login.succeeded',
          actor: { kind: 'user', id: ann.id },
          target: { kind: 'user', id: ann.id },
          address: BACK.address,
          detail: { provider: 'Example' },
        },
      ],
    ])
    const { rows } = await test.database.query('select kind, address from sessions')
    expect(rows).toEqual([{ kind: 'dashboard', address: BACK.address }])
  })

  it('asks for a code with PKCE, state and nonce, and for the address', async () => {
    const { location, cookie } = await aSignIn().begin('Example', '/', ORIGIN)
    const { origin, searchParams } = new URL(location)
    expect(origin).toBe(provider.url)
    const { state, nonce, code_challenge, ...fixed } = Object.fromEntries(searchParams)
    expect(fixed).toEqual({
      client_id: CLIENT.client_id,
      response_type: 'code',
      redirect_uri: `${ORIGIN}/login/Example/callback`,
      scope: 'openid email',
      code_challenge_method: 'S256',
    })
    const attempt = (await aSignIn().open('Example', cookie))!
    expect(attempt).toMatchObject({ state, nonce })
    expect(code_challenge).toBe(createHash('sha256').update(attempt.verifier).digest('base64url'))
    for (const text of Object.values(attempt)) expect(cookie).not.toContain(text)
    for (const text of [state, nonce, attempt.verifier]) expect(text!.length).toBeGreaterThanOrEqual(43)
  })

  it('makes one session, also where the provider gives two codes for it, one after the other or at once', async () => {
    await organization.addUser('ann@example.com')
    const message = 'this sign-in was finished already: sign in again'
    for (const isAtOnce of [false, true]) {
      const { location, cookie } = await aSignIn().begin('Example', '/', ORIGIN)
      const [one, two] = [await provider.authorize(location), await provider.authorize(location)]
      expect(one.searchParams.get('code')).not.toBe(two.searchParams.get('code'))
      const first = finish(aSignIn(), { cookie, query: one.search })
      if (!isAtOnce) await first
      const outcomes = await Promise.allSettled([first, finish(aSignIn(), { cookie, query: two.search })])
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'unauthenticated', message })
    }
    expect((await test.database.query('select from sessions')).rowCount).toBe(2)
    expect(onAudit.mock.calls.filter(([{ action }]) => action === 'login.succeeded')).toHaveLength(2)
  })

  it('from a network with many at once waits for its turn, and leaves places for others', async () => {
    await organization.addUser('ann@example.com')
    const signIn = aSignIn()
    const [flooded, other] = [await walk(signIn), await walk(signIn)]
    const attempt = await signIn.open('Example', flooded.cookie)
    const countExchanges = () => provider.requests.filter((request) => request === 'POST /token').length
    const before = countExchanges()
    const flood = Array.from({ length: 256 }, (_, subnet) => {
      const address = `2001:db8:1:2${subnet.toString(16).padStart(2, '0')}::1`
      return signIn.finish('Example', attempt, { ...BACK, query: flooded.query, address }).catch((error) => error.code)
    })
    await finish(signIn, other)
    const outcomes = await Promise.all(flood)
    expect(outcomes.filter((outcome) => outcome === 'unavailable').length).toBeGreaterThanOrEqual(256 - 22)
    expect(countExchanges() - before).toBeLessThanOrEqual(22 + 1)
  })

  it('can be finished by another replica', async () => {
    const ann = await organization.addUser('ann@example.com')
    const way = await walk(aSignIn())
    expect(await finish(aSignIn(), way)).toMatchObject({ id: ann.id })
  })

  it('finds the user of another organization there', async () => {
    const other = await anOrganization(test.database, 'other')
    const ann = await other.addUser('ann@example.com')
    const signIn = aSignIn({ newUserScope: 'admin' })
    expect(await finish(signIn, await walk(signIn))).toMatchObject({ id: ann.id, organizationId: other.id })
  })

  it('is of a provider that is configured', async () => {
    const signIn = aSignIn()
    const unknown = { code: 'not_found' }
    await expect(signIn.begin('example', '/', ORIGIN)).rejects.toMatchObject(unknown)
    await expect(signIn.finish('example', null, { ...BACK, query: '' })).rejects.toMatchObject(unknown)
  })

  it('leads to the first page when the address to go to does not fit into a cookie', async () => {
    const next = (length: number) => `/checks?q=${'x'.repeat(length - 10)}`
    const signIn = aSignIn()
    const opened = async (text: string) => signIn.open('Example', (await signIn.begin('Example', text, ORIGIN)).cookie)
    expect(await opened(next(2_000))).toMatchObject({ next: next(2_000) })
    expect((await signIn.begin('Example', next(2_000), ORIGIN)).cookie.length).toBeLessThan(4_000)
    expect(await opened(next(2_001))).toMatchObject({ next: '/' })
  })
})

describe('a sign-in is finished once, in its browser, in its time', () => {
  beforeEach(async () => {
    await organization.addUser('ann@example.com')
  })

  it('a code is good once', async () => {
    const signIn = aSignIn()
    const way = await walk(signIn)
    await finish(signIn, way)
    await expect(finish(signIn, way)).rejects.toMatchObject(USED)
    expect(onProblem.mock.calls).toMatchObject([['Example', { message: expect.stringMatching(/^invalid_grant: /) }]])
  })

  it('a code is of no use without its verifier, and the token of another sign-in has another nonce', async () => {
    const signIn = aSignIn()
    for (const changed of ['verifier', 'nonce'] as const) {
      const { cookie, query } = await walk(signIn)
      const attempt = (await signIn.open('Example', cookie))!
      const other = { ...attempt, [changed]: 'x'.repeat(43) }
      await expect(signIn.finish('Example', other, { ...BACK, query })).rejects.toMatchObject(USED)
    }
  })

  it('without the cookie, with that of another sign-in, or with another state the provider is not asked', async () => {
    const signIn = aSignIn()
    const [way, other] = [await walk(signIn), await walk(signIn)]
    const count = provider.requests.length
    await expect(finish(signIn, { ...way, cookie: undefined })).rejects.toMatchObject(LOST)
    await expect(finish(signIn, { ...way, cookie: other.cookie })).rejects.toMatchObject(LOST)
    const query = way.query.replace(/state=(.)/, (_, first) => `state=${first === 'A' ? 'B' : 'A'}`)
    await expect(finish(signIn, { ...way, query })).rejects.toMatchObject(LOST)
    await expect(finish(signIn, { ...way, query: '' })).rejects.toMatchObject(LOST)
    expect(provider.requests.length).toBe(count)
  })

  it('a cookie is of its provider and of its key, and whole', async () => {
    const signIn = aSignIn()
    const { cookie } = await walk(signIn)
    expect(await signIn.open('Other', cookie)).toBeNull()
    expect(await aSignIn({}, Buffer.alloc(32, 8)).open('Example', cookie)).toBeNull()
    const changed = `${cookie.slice(0, -30)}${cookie.at(-30) === 'A' ? 'B' : 'A'}${cookie.slice(-29)}`
    for (const text of [changed, cookie.slice(1), '', 'x', '....', `${cookie}.`])
      expect(await signIn.open('Example', text)).toBeNull()
    expect(await signIn.open('Example', cookie)).not.toBeNull()
  })

  it('ten minutes are allowed', async () => {
    clock.time = Math.floor(clock.time / 1_000) * 1_000
    const signIn = aSignIn()
    const { cookie, query } = await walk(signIn)
    clock.time += 599_999
    expect(await signIn.open('Example', cookie)).not.toBeNull()
    clock.time += 1
    await expect(finish(signIn, { cookie, query })).rejects.toMatchObject(LOST)
  })
})

describe('the user', () => {
  const NO_USER =
    'there is no user with the address ann@example.com: ask an administrator to create one in the settings'

  it.each<[string, object | null, string]>([
    [
      'without an address',
      { sub: 'ann' },
      'Example has not given your e-mail address: ask an administrator to list your subject under users in SIGN_IN',
    ],
    [
      'with an address that is not verified',
      { sub: 'ann', email: 'ann@example.com', email_verified: false },
      'Example has not verified your e-mail address: verify it there and sign in again, or ask an administrator to list your subject under users in SIGN_IN',
    ],
    [
      'with an address that equals that of a user only for the database',
      { sub: 'ann', email: '\u212Aann@example.com', email_verified: true },
      'your e-mail address at Example cannot be that of a user here: ask an administrator to list your subject under users in SIGN_IN',
    ],
    [
      'who has cancelled',
      null,
      'Example has not signed you in: sign in again, or ask an administrator of Example for access',
    ],
  ])('%s is rejected, and not created', async (_, account, message) => {
    await organization.addUser('kann@example.com')
    provider.account = account as TestProvider['account']
    const signIn = aSignIn({ newUserScope: 'admin' })
    const way = await walk(signIn)
    await expect(finish(signIn, way)).rejects.toMatchObject({ code: 'unauthenticated', message })
    expect((await test.database.query('select from users')).rowCount).toBe(1)
    expect(onProblem).not.toHaveBeenCalled()
  })

  it('who does not exist is rejected without create_users', async () => {
    const signIn = aSignIn()
    const way = await walk(signIn)
    await expect(finish(signIn, way)).rejects.toMatchObject({ code: 'unauthenticated', message: NO_USER })
    expect((await test.database.query('select from users')).rowCount).toBe(0)
    const entry = { action: 'login.failed', target: null, address: BACK.address, detail: { provider: 'Example' } }
    expect(onAudit.mock.calls).toMatchObject([[entry]])
  })

  it('who does not exist is created with create_users, with its scope, without a password, and recorded', async () => {
    provider.account = { sub: 'ann', email: 'Ann@Example.com', email_verified: true }
    const signIn = aSignIn({ newUserScope: 'read' })
    const user = await finish(signIn, await walk(signIn))
    expect(user).toMatchObject({ email: 'ann@example.com', organizationId: organization.id, scope: 'read' })
    const target = { kind: 'user', id: user.id, name: 'ann@example.com' }
    expect(onAudit.mock.calls).toMatchObject([
      [
        {
          action: 'user.created',
          actor: { kind: 'system', id: null },
          address: BACK.address,
          target,
          detail: { scope: 'read', provider: 'Example' },
        },
      ],
      [{ action: 'login.succeeded' }],
    ])
    const { rows } = await test.database.query<{ hash: string }>('select password_hash as hash from users')
    expect(await verifyPassword('', rows[0]!.hash)).toBe(false)
    // The second sign-in finds the user, whose scope an administrator may have changed.
    await test.database.query(`update users set scope = 'write'`)
    expect(await finish(signIn, await walk(signIn))).toEqual({ ...user, scope: 'write' })
    expect(onAudit).toHaveBeenCalledTimes(3)
  })

  it('is created once by sign-ins at the same time', async () => {
    const replicas = Array.from({ length: 4 }, () => aSignIn({ newUserScope: 'read' }))
    const ways = await Promise.all(replicas.map((signIn) => walk(signIn)))
    const users = await Promise.all(replicas.map((signIn, at) => finish(signIn, ways[at]!)))
    expect(new Set(users.map(({ id }) => id)).size).toBe(1)
    const actions = onAudit.mock.calls.map(([{ action }]) => action).sort()
    expect(actions).toEqual([...Array(4).fill('login.succeeded'), 'user.created'])
  })

  it('begins no session when it is removed meanwhile', async () => {
    const ann = await organization.addUser('ann@example.com')
    const signIn = aSignIn()
    const way = await walk(signIn)
    const message = 'this user was removed a moment ago: sign in again'
    const rejection = await test.database.transaction(async (tx) => {
      await tx.query('delete from users where id = $1', [ann.id])
      const rejected = expect(finish(signIn, way)).rejects.toMatchObject({ code: 'unauthenticated', message })
      await untilWaiting(test, 1)
      return { rejected }
    })
    await rejection.rejected
    expect((await test.database.query('select from sessions')).rowCount).toBe(0)
  })

  it('that is configured for the subject comes before the address', async () => {
    const robot = await organization.addUser('robot@example.com', 'write')
    await organization.addUser('ann@example.com')
    const signIn = aSignIn({ users: new Map([['ann', 'Robot@example.com']]) })
    expect(await finish(signIn, await walk(signIn))).toMatchObject({ id: robot.id })
    provider.account = { sub: 'ann' }
    expect(await finish(signIn, await walk(signIn))).toMatchObject({ id: robot.id })
  })
})

describe('a provider', () => {
  it('that hangs holds up twenty sign-ins at a time, and a hundred wait', async () => {
    await using hanging = await startReceiver()
    hanging.answer('hang')
    const signIn = aSignIn({ issuer: hanging.url })
    const begun = Array.from({ length: 121 }, () => signIn.begin('Example', '/', ORIGIN).catch((error) => error))
    expect(await begun.at(-1)).toMatchObject({
      code: 'unavailable',
      message: 'too many sign-ins at the moment: try again shortly',
    })
    await hanging.waitFor(1)
    await hanging.close()
    const messages = (await Promise.all(begun)).map(({ message }) => message)
    const away = 'Example cannot be reached at the moment: try again in a minute'
    expect(messages.filter((message) => message === away)).toHaveLength(120)
  })

  it('that gives the address in the ID token is not asked for it again', async () => {
    const ann = await organization.addUser('ann@example.com')
    await using direct = await startIdentityProvider({
      redirectUris: [`${ORIGIN}/login/Example/callback`],
      configuration: { conformIdTokenClaims: false },
    })
    const signIn = aSignIn({ issuer: direct.url })
    const { location, cookie } = await signIn.begin('Example', '/', ORIGIN)
    const { search: query } = await direct.authorize(location)
    expect(await finish(signIn, { cookie, query })).toMatchObject({ id: ann.id })
    expect(direct.requests).not.toContain('GET /me')
    expect(direct.requests).toContain('GET /jwks')
  })

  it('that does not know the secret is a fault of the configuration, which the log has', async () => {
    const signIn = aSignIn({ clientSecret: 'another' })
    await expect(finish(signIn, await walk(signIn))).rejects.toMatchObject({
      code: 'unavailable',
      message:
        'Example does not accept this service: have an administrator check client_id and client_secret in SIGN_IN',
    })
    expect(onProblem).toHaveBeenCalledTimes(1)
    expect(onProblem.mock.calls[0]).toMatchObject(['Example', { message: expect.stringMatching(/^invalid_client: /) }])
    expect(inspect(onProblem.mock.calls, { depth: 10 })).not.toContain('another')
  })

  it('that is away is named, and found again', async () => {
    const ann = await organization.addUser('ann@example.com')
    const redirectUris = [`${ORIGIN}/login/Example/callback`]
    const first = await startIdentityProvider({ redirectUris })
    await first.close()
    const signIn = aSignIn({ issuer: first.url })
    const away = { code: 'unavailable', message: 'Example cannot be reached at the moment: try again in a minute' }
    await expect(signIn.begin('Example', '/', ORIGIN)).rejects.toMatchObject(away)
    expect(onProblem).toHaveBeenCalledWith('Example', expect.any(Error))
    const second = await startIdentityProvider({ redirectUris, port: Number(new URL(first.url).port) })
    const { location, cookie } = await signIn.begin('Example', '/', ORIGIN)
    const { search: query } = await second.authorize(location)
    await second.close()
    await expect(finish(signIn, { cookie, query })).rejects.toMatchObject(away)
    // While the discovery document cannot be fetched, the one from before is used.
    clock.time += 10 * 60_000
    await expect(signIn.begin('Example', '/', ORIGIN)).resolves.toMatchObject({ location: expect.any(String) })
    await using third = await startIdentityProvider({ redirectUris, port: Number(new URL(first.url).port) })
    const again = await signIn.begin('Example', '/', ORIGIN)
    const back = await third.authorize(again.location)
    expect(await finish(signIn, { cookie: again.cookie, query: back.search })).toMatchObject({ id: ann.id })
  })

  it('whose discovery document is fresh is not asked for it again, also by sign-ins at the same time', async () => {
    const discoveries = () => provider.requests.filter((request) => request.includes('.well-known')).length
    const signIn = aSignIn()
    const before = discoveries()
    await Promise.all([signIn.begin('Example', '/', ORIGIN), signIn.begin('Example', '/', ORIGIN)])
    clock.time += 10 * 60_000 - 1
    await signIn.begin('Example', '/', ORIGIN)
    expect(discoveries()).toBe(before + 1)
    clock.time += 1
    await signIn.begin('Example', '/', ORIGIN)
    expect(discoveries()).toBe(before + 2)
  })
})
