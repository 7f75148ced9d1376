import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { logIn as enter } from '../../../src/auth/log-in.ts'
import { createTokens } from '../../../src/auth/tokens.ts'
import { createFindClientAddress } from '../../../src/http/client-address.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { startTestApp } from '../../support/app.ts'
import { LOW_COST } from '../../support/passwords.ts'
import { SECRET_KEY, startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

const open = { key: null }
const logIn = (fields: object = {}) => api.client.post('/auth/login', { ...api.admin, ...fields }, open)
const refresh = (refresh_token: string) => api.client.post('/auth/refresh', { refresh_token }, open)

describe('POST /auth/login', () => {
  it('returns a pair of tokens, of which one is accepted by the API', async () => {
    const { status, body } = await logIn()
    expect(status).toBe(200)
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 900,
      refresh_token: expect.any(String),
    })
    const me = await api.client.get('/me', { key: body.access_token })
    expect(me.body).toMatchObject({ kind: 'user', user: { email: api.admin.email }, scope: 'admin', project_id: null })
    expect((await api.client.get('/me', { key: body.refresh_token })).status).toBe(401)
  })

  it('does not show which part was wrong', async () => {
    const wrong = await logIn({ password: 'wrong password' })
    const unknown = await logIn({ email: 'nobody@example.com' })
    expect(wrong.status).toBe(401)
    expect(wrong.headers.get('www-authenticate')).toBe('Bearer')
    expect([unknown.status, unknown.body]).toEqual([wrong.status, wrong.body])
  })

  it.each([
    [{ email: undefined }, 'email is required'],
    [{ password: undefined }, 'password is required'],
    [{ password: '' }, 'password must be text of 1 to 1024 characters'],
    [{ password: 'x'.repeat(1_025) }, 'password must be text of 1 to 1024 characters'],
    [{ email: ['admin@example.com'] }, 'email must be text of 1 to 1024 characters'],
    [{ email: 'a\u0000@b' }, 'email must be text without the NUL character'],
    [{ otp: '1' }, 'otp is not a known field'],
  ])('rejects %j', async (fields, error) => {
    expect(await logIn(fields)).toMatchObject({ status: 400, body: { error } })
  })

  it.each(['adm\u0130n@example.com', 'admin@ex\u00e4mple.com'])('rejects %s, which is not ASCII', async (email) => {
    const error =
      'email must be an e-mail address of ASCII characters: write an international domain in punycode (xn--...)'
    expect(await logIn({ email })).toMatchObject({ status: 400, body: { error } })
  })

  it('is throttled with Retry-After, whatever a forwarded address says', async () => {
    const answers = []
    for (let attempt = 0; attempt < 40; attempt += 1) {
      const headers = { 'x-forwarded-for': `10.0.0.${attempt}`, forwarded: `for=10.0.0.${attempt}` }
      const answer = await api.client.post(
        '/auth/login',
        { email: 'guess@example.com', password: `guess ${attempt}` },
        { ...open, headers },
      )
      answers.push(answer)
      if (answer.status === 429) break
    }
    const last = answers.at(-1)!
    expect(last.status).toBe(429)
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(last.body).toEqual({ error: expect.any(String), code: 'too_many_requests' })
  })
})

describe('POST /auth/login behind a proxy', () => {
  it('fifty failed log-ins behind a proxy do not shut log-in for other clients', async () => {
    const findClientAddress = createFindClientAddress(['127.0.0.0/8'])
    await using proxied = await startTestApi({ findClientAddress })
    const from = (address: string, fields: object = {}) =>
      proxied.client.post(
        '/auth/login',
        { ...proxied.admin, ...fields },
        // What the client claims, and what the proxy appends.
        { ...open, headers: { 'x-forwarded-for': `198.51.100.200, ${address}` } },
      )
    await proxied.database.query(
      `insert into login_failures (bucket, failed_at, last_at) values ($1, array_fill(now(), array[49]), now())`,
      [`address:${createHash('sha256').update('203.0.113.7').digest('base64url')}`],
    )
    expect((await from('203.0.113.7', { email: 'nobody@example.com' })).status).toBe(401)
    expect((await from('203.0.113.7')).status).toBe(429)
    expect((await from('203.0.113.8')).status).toBe(200)
  })
})

it('the running service hashes passwords at its own cost', async () => {
  await using app = await startTestApp({ passwordCost: null })
  const readHash = async () =>
    (await app.database.query<{ hash: string }>('select password_hash as hash from users')).rows[0]!.hash
  expect(await readHash()).toMatch(/^scrypt\$4\$/)
  expect((await app.client.post('/auth/login', app.logIn, { key: null })).status).toBe(200)
  expect(await readHash()).toMatch(/^scrypt\$15\$8\$3\$/)
})

describe('POST /auth/login with PASSWORD_LOGIN off', () => {
  it('is rejected', async () => {
    await using off = await startTestApi({ isPasswordLoginOn: false })
    expect(await off.client.post('/auth/login', off.admin, open)).toMatchObject({
      status: 403,
      body: { error: 'password login is off: use the identity provider' },
    })
  })

  it('a session that began before cannot be renewed, nor its password changed, and it can end', async () => {
    await using off = await startTestApi({ isPasswordLoginOn: false })
    const context = { database: off.database, clock: systemClock, passwordCost: LOW_COST }
    const pair = await enter(context, createTokens(SECRET_KEY, systemClock), { ...off.admin, address: '192.0.2.1' })
    const error = 'password login is off: use the identity provider'
    const body = { refresh_token: pair.refreshToken }
    for (let attempt = 1; attempt <= 2; attempt += 1)
      expect(await off.client.post('/auth/refresh', body, open)).toMatchObject({ status: 401, body: { error } })
    const change = { current_password: off.admin.password, new_password: 'another long password' }
    const key = { key: pair.accessToken }
    expect(await off.client.put('/me/password', change, key)).toMatchObject({ status: 403, body: { error } })
    expect((await off.client.get('/me', key)).status).toBe(200)
    expect((await off.client.post('/auth/logout', body, open)).status).toBe(204)
    expect((await off.client.get('/me', key)).status).toBe(401)
  })
})

describe('POST /auth/refresh', () => {
  it('returns the next pair, and rejects a spent token and anything else', async () => {
    const first = (await logIn()).body
    const second = await refresh(first.refresh_token)
    expect(second.status).toBe(200)
    expect(second.body.refresh_token).not.toBe(first.refresh_token)
    for (const token of [first.refresh_token, 'x']) expect((await refresh(token)).status).toBe(401)
    expect(await api.client.post('/auth/refresh', {}, open)).toMatchObject({
      status: 400,
      body: { error: 'refresh_token is required' },
    })
  })
})

describe('POST /auth/logout', () => {
  it('ends the log-in, and is idempotent', async () => {
    const { refresh_token } = (await logIn()).body
    for (let call = 0; call < 2; call += 1) {
      expect(await api.client.post('/auth/logout', { refresh_token }, open)).toMatchObject({ status: 204, body: null })
    }
    expect((await refresh(refresh_token)).status).toBe(401)
  })
})
