import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTokens } from '../../../src/auth/tokens.ts'

const START = Date.UTC(2026, 10, 21, 12)
const SECRET_KEY = Buffer.alloc(32, 7)
const OF = { userId: '0192a0b4-0000-7000-8000-000000000001', sessionId: '0192a0b4-0000-7000-8000-000000000002' }
const REFUSED = { code: 'unauthenticated', message: expect.stringMatching(/^the credential is neither an API key/) }

function aClock(now = START) {
  return {
    time: now,
    now() {
      return this.time
    },
  }
}

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString())

/** A token put together by hand, signed with the key that the program derives: only what is overridden is wrong with it. */
function aToken({
  header = {},
  claims = {},
  hash = 'sha256',
  key = SECRET_KEY,
}: {
  header?: object
  claims?: object
  hash?: string
  key?: Buffer
} = {}) {
  const signingKey = Buffer.from(hkdfSync('sha256', key, '', 'heartbeat-operator access token v1', 32))
  const now = START / 1_000
  const signed = [
    encode({ alg: 'HS256', typ: 'at+jwt', ...header }),
    encode({
      iss: 'heartbeat-operator',
      aud: 'heartbeat-operator/api',
      sub: OF.userId,
      sid: OF.sessionId,
      iat: now,
      exp: now + 900,
      ...claims,
    }),
  ].join('.')
  return `${signed}.${createHmac(hash, signingKey).update(signed).digest('base64url')}`
}

describe('an access token', () => {
  it('holds its user, session, issuer, audience and times, and nothing else', async () => {
    const token = await createTokens(SECRET_KEY, aClock(START + 999.5)).issueAccessToken(OF)
    const [header, claims] = token.split('.')
    expect(decode(header)).toEqual({ alg: 'HS256', typ: 'at+jwt' })
    expect(decode(claims)).toEqual({
      iss: 'heartbeat-operator',
      aud: 'heartbeat-operator/api',
      sub: OF.userId,
      sid: OF.sessionId,
      iat: START / 1_000,
      exp: START / 1_000 + 900,
    })
  })

  it('is verified by another replica with the same SECRET_KEY', async () => {
    const token = await createTokens(SECRET_KEY, aClock()).issueAccessToken(OF)
    expect(await createTokens(Buffer.from(SECRET_KEY), aClock()).verifyAccessToken(token)).toEqual(OF)
  })

  it('is accepted when made by hand, as the tests below change it', async () => {
    expect(await createTokens(SECRET_KEY, aClock()).verifyAccessToken(aToken())).toEqual(OF)
  })

  it('is valid for fifteen minutes by the given clock', async () => {
    const clock = aClock()
    const tokens = createTokens(SECRET_KEY, clock)
    const token = await tokens.issueAccessToken(OF)
    clock.time = START + 900_000 - 1
    expect(await tokens.verifyAccessToken(token)).toEqual(OF)
    clock.time = START + 900_000
    await expect(tokens.verifyAccessToken(token)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringMatching(/^this access token has expired: refresh it or log in again/),
    })
  })

  it('of a replica whose clock is ahead is valid', async () => {
    const token = await createTokens(SECRET_KEY, aClock(START + 1_500)).issueAccessToken(OF)
    expect(await createTokens(SECRET_KEY, aClock()).verifyAccessToken(token)).toEqual(OF)
  })

  it.each([
    ['of another SECRET_KEY', aToken({ key: Buffer.alloc(32, 8) })],
    ['of no algorithm', `${encode({ alg: 'none', typ: 'at+jwt' })}.${aToken().split('.')[1]}.`],
    ['of no algorithm with a signature', aToken({ header: { alg: 'none' } })],
    ['of another algorithm', aToken({ header: { alg: 'HS512' }, hash: 'sha512' })],
    ['that names another algorithm', aToken({ header: { alg: 'RS256' } })],
    ['for another audience', aToken({ claims: { aud: 'heartbeat-operator/other' } })],
    ['for no audience', aToken({ claims: { aud: undefined } })],
    ['of another issuer', aToken({ claims: { iss: 'another' } })],
    ['of another type', aToken({ header: { typ: 'JWT' } })],
    ['of no type', aToken({ header: { typ: undefined } })],
    ['without an end', aToken({ claims: { exp: undefined } })],
    ['whose end is no number', aToken({ claims: { exp: 'never' } })],
    ['that is not good yet', aToken({ claims: { nbf: START / 1_000 + 60 } })],
    ['of nobody', aToken({ claims: { sub: undefined } })],
    ['whose user is no id', aToken({ claims: { sub: "' or true --" } })],
    ['of no session', aToken({ claims: { sid: undefined } })],
    ['whose session is null', aToken({ claims: { sid: null } })],
    ['whose session is no id', aToken({ claims: { sid: "' or true --" } })],
    ['whose session is no text', aToken({ claims: { sid: [OF.sessionId] } })],
    ['with a critical header that we do not know', aToken({ header: { crit: ['b64'], b64: false } })],
    ['that expired and is forged', aToken({ key: Buffer.alloc(32, 8), claims: { exp: 1 } })],
  ])('%s is refused', async (_, token) => {
    await expect(createTokens(SECRET_KEY, aClock()).verifyAccessToken(token)).rejects.toMatchObject(REFUSED)
  })

  it('is rejected when any part of it is changed', async () => {
    const tokens = createTokens(SECRET_KEY, aClock())
    const token = await tokens.issueAccessToken(OF)
    const [header, , signature] = token.split('.')
    const claims = encode({ ...decode(token.split('.')[1]), sub: '0192a0b4-0000-7000-8000-000000000009' })
    await expect(tokens.verifyAccessToken([header, claims, signature].join('.'))).rejects.toMatchObject(REFUSED)
    await expect(tokens.verifyAccessToken(token.slice(0, -4))).rejects.toMatchObject(REFUSED)
  })

  it('is rejected for any other text', async () => {
    const tokens = createTokens(SECRET_KEY, aClock())
    const parts = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.base64String(),
        fc.json().map((text) => Buffer.from(text).toString('base64url')),
      ),
      { maxLength: 5 },
    )
    await fc.assert(
      fc.asyncProperty(parts, async (texts) => {
        await expect(tokens.verifyAccessToken(texts.join('.'))).rejects.toMatchObject(REFUSED)
      }),
    )
  })
})

describe('createTokens', () => {
  it('rejects a SECRET_KEY of another length without showing it', () => {
    const short = randomBytes(31)
    expect(() => createTokens(short, aClock())).toThrow(/SECRET_KEY has 31 bytes, 32 are needed/)
  })
})
