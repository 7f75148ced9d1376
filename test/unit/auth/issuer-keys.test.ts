/** How an issuer's keys are found, how often it is asked for them, and what becomes of tokens while it does not answer. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createIssuers } from '../../../src/auth/issuers.ts'
import { MINUTE } from '../../support/builders.ts'
import { AUDIENCE, asJson, DOCUMENT, KEYS, makeKey, startIssuer, type TestIssuer } from '../../support/oidc-issuer.ts'
import { type ReceiverAnswer, startReceiver } from '../../support/receiver.ts'

const START = Date.UTC(2026, 10, 21, 12)
const REFUSED = {
  code: 'unauthenticated',
  message: expect.stringMatching(/^the credential is neither an API key nor an access token/),
}

let issuer: TestIssuer
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: START })
  issuer = await startIssuer(Date.now)
})
afterEach(async () => {
  vi.useRealTimers()
  await issuer[Symbol.asyncDispose]()
})

/** With what the operator configures. */
function makeIssuers(url = issuer.url, jwks: { keys: object[] } | null = null) {
  const problems: string[] = []
  const { verify } = createIssuers([{ issuer: url, audience: AUDIENCE, users: new Map(), jwks }], Date, (of, error) =>
    problems.push(`${of}: ${(error as Error).message}`),
  )
  return { verify, problems, isTaken: async (token: string) => (await verify(token))?.email === 'ann@example.com' }
}
const asked = () => issuer.receiver.requests.map(({ method, path }) => `${method} ${path}`)
const BOTH = [`GET ${DOCUMENT}`, `GET ${KEYS}`]

describe('the keys of an issuer', () => {
  it('are fetched for the first token, and again ten minutes later', async () => {
    const { verify, isTaken } = makeIssuers()
    expect(await verify('no token of it')).toBeNull()
    expect(asked()).toEqual([])
    const token = await issuer.sign()
    expect(await isTaken(token)).toBe(true)
    expect(asked()).toEqual(BOTH)
    vi.setSystemTime(START + 10 * MINUTE - 1)
    expect(await isTaken(token)).toBe(true)
    expect(asked()).toEqual(BOTH)
    vi.setSystemTime(START + 10 * MINUTE)
    expect(await isTaken(token)).toBe(true)
    expect(asked()).toEqual([...BOTH, ...BOTH])
  })

  it('are fetched once for tokens that come at the same time', async () => {
    const { isTaken } = makeIssuers()
    const token = await issuer.sign()
    expect(await Promise.all(Array.from({ length: 20 }, () => isTaken(token)))).toEqual(Array(20).fill(true))
    expect(asked()).toEqual(BOTH)
  })

  it('are found through the discovery document, also of an issuer with a path or a trailing slash', async () => {
    const url = `${issuer.url}/realms/one/`
    issuer.pages.set(
      '/realms/one/.well-known/openid-configuration',
      asJson({ issuer: url, jwks_uri: `${issuer.url}/elsewhere?v=2` }),
    )
    issuer.pages.set('/elsewhere?v=2', asJson({ keys: [issuer.key.jwk] }))
    expect(await makeIssuers(url).isTaken(await issuer.sign({ iss: url }))).toBe(true)
  })

  it('are not fetched when the configuration has them', async () => {
    const { verify, isTaken } = makeIssuers(issuer.url, { keys: [issuer.key.jwk] })
    expect(await isTaken(await issuer.sign())).toBe(true)
    await expect(verify(await issuer.sign({}, await makeKey('second')))).rejects.toMatchObject(REFUSED)
    expect(asked()).toEqual([])
  })
})

