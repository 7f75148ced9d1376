/** Whose tokens are taken, and for whom they speak. What becomes of that is in test/db/auth/issued-tokens.test.ts. */

import { createHmac, createPublicKey, hkdfSync } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createIssuers } from '../../../src/auth/issuers.ts'
import { createTokens } from '../../../src/auth/tokens.ts'
import type { OidcIssuer } from '../../../src/domain/issuer.ts'
import {
  AUDIENCE,
  makeKey,
  signToken,
  startIssuer,
  type TestIssuer,
  type TestKey,
  UNKNOWN_HEADER,
} from '../../support/oidc-issuer.ts'

const START = Date.UTC(2026, 10, 21, 12)
const NOW = START / 1_000
const SECRET_KEY = Buffer.alloc(32, 7)
const REFUSED = {
  code: 'unauthenticated',
  message: expect.stringMatching(/^the credential is neither an API key nor an access token/),
}

const clock = {
  time: START,
  now() {
    return this.time
  },
}

let issuer: TestIssuer
let other: TestIssuer
beforeAll(async () => {
  issuer = await startIssuer(clock.now.bind(clock))
  other = await startIssuer(clock.now.bind(clock))
})
afterAll(async () => {
  await issuer[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

const configOf = (url: string, fields: Partial<OidcIssuer> = {}): OidcIssuer => ({
  issuer: url,
  audience: AUDIENCE,
  users: new Map(),
  jwks: null,
  ...fields,
})
const bothIssuers = (fields?: Partial<OidcIssuer>) =>
  createIssuers([configOf(issuer.url, fields), configOf(other.url)], clock)
const emailOf = async (claims: object, fields?: Partial<OidcIssuer>) =>
  (await bothIssuers(fields).verify(await issuer.sign(claims)))?.email

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
const claimsOf = (claims: object = {}) => ({
  ...{ iss: issuer.url, aud: AUDIENCE, sub: 'ann', iat: NOW, exp: NOW + 3_600 },
  ...{ email: 'ann@example.com', email_verified: true, ...claims },
})
/** Signed as our own access tokens are, with a secret of the test's choice. */
function signBySecret(secret: string | Buffer, header: object, claims: object = {}): string {
  const signed = `${encode({ alg: 'HS256', ...header })}.${encode(claimsOf(claims))}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

describe('a token of an issuer', () => {
  it('identifies the user with the address that the issuer has verified', async () => {
    expect(await bothIssuers().verify(await issuer.sign())).toEqual({ issuer: issuer.url, email: 'ann@example.com' })
    expect(await bothIssuers().verify(await other.sign())).toEqual({ issuer: other.url, email: 'ann@example.com' })
    expect(await emailOf({ aud: ['another', AUDIENCE] })).toBe('ann@example.com')
  })

  it.each(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'])(
    'may be signed by %s',
    async (alg) => {
      const key = await makeKey('one', alg)
      const issuers = createIssuers([configOf('https://login.example.com', { jwks: { keys: [key.jwk] } })], clock)
      const token = await signToken(key, claimsOf({ iss: 'https://login.example.com' }))
      expect(await issuers.verify(token)).toMatchObject({ email: 'ann@example.com' })
    },
  )

  it('is rejected with another algorithm, even when the issuer has a key for it', async () => {
    // RFC 9864 has new names; this one stands for all that a later jose may bring.
    const key = await makeKey('one', 'Ed25519')
    const issuers = createIssuers([configOf(issuer.url, { jwks: { keys: [key.jwk] } })], clock)
    await expect(issuers.verify(await issuer.sign({}, key))).rejects.toMatchObject(REFUSED)
  })

  it.each([
    ['is not said to be verified', { email_verified: undefined }],
    ['is not verified', { email_verified: false }],
    ['is said to be verified in another way', { email_verified: 'true' }],
    ['is said to be verified by a number', { email_verified: 1 }],
    ['is missing', { email: undefined }],
    ['is no text', { email: ['ann@example.com'] }],
    ['is none', { email: 'ann' }],
    ['has a blank', { email: 'ann@example.com ' }],
    ['has a letter that the database takes for another', { email: 'ann@e\u212Aample.com' }],
  ])('speaks for nobody when its address %s', async (_, claims) => {
    expect(await emailOf(claims)).toBeNull()
  })

  it('identifies the user that is configured for its subject, whatever its address', async () => {
    const users = new Map([
      ['ann', 'robot@example.com'],
      ['system:serviceaccount:ci:deploy', 'ci@example.com'],
    ])
    expect(await emailOf({}, { users })).toBe('robot@example.com')
    expect(await emailOf({ email_verified: false }, { users })).toBe('robot@example.com')
    expect(await emailOf({ sub: 'Ann' }, { users })).toBe('ann@example.com')
    expect(await emailOf({ sub: 'system:serviceaccount:ci:deploy', email: undefined }, { users })).toBe(
      'ci@example.com',
    )
  })

  it('of another issuer does not match the same subject', async () => {
    const issuers = bothIssuers({ users: new Map([['ann', 'robot@example.com']]) })
    expect(await issuers.verify(await other.sign())).toMatchObject({ email: 'ann@example.com' })
    expect(await issuers.verify(await other.sign({ email: undefined }))).toMatchObject({ email: null })
  })

  it.each(['constructor', '__proto__', 'toString', 'size'])('with the subject %s identifies no user', async (sub) => {
    expect(await emailOf({ sub, email: undefined }, { users: new Map([['ann', 'ann@example.com']]) })).toBeNull()
  })

  it('is valid for 30 s after its expiry, and then rejected as expired', async () => {
    const forged = await issuer.sign({ exp: NOW - 1_000 }, await makeKey())
    const token = await issuer.sign({ exp: NOW - 29 })
    expect(await bothIssuers().verify(token)).toMatchObject({ email: 'ann@example.com' })
    await expect(bothIssuers().verify(await issuer.sign({ exp: NOW - 30 }))).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringMatching(/^this token has expired: get a new one from its issuer/),
    })
    await expect(bothIssuers().verify(forged)).rejects.toMatchObject(REFUSED)
  })

  it('is valid 30 s before its begin', async () => {
    expect(await emailOf({ nbf: NOW + 30 })).toBe('ann@example.com')
    await expect(emailOf({ nbf: NOW + 31 })).rejects.toMatchObject(REFUSED)
  })

  it.each([
    ['for another audience', { aud: 'another' }],
    ['for an audience that begins like ours', { aud: `${AUDIENCE}/other` }],
    ['for several others', { aud: ['another', 'else'] }],
    ['for no audience', { aud: undefined }],
    ['of nobody', { sub: undefined }],
    ['whose subject is no text', { sub: 42 }],
    ['whose subject is empty', { sub: '' }],
    ['without an end', { exp: undefined }],
    ['whose end is no number', { exp: 'never' }],
    ['whose beginning is no number', { nbf: 'now' }],
  ])('%s is refused', async (_, claims) => {
    await expect(emailOf(claims)).rejects.toMatchObject(REFUSED)
  })

  it.each<[string, () => Promise<string> | string]>([
    ['by a key that only has the name of one of its keys', async () => issuer.sign({}, await makeKey())],
    ["by another issuer's key", () => issuer.sign({}, other.key)],
    ["by another issuer's key of another name", async () => issuer.sign({}, await makeKey('second'))],
    [
      'by a key that it brings along',
      async () => {
        const own = await makeKey()
        return issuer.sign({}, own, { jwk: own.jwk })
      },
    ],
    ['by nothing', () => `${encode({ alg: 'none', kid: 'first' })}.${encode(claimsOf())}.`],
    ['by nothing, with a signature', () => signBySecret('', { alg: 'none', kid: 'first' })],
    ['by the public key as a secret, as PEM', () => signBySecret(pemOf(issuer.key), { kid: 'first' })],
    ['by the public key as a secret, as JSON', () => signBySecret(JSON.stringify(issuer.key.jwk), { kid: 'first' })],
    ['by the public key as a secret, without a name', () => signBySecret(pemOf(issuer.key), {})],
    ['by the secret of our own tokens', () => signBySecret(ownSecret(), { typ: 'at+jwt' })],
    [
      'by an algorithm that its key is not for',
      async () => {
        const [head, ...rest] = (await issuer.sign()).split('.')
        const header = { ...JSON.parse(Buffer.from(head!, 'base64url').toString()), alg: 'ES384' }
        return [encode(header), ...rest].join('.')
      },
    ],
    [
      'with a header that we must know and do not',
      () => issuer.sign({}, issuer.key, { crit: [UNKNOWN_HEADER], [UNKNOWN_HEADER]: 1 }),
    ],
    [
      'before its claims were changed',
      async () => {
        const [head, , signature] = (await issuer.sign()).split('.')
        return [head, encode(claimsOf({ email: 'admin@example.com' })), signature].join('.')
      },
    ],
    ['and cut short', async () => (await issuer.sign()).slice(0, -4)],
  ])('that is signed %s is refused', async (_, make) => {
    await expect(bothIssuers().verify(await make())).rejects.toMatchObject(REFUSED)
  })

  it('is rejected when it names its own key address, which is not called', async () => {
    const own = await makeKey('second')
    const asked = other.receiver.requests.length
    other.showKeys(other.key, own)
    const token = await issuer.sign({}, own, { jku: `${other.url}/keys`, x5u: `${other.url}/keys` })
    await expect(bothIssuers().verify(token)).rejects.toMatchObject(REFUSED)
    expect(other.receiver.requests).toHaveLength(asked)
  })
})

describe('a token of an unknown issuer', () => {
  it.each<[string, () => unknown]>([
    ['of another issuer', () => 'https://login.example.com'],
    ['of an issuer with a slash more', () => `${issuer.url}/`],
    ['of an issuer in capitals', () => issuer.url.toUpperCase()],
    ['of several issuers', () => [issuer.url]],
    ['of no issuer', () => undefined],
  ])('%s is left to others', async (_, iss) => {
    expect(await bothIssuers().verify(await issuer.sign({ iss: iss() }))).toBeNull()
  })

  it('is ignored when it is our own', async () => {
    const token = await createTokens(SECRET_KEY, clock).issueAccessToken({
      userId: '0192a0b4-0000-7000-8000-000000000001',
      sessionId: '0192a0b4-0000-7000-8000-000000000002',
    })
    expect(await bothIssuers().verify(token)).toBeNull()
    expect(await createIssuers([], clock).verify(token)).toBeNull()
  })

  it('is ignored for any text', async () => {
    const json = fc.json().map((text) => Buffer.from(text).toString('base64url'))
    const parts = fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), json), { maxLength: 6 })
    const issuers = bothIssuers()
    await fc.assert(fc.asyncProperty(parts, async (texts) => (await issuers.verify(texts.join('.'))) === null))
  })

  it('with any header and claims of a known issuer is rejected', async () => {
    const issuers = bothIssuers({ jwks: { keys: [issuer.key.jwk] } })
    const anyObject = fc.dictionary(fc.string(), fc.jsonValue())
    const header = fc.record(
      {
        alg: fc.constantFrom<unknown>('ES256', 'RS256', 'EdDSA', 'HS256', 'none', 1, null),
        kid: fc.constantFrom<unknown>('first', 'x', 1, null, {}),
        crit: fc.constantFrom<unknown>(['exp'], 'exp', []),
        typ: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(header, anyObject, fc.base64String(), async (head, claims, signature) => {
        const token = `${encode(head)}.${encode({ ...claims, iss: issuer.url })}.${signature}`
        await expect(issuers.verify(token)).rejects.toMatchObject(REFUSED)
      }),
    )
  })
})

function pemOf({ jwk }: TestKey): string {
  return createPublicKey({ key: jwk as never, format: 'jwk' }).export({ type: 'spki', format: 'pem' }) as string
}

function ownSecret(): Buffer {
  return Buffer.from(hkdfSync('sha256', SECRET_KEY, '', 'heartbeat-operator access token v1', 32))
}
