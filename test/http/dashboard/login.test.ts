/** The form of the log-in: what it shows, and how it rejects. Sessions: session.test.ts; identity providers: sign-in.test.ts. */

import { expect, it } from 'vitest'
import { createSignIn } from '../../../src/auth/sign-in.ts'
import { startTestApi, type TestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { createVisitor, type Visitor, visit } from '../../support/visitor.ts'

const api = use(startTestApi)
const aVisitor = ({ url }: TestApi = api) => createVisitor(new URL(url).origin)

it('has the fields E-mail and Password, and leads a user with a session on', async () => {
  const { status, text } = await aVisitor().get('/login')
  expect(status).toBe(200)
  expect(text).toMatch(/<label>E-mail <input type="email" name="email"/)
  expect(text).toMatch(/<label>Password <input type="password" name="password"/)
  expect(text).not.toContain('Sign in with')
  const { location } = await (await visit(api)).get('/login?next=%2Fservice')
  expect(location).toBe('/service')
})

it('says only that the user is logged out, whatever a link says', async () => {
  const noticeOf = async (visitor: Visitor, path: string) =>
    /id="notice">([^<]*)</.exec((await visitor.get(path)).text)?.[1]
  expect(await noticeOf(aVisitor(), '/login?done=logged-out')).toBe('You are logged out.')
  expect(await noticeOf(aVisitor(), '/login?done=check-deleted')).toBeUndefined()
  expect(await noticeOf(aVisitor(), '/login?done=constructor')).toBeUndefined()
  const user = await visit(api)
  expect(await noticeOf(user, '/checks?done=check-deleted')).toBe('The check is deleted.')
  expect(await noticeOf(user, '/checks?done=logged-out')).toBeUndefined()
})

it('rejects an address beyond ASCII with 422, and keeps it', async () => {
  const { status, text } = await aVisitor().post('/login', { email: 'zoë<@example.com', password: 'a wrong password' })
  expect(status).toBe(422)
  expect(text).toContain('role="alert"')
  expect(text).toContain('value="zoë&lt;@example.com"')
})

it('says after ten wrong passwords how long to wait, also with the right one', async () => {
  const visitor = aVisitor()
  const tried = []
  for (let attempt = 0; attempt < 10; attempt += 1)
    tried.push((await visitor.post('/login', { ...api.admin, password: 'a wrong password' })).status)
  expect(tried).toEqual(Array(10).fill(401))
  const { status, text, headers } = await visitor.post('/login', api.admin)
  expect(status).toBe(429)
  expect(text).toMatch(/Too many failed log-ins for this account or from this address; try again in \d+ seconds\./)
  expect(headers.getSetCookie()).toEqual([])
  expect(Number(headers.get('retry-after'))).toBe(Number(/again in (\d+) seconds/.exec(text)![1]))
})

it('says so where there is no way to log in', async () => {
  await using closed = await startTestApi({ isPasswordLoginOn: false })
  const { status, text } = await aVisitor(closed).get('/login')
  expect(status).toBe(200)
  expect(text).not.toContain('<form')
  expect(text).toContain('set SIGN_IN')
})

it('has a button for each identity provider beside the form', async () => {
  const provider = {
    issuer: 'http://127.0.0.1:9',
    clientId: 'x',
    clientSecret: 'x',
    users: new Map(),
    newUserScope: null,
  }
  const names = ['Example', 'Other']
  const configs = names.map((name) => ({ ...provider, name }))
  await using both = await startTestApi({ signIn: createSignIn(api.context, Buffer.alloc(32, 7), configs) })
  const { text } = await aVisitor(both).get('/login')
  expect(text).toContain('name="password"')
  for (const name of names) expect(text).toContain(`href="/login/${name}">Sign in with ${name}</a>`)
})

it('ends the session that the browser had, also of another user; a log-in that fails ends none', async () => {
  await using own = await startTestApi()
  for (const scope of [undefined, 'read'] as const) {
    const [browser, elsewhere] = [await visit(own, scope), await visit(own, scope)]
    const former = aVisitor(own)
    former.cookies.set('heartbeat_session', browser.cookies.get('heartbeat_session')!)
    expect((await browser.post('/login', { ...own.admin, password: 'a wrong password' })).status).toBe(401)
    expect((await former.get('/checks')).status).toBe(200)
    await browser.logIn(own.admin)
    expect((await former.get('/checks')).location, scope).toBe('/login?next=%2Fchecks')
    expect((await browser.get('/checks')).status).toBe(200)
    expect((await elsewhere.get('/checks')).status).toBe(200)
  }
})
