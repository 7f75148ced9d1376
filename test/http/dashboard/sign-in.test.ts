/** Sign-in with an identity provider over HTTP: pages, cookies and redirects. What decides is tested in test/db/auth/sign-in.test.ts. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { logInToDashboard } from '../../../src/auth/log-in.ts'
import { createFindDashboardCaller } from '../../../src/auth/sessions.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { CLIENT, startIdentityProvider, type TestProvider } from '../../support/identity-provider.ts'
import { LOW_COST } from '../../support/passwords.ts'
import { createVisitor } from '../../support/visitor.ts'

const PUBLIC = 'https://heartbeat.example.com'
const COOKIE = '__Host-heartbeat_sign_in'

let provider: TestProvider
let app: TestApp
let origin: string

beforeAll(async () => {
  provider = await startIdentityProvider({
    redirectUris: ['Example', 'New-users'].map((name) => `${PUBLIC}/login/${name}/callback`),
  })
  const entry = { ...CLIENT, issuer: provider.url }
  const lost = { ...entry, issuer: 'http://127.0.0.1:9', name: 'Lost' }
  const signIn = [{ ...entry, name: 'Example' }, { ...entry, name: 'New-users', create_users: { scope: 'read' } }, lost]
  app = await startTestApp({
    environment: { SIGN_IN: JSON.stringify(signIn), BASE_URL: `${PUBLIC}/api/v1`, PASSWORD_LOGIN: 'off' },
  })
  origin = new URL(app.listeningApiUrl).origin
})
afterAll(async () => {
  await app?.close()
  await provider?.close()
})
beforeEach(() => {
  provider.account = { sub: 'admin', email: 'admin@example.com', email_verified: true }
})

/** To the provider and back; the path of the callback with its query. */
async function walk(visitor: ReturnType<typeof createVisitor>, name = 'Example', next?: string): Promise<string> {
  const query = next === undefined ? '' : `?next=${encodeURIComponent(next)}`
  const { status, location } = await visitor.get(`/login/${name}${query}`)
  expect(status).toBe(303)
  const { origin: to, pathname, search } = await provider.authorize(location!)
  expect(to).toBe(PUBLIC)
  return pathname + search
}

describe('the log-in page', () => {
  it('has a link for each provider, which keeps the way to go, and no form when log-in by password is off', async () => {
    const { text } = await createVisitor(origin).get('/login?next=%2Fchecks%3Fq%3D%2522')
    const links = [...text.matchAll(/href="(\/login\/[^"]+)">([^<]+)</g)].map(([, to, words]) => [to, words])
    const next = '?next=%2Fchecks%3Fq%3D%2522'
    expect(links).toEqual([
      [`/login/Example${next}`, 'Sign in with Example'],
      [`/login/New-users${next}`, 'Sign in with New-users'],
      [`/login/Lost${next}`, 'Sign in with Lost'],
    ])
    expect(text).not.toContain('<form')
    const posted = await createVisitor(origin).post('/login', app.logIn)
    expect([posted.status, posted.headers.getSetCookie()]).toEqual([403, []])
  })
})

