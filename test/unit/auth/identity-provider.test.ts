/** A provider that behaves as no library makes it behave: slow, endless, wrong, of another tenant, with its own ideas about secrets. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHandshake, createIdentityProvider } from '../../../src/auth/identity-provider.ts'
import { asJson, DOCUMENT, KEYS, makeKey, startIssuer, type TestIssuer } from '../../support/oidc-issuer.ts'
import type { Received, ReceiverAnswer } from '../../support/receiver.ts'

const CALLBACK = 'http://127.0.0.1:8081/login/Example/callback'
const AWAY = { code: 'unavailable', message: 'Example cannot be reached at the moment: try again in a minute' }
const handshake = createHandshake()

let issuer: TestIssuer
let token: (request: Received) => ReceiverAnswer | Promise<ReceiverAnswer>
let document: { [name: string]: unknown; token_endpoint_auth_methods_supported?: unknown; userinfo_endpoint?: unknown }
beforeEach(async () => {
  issuer = await startIssuer()
  document = {
    issuer: issuer.url,
    jwks_uri: issuer.url + KEYS,
    authorization_endpoint: `${issuer.url}/authorize`,
    token_endpoint: `${issuer.url}/token`,
    userinfo_endpoint: `${issuer.url}/userinfo`,
    id_token_signing_alg_values_supported: ['ES256'],
  }
  const idToken = await signed()
  token = () => asJson({ access_token: 'an access token', token_type: 'bearer', id_token: idToken })
  issuer.receiver.answer((request) => {
    if (request.path === DOCUMENT && !issuer.pages.has('document')) return asJson(document)
    if (request.path === DOCUMENT) return issuer.pages.get('document')!
    if (request.path === '/token') return token(request) as ReceiverAnswer
    return issuer.pages.get(request.path) ?? { status: 404 }
  })
})
afterEach(() => issuer[Symbol.asyncDispose]())

const signed = (claims: object = {}, key = issuer.key) =>
  issuer.sign({ aud: 'heartbeat', nonce: handshake.nonce, ...claims }, key)

function aProvider(fields: { issuer?: string; timeoutSeconds?: number; clock?: { now(): number } } = {}) {
  const problems: unknown[] = []
  const config = { name: 'Example', issuer: fields.issuer ?? issuer.url, clientId: 'heartbeat', clientSecret: 's p+c' }
  const onProblem = (error: unknown) => problems.push(error)
  const provider = createIdentityProvider(
    { ...config, users: new Map(), newUserScope: null },
    fields.clock ?? { now: () => Date.now() },
    onProblem,
    fields.timeoutSeconds,
  )
  const exchange = () => provider.exchange(new URL(`${CALLBACK}?code=x&state=${handshake.state}`), handshake)
  return { provider, exchange, problems, begin: () => provider.authorizationUrl(CALLBACK, handshake) }
}
const asked = (path: string) => issuer.receiver.requests.filter((request) => request.path === path)

it('signs in with what the provider says', async () => {
  const { exchange, problems } = aProvider()
  expect(await exchange()).toEqual({ subject: 'ann', email: 'ann@example.com', email_verified: true })
  expect(problems).toEqual([])
})

describe('the client secret', () => {
  const isInHeader = ({ headers }: Received) => headers.authorization === `Basic ${btoa('heartbeat:s+p%2Bc')}`
  const isInBody = ({ body }: Received) => new URLSearchParams(body).get('client_secret') === 's p+c'
  const invalid = { ...(asJson({ error: 'invalid_client' }) as object), status: 401 }

  it.each<[string, string[] | undefined, boolean]>([
    ['is in the header, the standard way', undefined, true],
    ['is in the header when the provider takes both', ['client_secret_post', 'client_secret_basic'], true],
    ['is in the body when the provider lists only that', ['client_secret_post'], false],
  ])('%s', async (_, methods, header) => {
    document.token_endpoint_auth_methods_supported = methods
    await aProvider().exchange()
    expect(asked('/token').map((request) => [isInHeader(request), isInBody(request)])).toEqual([[header, !header]])
  })

  it.each([
    ['with an error', invalid],
    ['with a challenge', { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } }],
  ])(
    'is sent in the other way when the provider rejects the first one %s, and that way from then on',
    async (_, no) => {
      const yes = token
      token = (request) => (isInBody(request) ? yes(request) : no)
      const { exchange } = aProvider()
      await exchange()
      await exchange()
      expect(asked('/token').map(isInHeader)).toEqual([true, false, false])
    },
  )

  it('that is wrong is sent twice', async () => {
    token = () => invalid
    const { exchange, problems } = aProvider()
    const message =
      'Example does not accept this service: have an administrator check client_id and client_secret in SIGN_IN'
    await expect(exchange()).rejects.toMatchObject({ code: 'unavailable', message })
    expect(asked('/token')).toHaveLength(2)
    expect(problems).toHaveLength(1)
  })
})

describe('an ID token', () => {
  it('is judged by the clock of the service, not by that of the process', async () => {
    const later = Date.now() + 86_400_000
    const seconds = Math.floor(later / 1_000)
    const idToken = await signed({ iat: seconds, exp: seconds + 60 })
    token = () => asJson({ access_token: 'x', token_type: 'bearer', id_token: idToken })
    expect(await aProvider({ clock: { now: () => later } }).exchange()).toMatchObject({ subject: 'ann' })
    const over = { now: () => later + 3_600_000 }
    await expect(aProvider({ clock: over }).exchange()).rejects.toMatchObject({ name: 'AppError' })
  })

  it.each<[string, () => Promise<string>]>([
    ['signed by another key', async () => signed({}, await makeKey('first'))],
    ['for another client', () => signed({ aud: 'another' })],
    ['of another issuer', () => signed({ iss: 'https://evil.example.com' })],
    ['that has expired', () => signed({ exp: Math.floor(Date.now() / 1_000) - 60 })],
    ['of another sign-in', () => signed({ nonce: 'x' })],
    ['without a nonce', () => signed({ nonce: undefined })],
  ])('%s is not accepted', async (_, make) => {
    const idToken = await make()
    token = () => asJson({ access_token: 'x', token_type: 'bearer', id_token: idToken })
    await expect(aProvider().exchange()).rejects.toMatchObject({ name: 'AppError' })
  })

  it('must be there', async () => {
    token = () => asJson({ access_token: 'x', token_type: 'bearer' })
    await expect(aProvider().exchange()).rejects.toMatchObject(AWAY)
  })
})

describe('the address from the user info', () => {
  beforeEach(async () => {
    const idToken = await signed({ email: undefined, email_verified: undefined })
    token = () => asJson({ access_token: 'an access token', token_type: 'bearer', id_token: idToken })
  })

  it('counts with whether it is verified', async () => {
    issuer.pages.set('/userinfo', asJson({ sub: 'ann', email: 'a@example.com', email_verified: false }))
    expect(await aProvider().exchange()).toEqual({ subject: 'ann', email: 'a@example.com', email_verified: false })
    expect(asked('/userinfo').map(({ headers }) => headers.authorization)).toEqual(['Bearer an access token'])
  })

  it('of another subject is not accepted', async () => {
    issuer.pages.set('/userinfo', asJson({ sub: 'bob', email: 'bob@example.com', email_verified: true }))
    await expect(aProvider().exchange()).rejects.toMatchObject({ name: 'AppError' })
  })

  it('is not needed where there is none', async () => {
    document.userinfo_endpoint = undefined
    expect(await aProvider().exchange()).toEqual({ subject: 'ann', email: undefined, email_verified: undefined })
  })
})

describe('a provider that cannot be used', () => {
  it.each<[string, ReceiverAnswer]>([
    ['does not respond', 'hang'],
    ['responds without end', { status: 200, headers: { 'content-type': 'application/json' }, body: 'trickle' }],
    [
      'responds with more than a megabyte',
      { status: 200, headers: { 'content-type': 'application/json' }, body: 'flood' },
    ],
    ['breaks off', 'reset'],
    ['fails', { status: 500 }],
    ['is elsewhere', { status: 302, headers: { location: '/elsewhere' } }],
    ['responds with a page', { status: 200, headers: { 'content-type': 'text/html' }, text: '<html>' }],
  ])('%s', async (_, answer) => {
    issuer.pages.set('document', answer)
    const { begin, problems } = aProvider({ timeoutSeconds: 0.2 })
    await expect(begin()).rejects.toMatchObject(AWAY)
    expect(problems).toHaveLength(1)
    issuer.pages.delete('document')
    token = () => answer
    await expect(aProvider({ timeoutSeconds: 0.2 }).exchange()).rejects.toMatchObject(AWAY)
    expect(asked('/elsewhere')).toEqual([])
  })

  it.each<[string, object]>([
    ['is another issuer', { issuer: 'https://login.example.com' }],
    ['is the issuer with a slash', { issuer: 'http://127.0.0.1/' }],
    ['names no address for users', { authorization_endpoint: undefined }],
    ['sends users to an address that is none of the web', { authorization_endpoint: 'javascript:alert(1)' }],
  ])('%s', async (_, fields) => {
    Object.assign(document, fields)
    const { begin, problems } = aProvider()
    await expect(begin()).rejects.toMatchObject(AWAY)
    expect(problems).toHaveLength(1)
  })
})

describe('an error that the provider sends with the browser', () => {
  it.each([
    ['access_denied', 'unauthenticated', /^Example has not signed you in: sign in again, or ask an administrator of/],
    ['invalid_scope', 'unauthenticated', /^Example has not signed you in: sign in again, and if that does not help/],
    ['<script>', 'unauthenticated', /^Example has not signed you in: sign in again, and if that does not help/],
    ['temporarily_unavailable', 'unavailable', /^Example cannot be reached at the moment/],
    ['server_error', 'unavailable', /^Example cannot be reached at the moment/],
  ])('%s is worded by us', async (error, code, message) => {
    const query = new URLSearchParams({ error, error_description: '<b>', state: handshake.state })
    const exchanged = aProvider().provider.exchange(new URL(`${CALLBACK}?${query}`), handshake)
    await expect(exchanged).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })
})
