import { request } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Log } from '../../../src/runtime/log.ts'
import { HOUR } from '../../support/builders.ts'
import { startTestApi } from '../../support/service.ts'
import { silentLog } from '../../support/silent-log.ts'
import { use } from '../../support/use.ts'
import { createVisitor, visit } from '../../support/visitor.ts'

let origin: string

const api = use(startTestApi)
beforeAll(async () => {
  origin = new URL(api.url).origin
})

describe('a visitor without a session', () => {
  it('is sent to the log-in, and from there to the page it asked for', async () => {
    const visitor = createVisitor(origin)
    const asked = await visitor.get('/checks?status=down&q=a%20b')
    expect([asked.status, asked.location]).toEqual([
      303,
      `/login?next=${encodeURIComponent('/checks?status=down&q=a%20b')}`,
    ])
    expect((await visitor.get(asked.location!)).text).toContain(
      '<input type="hidden" name="next" value="/checks?status=down&amp;q=a%20b">',
    )
    const { status, location } = await visitor.post('/login', { ...api.admin, next: '/checks?status=down&q=a%20b' })
    expect([status, location]).toEqual([303, '/checks?status=down&q=a%20b'])
    expect((await visitor.get('/checks')).status).toBe(200)
  })

  // Which addresses are ours: test/unit/http/dashboard/own-page.test.ts, and so for the forms below.
  it.each(['https://evil.example.com/', '//evil.example.com/'])(
    'is not led to another site by next=%j',
    async (next) => {
      const { location } = await createVisitor(origin).post('/login', { ...api.admin, next })
      expect(location).toBe('/checks')
    },
  )

  it('gets 401 and the page again with a wrong password, without the password in it', async () => {
    const { status, text, headers } = await createVisitor(origin).post('/login', {
      ...api.admin,
      password: 'a wrong password',
    })
    expect(status).toBe(401)
    expect(text).toContain('The e-mail address or the password is wrong.')
    expect(text).toContain(`value="${api.admin.email}"`)
    expect(text).not.toContain('a wrong password')
    expect(headers.getSetCookie()).toEqual([])
  })
})

describe('a session', () => {
  it('has a cookie that scripts cannot read and other sites cannot send', async () => {
    const visitor = createVisitor(origin)
    const { headers } = await visitor.post('/login', api.admin)
    expect(headers.getSetCookie().map((cookie) => cookie.replace(/expires=[^;]*/, 'expires=...'))).toEqual([
      `heartbeat_session=${visitor.cookies.get('heartbeat_session')}; path=/; expires=...; samesite=lax; httponly`,
    ])
    expect(visitor.cookies.get('heartbeat_session')).toMatch(/^[\w-]{43}$/)
  })

  it('has a cookie with __Host- and Secure when the public address is https', async () => {
    await using secure = await startTestApi({ baseUrl: () => 'https://heartbeat.example.com/api/v1' })
    const visitor = createVisitor(new URL(secure.url).origin)
    const { headers } = await visitor.post('/login', secure.admin)
    expect(headers.getSetCookie()[0]).toMatch(
      /^__Host-heartbeat_session=[\w-]{43}; path=\/; expires=[^;]*; samesite=lax; secure; httponly$/,
    )
  })

  it('is stored as a hash alone', async () => {
    const visitor = await visit(api)
    const token = visitor.cookies.get('heartbeat_session')!
    const { rows } = await api.database.query<{ text: string }>(
      "select sessions::text as text from sessions where kind = 'dashboard'",
    )
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.map(({ text }) => text).join()).not.toContain(token)
  })

  it('is not a credential of the API', async () => {
    const visitor = await visit(api)
    expect((await visitor.get('/api/v1/me')).status).toBe(401)
    const token = visitor.cookies.get('heartbeat_session')!
    expect((await api.client.get('/me', { key: token })).status).toBe(401)
  })

  it('ends 12 hours after its last use, and not before', async () => {
    await using later = await startTestApi()
    const visitor = await visit(later)
    for (let use = 0; use < 3; use += 1) {
      later.moveClock(11.9 * HOUR)
      expect((await visitor.get('/checks')).status).toBe(200)
      // The use is written beside the response.
      await expect
        .poll(
          async () =>
            (
              await later.database.query(
                "select from sessions where kind = 'dashboard' and expires_at > now() + $1 * interval '1 hour'",
                [11.9 * (use + 1) + 11],
              )
            ).rows.length,
        )
        .toBe(1)
    }
    later.moveClock(12.1 * HOUR)
    expect((await visitor.get('/checks')).status).toBe(303)
  })

  it('ends after 30 days at most', async () => {
    await using later = await startTestApi()
    const visitor = await visit(later)
    await later.database.query(
      "update sessions set created_at = created_at - interval '29 days 12 hours 30 minutes', last_used_at = last_used_at - interval '1 hour'",
    )
    expect((await visitor.get('/checks')).status).toBe(200)
    await expect
      .poll(
        async () =>
          (await later.database.query("select from sessions where expires_at = created_at + interval '30 days'")).rows
            .length,
      )
      .toBe(1)
    later.moveClock(11.4 * HOUR)
    expect((await visitor.get('/checks')).status).toBe(200)
    later.moveClock(0.2 * HOUR)
    expect((await visitor.get('/checks')).status).toBe(303)
  })

  it('ends with the log-out, which also deletes the cookie', async () => {
    const visitor = await visit(api)
    const copy = new Map(visitor.cookies)
    const { status, location } = await visitor.post('/logout')
    expect([status, location]).toEqual([303, '/login?done=logged-out'])
    expect(visitor.cookies.size).toBe(0)
    const thief = createVisitor(origin)
    expect((await thief.get('/checks', { cookie: `heartbeat_session=${copy.get('heartbeat_session')}` })).status).toBe(
      303,
    )
    expect((await visitor.get(location!)).text).toContain('You are logged out.')
  })

  it('ends with its user, and with a password that an admin sets', async () => {
    for (const end of ['remove', 'set password'] as const) {
      const user = { email: `${end.replace(' ', '-')}@example.com`, password: 'a long enough password' }
      const { body } = await api.client.post('/users', { ...user, scope: 'read' })
      const visitor = createVisitor(origin)
      await visitor.logIn(user)
      expect((await visitor.get('/checks')).status).toBe(200)
      if (end === 'remove') await api.client.delete(`/users/${body.id}`)
      else await api.client.put(`/users/${body.id}`, { scope: 'read', password: 'another long password' })
      expect((await visitor.get('/checks')).status, end).toBe(303)
    }
  })
})