describe('a sign-in', () => {
  it('begins a session and leads to the page that was asked for; its cookie goes', async () => {
    const visitor = createVisitor(origin)
    const asked = await visitor.get('/checks?status=down')
    expect(asked.location).toBe(`/login?next=${encodeURIComponent('/checks?status=down')}`)
    const back = await walk(visitor, 'Example', '/checks?status=down')
    const { status, location, headers } = await visitor.get(back)
    expect([status, location]).toEqual([303, '/checks?status=down'])
    expect(headers.getSetCookie().map((line) => line.replace(/=[^;]*; path/, '=...; path'))).toEqual([
      expect.stringMatching(/^__Host-heartbeat_session=\.{3}; path=\/; expires=[^;]*; samesite=lax; secure; httponly$/),
      expect.stringMatching(
        /^__Host-heartbeat_sign_in=\.{3}; path=\/; expires=Thu, 01 Jan 1970 [^;]*; samesite=lax; secure; httponly$/,
      ),
    ])
    expect(visitor.cookies.has(COOKIE)).toBe(false)
    expect((await visitor.get('/checks')).text).toContain('admin@example.com')
    // A user with a session needs no second sign-in.
    expect((await visitor.get('/login/Example?next=/service')).location).toBe('/service')
  })

  it('ends the session that the browser got while it was away', async () => {
    const visitor = createVisitor(origin)
    const back = await walk(visitor)
    const other = createVisitor(origin)
    await other.get(await walk(other))
    const token = other.cookies.get('__Host-heartbeat_session')!
    visitor.cookies.set('__Host-heartbeat_session', token)
    expect((await visitor.get(back)).status).toBe(303)
    expect(visitor.cookies.get('__Host-heartbeat_session')).not.toBe(token)
    expect((await visitor.get('/checks')).status).toBe(200)
    expect((await other.get('/checks')).status).toBe(303)
  })

  it('has a cookie that scripts cannot read, for ten minutes', async () => {
    const visitor = createVisitor(origin)
    const before = Date.now()
    const { headers } = await visitor.get('/login/Example')
    const [, expires] =
      /^__Host-heartbeat_sign_in=[\w.-]+; path=\/; expires=([^;]*); samesite=lax; secure; httponly$/.exec(
        headers.getSetCookie()[0]!,
      )!
    expect(Math.abs(Date.parse(expires!) - before - 600_000)).toBeLessThan(30_000)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  it('does not lead to another site', async () => {
    const visitor = createVisitor(origin)
    expect((await visitor.get(await walk(visitor, 'Example', '//evil.example.com'))).location).toBe('/checks')
  })

  it('that is finished twice, in another browser, or by another provider fails, with the way to begin again', async () => {
    const [visitor, other] = [createVisitor(origin), createVisitor(origin)]
    const back = await walk(visitor, 'Example', '/service')
    const foreign = await other.get(back)
    expect([foreign.status, foreign.headers.getSetCookie()]).toEqual([401, []])
    expect(foreign.text).toContain('This sign-in began in another browser')
    expect(foreign.text).toContain('href="/login/Example"')
    expect((await visitor.get(back.replace('/Example/', '/New-users/'))).status).toBe(401)
    const cookie = visitor.cookies.get(COOKIE)!
    expect((await visitor.get(back)).status).toBe(303)
    const again = createVisitor(origin)
    again.cookies.set(COOKIE, cookie)
    const replayed = await again.get(back)
    expect([replayed.status, replayed.headers.getSetCookie()]).toEqual([401, []])
    expect(replayed.text).toContain('This sign-in was finished before, or took too long: sign in again.')
    expect(replayed.text).toContain('href="/login/Example?next=%2Fservice"')
  })

  it('creates a user where the provider may, and rejects it elsewhere', async () => {
    provider.account = { sub: 'eve', email: 'eve<b>@example.com', email_verified: true }
    const rejected = createVisitor(origin)
    const { status, text } = await rejected.get(await walk(rejected))
    expect(status).toBe(401)
    expect(text).toContain('Your e-mail address at Example cannot be that of a user here')
    provider.account = { sub: 'eve', email: 'eve&co@example.com', email_verified: true }
    const unknown = await rejected.get(await walk(rejected))
    expect(unknown.status).toBe(401)
    expect(unknown.text).toContain('There is no user with the address eve&amp;co@example.com: ask an administrator')
    const created = createVisitor(origin)
    expect((await created.get(await walk(created, 'New-users'))).location).toBe('/checks')
    const { body } = await app.client.get('/users')
    expect(body.users).toMatchObject([{}, { email: 'eve&co@example.com', scope: 'read', created_by: null }])
    expect((await rejected.get(await walk(rejected))).location).toBe('/checks')
  })

  it('that the user cancels, or whose provider is away, leads back to the log-in', async () => {
    const visitor = createVisitor(origin)
    provider.account = null
    const denied = await visitor.get(await walk(visitor))
    expect(denied.status).toBe(401)
    expect(denied.text).toContain('Example has not signed you in')
    const away = await visitor.get('/login/Lost?next=/service')
    expect([away.status, away.headers.getSetCookie()]).toEqual([503, []])
    expect(away.text).toContain('Lost cannot be reached at the moment: try again in a minute.')
    expect(away.text).toContain('href="/login/Lost?next=%2Fservice"')
    for (const path of ['/login/example', '/login/example/callback?state=x', '/login/Example/other'])
      expect((await visitor.get(path)).status).toBe(404)
  })
})

it('a session that began with a password before PASSWORD_LOGIN=off is none, and its browser can sign in', async () => {
  const context = { database: app.database, clock: systemClock, passwordCost: LOW_COST }
  const token = await logInToDashboard(context, { ...app.logIn, address: '192.0.2.1' }, null)
  expect(await createFindDashboardCaller(context)(token, '192.0.2.1', false)).toMatchObject({
    name: 'admin@example.com',
  })
  const visitor = createVisitor(origin)
  const name = '__Host-heartbeat_session'
  // The prefix of sessions by a provider does not help.
  for (const guess of [token, `sso.${token}`]) {
    visitor.cookies.set(name, guess)
    expect((await visitor.get('/checks')).location).toBe('/login?next=%2Fchecks')
    expect((await visitor.get('/live')).location).toBe('/login?next=%2Flive')
    expect((await visitor.post('/settings/projects', { name: 'Payments' })).location).toMatch(/^\/login/)
    expect((await visitor.get('/login')).text).toContain('Sign in with Example')
  }
  expect((await visitor.get(await walk(visitor))).location).toBe('/checks')
  expect((await visitor.get('/checks')).status).toBe(200)
})

it('a sign-in goes on while log-in by password is off, and after it', async () => {
  const visitor = createVisitor(origin)
  await visitor.get(await walk(visitor))
  const token = visitor.cookies.get('__Host-heartbeat_session')
  const context = { database: app.database, clock: systemClock, passwordCost: LOW_COST }
  for (const isPasswordLoginOn of [false, true])
    expect(await createFindDashboardCaller(context, isPasswordLoginOn)(token, '192.0.2.1')).not.toBeNull()
})

it('DASHBOARD=off: every page is 404, and the API is served', async () => {
  await using off = await startTestApp({ environment: { DASHBOARD: 'off' } })
  const visitor = createVisitor(new URL(off.apiUrl).origin)
  for (const path of ['/', '/login', '/checks', '/settings', '/assets/dashboard.css'])
    expect((await visitor.get(path)).status, path).toBe(404)
  expect((await visitor.post('/login', off.logIn)).status).toBe(404)
  expect((await off.client.get('/me')).status).toBe(200)
})