describe('a key', () => {
  it('a new key is fetched, but at most once in ten seconds', async () => {
    const { verify, isTaken } = makeIssuers()
    await isTaken(await issuer.sign())
    const second = await makeKey('second')
    const token = await issuer.sign({}, second)
    issuer.showKeys(issuer.key, second)
    vi.setSystemTime(START + 9_999)
    await expect(verify(token)).rejects.toMatchObject(REFUSED)
    expect(asked()).toEqual(BOTH)
    vi.setSystemTime(START + 10_000)
    expect(await isTaken(token)).toBe(true)
    expect(await isTaken(await issuer.sign())).toBe(true)
    expect(asked()).toEqual([...BOTH, ...BOTH])
  })

  it('an unknown key is fetched once in ten seconds, for all tokens', async () => {
    const { verify } = makeIssuers()
    const unknown = await Promise.all(['a', 'b', 'c'].map(async (kid) => issuer.sign({}, await makeKey(kid))))
    for (const token of unknown) await expect(verify(token)).rejects.toMatchObject(REFUSED)
    expect(asked()).toEqual(BOTH)
    vi.setSystemTime(START + 10_000)
    for (const token of unknown) await expect(verify(token)).rejects.toMatchObject(REFUSED)
    expect(asked()).toEqual([...BOTH, ...BOTH])
  })

  it('a token without a key id is rejected when several keys fit, without a fetch', async () => {
    issuer.showKeys(issuer.key, await makeKey('second'))
    const { verify, isTaken } = makeIssuers()
    await isTaken(await issuer.sign())
    vi.setSystemTime(START + 10_000)
    await expect(verify(await issuer.sign({}, issuer.key, { kid: undefined }))).rejects.toMatchObject(REFUSED)
    expect(asked()).toEqual(BOTH)
  })

  it('a withdrawn key stays valid for ten minutes at most', async () => {
    const { verify, isTaken } = makeIssuers()
    const token = await issuer.sign()
    await isTaken(token)
    issuer.showKeys(await makeKey('second'))
    vi.setSystemTime(START + 10 * MINUTE - 1)
    expect(await isTaken(token)).toBe(true)
    vi.setSystemTime(START + 10 * MINUTE)
    await expect(verify(token)).rejects.toMatchObject(REFUSED)
  })

  it('an RSA key that is too short makes its tokens unusable, and no others', async () => {
    // Of 1024 bits; no signature is looked at.
    const short = { kty: 'RSA', kid: 'short', e: 'AQAB', n: Buffer.alloc(128, 0xff).toString('base64url') }
    issuer.pages.set(KEYS, asJson({ keys: [short, issuer.key.jwk] }))
    const { verify, isTaken } = makeIssuers()
    const [, claims] = (await issuer.sign()).split('.')
    const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'short' })).toString('base64url')
    await expect(verify(`${header}.${claims}.AAAA`)).rejects.toMatchObject({
      code: 'unavailable',
      message: `the issuer ${issuer.url} has signed this token with a key that cannot be used`,
      retryAfterSeconds: 60,
    })
    expect(await isTaken(await issuer.sign())).toBe(true)
  })
})