describe('a request that changes something', () => {
  it.each([
    [{ 'sec-fetch-site': 'same-origin' }, 303],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'cross-site', origin: 'own' }, 403],
    [{ origin: 'own' }, 303],
    [{ origin: 'https://evil.example.com' }, 403],
    [{}, 403],
  ])('with %j gets %i', async (headers: Record<string, string>, status) => {
    const sent = { ...headers, ...(headers.origin === 'own' ? { origin } : {}) }
    for (const path of ['/login', '/logout']) {
      const response = await fetch(origin + path, {
        method: 'POST',
        redirect: 'manual',
        body: new URLSearchParams(api.admin),
        headers: sent,
      })
      expect(response.status, path).toBe(status)
    }
  })
})

it('a page without TLS at the public name is not our own where that has TLS; another name of ours is', async () => {
  await using secure = await startTestApi({ baseUrl: () => 'https://heartbeat.example.com/api/v1' })
  const post = (host: string, from: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const { hostname, port } = new URL(secure.url)
      const headers = { host, origin: from }
      request({ hostname, port, path: '/logout', method: 'POST', headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
        .on('error', reject)
        .end()
    })
  const name = 'heartbeat.example.com'
  expect(await post(name, `https://${name}`)).toBe(303)
  expect(await post(name, `http://${name}`)).toBe(403)
  expect(await post(name, 'https://evil.example.com')).toBe(403)
  expect(await post('127.0.0.1:9000', 'http://127.0.0.1:9000')).toBe(303)
  expect(await post('127.0.0.1:9000', 'http://127.0.0.1:9001')).toBe(403)
})

it('a form that a proxy sends on under another name is rejected with both names, and with a line of the log', async () => {
  const lines: unknown[] = []
  const log = {
    ...silentLog,
    warn: (...line: unknown[]) => lines.push(line),
    debug: () => {},
    info: () => {},
  } as unknown as Log
  await using named = await startTestApi({ log, baseUrl: () => 'http://127.0.0.1:8081/api/v1' })
  const own = new URL(named.url).host
  const post = () =>
    fetch(new URL('/login', named.url), {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams(named.admin),
      headers: { origin: 'http://heartbeat.example.com' },
    })
  const response = await post()
  expect(response.status).toBe(403)
  const text = await response.text()
  for (const part of ['heartbeat.example.com (Origin)', `${own} (Host)`, 'BASE_URL has 127.0.0.1:8081', '$http_host'])
    expect(text).toContain(part)
  await post()
  const why = expect.stringContaining('heartbeat.example.com (Origin)')
  expect(lines).toEqual([[{ why, count: 1 }, expect.stringContaining('a form was rejected')]])
})

it('the log-in page says when it was opened by http though BASE_URL is https', async () => {
  await using secure = await startTestApi({ baseUrl: () => 'https://heartbeat.example.com/api/v1' })
  const visitor = createVisitor(new URL(secure.url).origin)
  const hint = 'open <a href="https://heartbeat.example.com/login">'
  // A browser drops the cookie of the session, and is led to the log-in again.
  expect((await visitor.post('/login', secure.admin)).status).toBe(303)
  visitor.cookies.clear()
  const { location } = await visitor.get('/checks')
  expect((await visitor.get(location!)).text).toContain(hint)
  expect((await visitor.get('/login', { 'x-forwarded-proto': 'https' })).text).not.toContain(hint)
  expect((await visitor.get('/login', { 'sec-fetch-site': 'none' })).text).not.toContain(hint)
  expect((await createVisitor(origin).get('/login')).text).not.toContain('opened by http')
})

it('below a path a cookie for https has that path, which __Host- does not allow', async () => {
  await using secure = await startTestApi({ baseUrl: () => 'https://example.com/heartbeat/api/v1' })
  const visitor = createVisitor(new URL(secure.url).origin)
  const { headers } = await visitor.post('/heartbeat/login', secure.admin)
  expect(headers.getSetCookie()[0]).toMatch(
    /^__Secure-heartbeat_session=[\w-]{43}; path=\/heartbeat; expires=[^;]*; samesite=lax; secure; httponly$/,
  )
  expect((await visitor.get('/heartbeat/checks')).status).toBe(200)
})

it('a credential that a proxy forwards with each page leaves the page where it is', async () => {
  const visitor = await visit(api)
  for (const authorization of ['Bearer x.y.z', `Bearer ${api.keys.admin}`, 'Basic YTpi']) {
    expect((await visitor.get('/checks', { authorization })).headers.get('content-type')).toContain('text/html')
    expect((await createVisitor(origin).get('/checks', { authorization })).location).toBe('/login?next=%2Fchecks')
  }
})

describe('every page', () => {
  it('has the headers that bind it to us', async () => {
    const { headers } = await (await visit(api)).get('/checks')
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    )
    expect(headers.get('referrer-policy')).toBe('same-origin')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  })

  it('names files with a hash, which a browser keeps', async () => {
    const visitor = createVisitor(origin)
    const { text } = await visitor.get('/login')
    const files = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map((match) => match[1]!)
    expect(files).toHaveLength(3)
    for (const file of files) {
      expect(file).toMatch(/-[0-9a-f]{12}\.(css|js)$/)
      const { status, headers } = await visitor.get(file, { 'accept-encoding': 'gzip, deflate, br' })
      expect([status, headers.get('cache-control'), headers.get('content-encoding')]).toEqual([
        200,
        'public, max-age=31536000, immutable',
        'br',
      ])
    }
    for (const name of ['other-000000000000.css', 'dashboard.css', 'dashboard-0.css', '..%2f..%2fapp.ts'])
      expect((await visitor.get(`/assets/${name}`)).status, name).toBe(404)
  })

  it('of another release, which runs beside this one during an update, has our files, and does not keep them', async () => {
    const visitor = createVisitor(origin)
    const { text } = await visitor.get('/login')
    for (const [file] of text.matchAll(/\/assets\/[^"]+/g)) {
      const own = await visitor.get(file)
      const other = await visitor.get(file.replace(/-[0-9a-f]{12}/, '-000000000000'))
      expect([other.status, other.headers.get('cache-control')]).toEqual([200, 'no-store'])
      expect(other.headers.get('content-type')).toBe(own.headers.get('content-type'))
      expect(other.text).toBe(own.text)
    }
  })

  it('that does not exist is 404 with a page, also without a session', async () => {
    for (const visitor of [createVisitor(origin), await visit(api)]) {
      const { status, text } = await visitor.get('/nothing')
      expect(status).toBe(404)
      expect(text).toContain('There is no such page.')
    }
  })
})