const MEGABYTE = 1_048_576
const documentOf = (fields: object = {}) => ({ issuer: issuer.url, jwks_uri: `${issuer.url}${KEYS}`, ...fields })
/** A document that is right but for these fields. */
const described = (fields: object) => asJson(documentOf(fields))
/** A document of so many bytes, right but for that. */
const padded = (bytes: number) => ({ status: 200, text: JSON.stringify(documentOf()).padEnd(bytes) })
/** A set of keys in so many chunks of a byte. */
const chunked = (count: number) => {
  const text = JSON.stringify({ keys: [issuer.key.jwk] }).padEnd(count)
  const chunks = Array.from(text, (one) => `1\r\n${one}\r\n`).join('')
  return { raw: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n` }
}

describe('an issuer', () => {
  const redirect = (status: number, location: string) => ({ status, headers: { location } })

  it.each<[string, path: string, (elsewhere: string) => ReceiverAnswer, string]>([
    ['that has another name', DOCUMENT, (url) => described({ issuer: url }), 'another issuer'],
    ['with a slash too many', DOCUMENT, () => described({ issuer: `${issuer.url}/` }), 'another issuer'],
    ['that has no document', DOCUMENT, () => ({ status: 404 }), 'responded with 404'],
    ['that is broken', DOCUMENT, () => ({ status: 500, text: '{}' }), 'responded with 500'],
    ['that says something else', DOCUMENT, () => ({ ...padded(0), status: 203 }), 'responded with 203'],
    ['that sends us elsewhere', DOCUMENT, (url) => redirect(302, `${url}${DOCUMENT}`), 'responded with 302'],
    ['whose keys have gone elsewhere', KEYS, (url) => redirect(307, `${url}${KEYS}`), 'responded with 307'],
    ['that sends a page', DOCUMENT, () => ({ status: 200, text: '<html>' }), 'not JSON'],
    ['that sends nothing', DOCUMENT, () => ({ status: 200 }), 'not JSON'],
    ['that sends null', DOCUMENT, () => asJson(null), 'another issuer'],
    ['that sends a list', DOCUMENT, () => asJson([]), 'another issuer'],
    ['without jwks_uri', DOCUMENT, () => described({ jwks_uri: undefined }), 'no jwks_uri'],
    ['whose jwks_uri is not a URL', DOCUMENT, () => described({ jwks_uri: KEYS }), 'no jwks_uri'],
    [
      'whose keys are elsewhere without TLS',
      DOCUMENT,
      (url) => described({ jwks_uri: `${url}${KEYS}` }),
      'no jwks_uri',
    ],
    ['whose keys are in a file', DOCUMENT, () => described({ jwks_uri: 'file:///etc/keys' }), 'no jwks_uri'],
    ['whose key set is empty', KEYS, () => asJson({}), 'malformed'],
    ['whose keys are not objects', KEYS, () => asJson({ keys: [1] }), 'malformed'],
    ['whose document is too large', DOCUMENT, () => padded(MEGABYTE + 1), 'more than 1048576 bytes'],
    ['whose keys never end', KEYS, () => ({ status: 200, body: 'flood' }), 'more than 1048576 bytes'],
    ['whose keys come in short chunks', KEYS, () => chunked(1_025), 'more than 1048576 bytes'],
    ['that breaks off', DOCUMENT, () => ({ status: 200, body: 'break' }), 'terminated'],
    ['that hangs up', DOCUMENT, () => 'reset', 'fetch failed'],
  ])('%s is not trusted', async (_, path, answer, problem) => {
    await using elsewhere = await startReceiver()
    issuer.pages.set(path, answer(elsewhere.url))
    const { verify, problems } = makeIssuers()
    await expect(verify(await issuer.sign())).rejects.toMatchObject({
      code: 'unavailable',
      message: `the keys of the issuer ${issuer.url} cannot be fetched at the moment; try again shortly`,
      retryAfterSeconds: 10,
    })
    expect(problems).toEqual([expect.stringContaining(problem)])
    expect(problems[0]).toMatch(new RegExp(`^${issuer.url}: `))
    expect(elsewhere.requests).toEqual([])
  })

  it('a discovery document of exactly a megabyte is accepted', async () => {
    issuer.pages.set(DOCUMENT, padded(MEGABYTE))
    expect(await makeIssuers().isTaken(await issuer.sign())).toBe(true)
  })

  it('keys are accepted in as many short chunks as any body may have, and after interim responses', async () => {
    const { raw } = chunked(1_024)
    issuer.pages.set(KEYS, { raw: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${raw}` })
    expect(await makeIssuers().isTaken(await issuer.sign())).toBe(true)
  })

  it('an issuer that is down is asked again after ten seconds, and not before', async () => {
    await issuer.receiver.close()
    const { verify, isTaken, problems } = makeIssuers()
    const token = await issuer.sign()
    await expect(verify(token)).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 10 })
    await using back = await startReceiver({ port: issuer.receiver.port })
    back.answer(({ path }) => issuer.pages.get(path) ?? { status: 404 })
    vi.setSystemTime(START + 9_500)
    await expect(verify(token)).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 0.5 })
    expect(back.requests).toEqual([])
    expect(problems).toHaveLength(1)
    vi.setSystemTime(START + 10_000)
    expect(await isTaken(token)).toBe(true)
    expect(back.requests).toHaveLength(2)
  })

  it('an issuer that is down affects only tokens with unknown keys, for ten minutes', async () => {
    const { verify, isTaken, problems } = makeIssuers()
    const token = await issuer.sign()
    await isTaken(token)
    issuer.pages.clear()
    vi.setSystemTime(START + 10_000)
    await expect(verify(await issuer.sign({}, await makeKey('second')))).rejects.toMatchObject({ code: 'unavailable' })
    expect(await isTaken(token)).toBe(true)
    expect(problems).toHaveLength(1)
    vi.setSystemTime(START + 10 * MINUTE)
    await expect(verify(token)).rejects.toMatchObject({ code: 'unavailable' })
  })

  it.each<[string, ReceiverAnswer]>([
    ['does not respond', 'hang'],
    ['sends a body without an end', { status: 200, text: '{', body: 'trickle' }],
  ])('an issuer that %s is given up after five seconds, for all waiting tokens', async (_, answer) => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: START })
    try {
      issuer.pages.set(KEYS, answer)
      const { verify, problems } = makeIssuers()
      const token = await issuer.sign()
      const outcomes = Promise.allSettled([verify(token), verify(token)])
      await issuer.receiver.waitFor(2)
      vi.advanceTimersByTime(4_999)
      expect(problems).toEqual([])
      vi.advanceTimersByTime(1)
      const unavailable = { status: 'rejected', reason: { code: 'unavailable', retryAfterSeconds: 10 } }
      expect(await outcomes).toMatchObject([unavailable, unavailable])
      expect(problems).toEqual([`${issuer.url}: no response within 5 seconds`])
      await expect(verify(token)).rejects.toMatchObject({ code: 'unavailable' })
      expect(asked()).toEqual(BOTH)
    } finally {
      vi.useRealTimers()
    }
  })

  it('an issuer that is down does not affect another one', async () => {
    await using other = await startIssuer(Date.now)
    await issuer.receiver.close()
    const configs = [issuer, other].map(({ url }) => ({
      issuer: url,
      audience: AUDIENCE,
      users: new Map(),
      jwks: null,
    }))
    const { verify } = createIssuers(configs, Date)
    await expect(verify(await issuer.sign())).rejects.toMatchObject({ code: 'unavailable' })
    expect(await verify(await other.sign())).toMatchObject({ email: 'ann@example.com' })
  })
})
