/** Outcomes of HTTP requests: of responses with a fake client, of failures with real sockets. */

import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpResponse,
} from '../../../src/delivery/http.ts'
import { fieldsOf, type Judge, rejectFor, retryIn, sendForOutcome } from '../../../src/delivery/http-outcome.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'
import { createAuthority, signServer } from '../../../tools/cluster/control-plane-certificates.ts'
import { HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import { type ReceiverAnswer, type ReceiverOptions, startReceiver } from '../../support/receiver.ts'

const NOW = Date.UTC(2026, 0, 1)
const SECRETS = ['services', 'T0SECRET', 'K3Y', 'mary', 'p@ss', 'p%40ss', btoa('mary:p@ss')]
const URL_WITH_SECRETS = 'https://mary:p%40ss@hooks.test/services/T0SECRET?key=K3Y'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const end of ends.splice(0).reverse()) await end()
})

/** The outcome of a request; no secret of its URL is in it. */
async function outcomeOf(
  client: HttpClient,
  { url = URL_WITH_SECRETS, isTrusted = false, signal = AbortSignal.timeout(10_000), now = () => NOW } = {},
): Promise<Outcome> {
  const outcome = await sendForOutcome(
    client,
    { method: 'POST', url, body: '{}', isTrusted, tenant: undefined },
    signal,
    { now },
  )
  for (const secret of SECRETS) expect(JSON.stringify(outcome)).not.toContain(secret)
  return outcome
}

/** The outcome of a response, or of an error that the client throws. */
function judge(result: Partial<HttpResponse> | Error, url?: string): Promise<Outcome> {
  const client: HttpClient = {
    send: async () => {
      if (result instanceof Error) throw result
      return { status: 400, headers: {}, text: '', ...result }
    },
    close: async () => {},
  }
  return outcomeOf(client, url === undefined ? {} : { url })
}

const errorOf = (outcome: Outcome) => (outcome.kind === 'delivered' ? '' : outcome.error)

describe('a response', () => {
  it.each([200, 201, 202, 204, 299])('%i is delivered', async (status) => {
    expect(await judge({ status })).toEqual({ kind: 'delivered', status })
  })

  it.each([408, 425, 429, 500, 501, 502, 503, 504, 507, 599])('%i is retried', async (status) => {
    const error = `hooks.test responded ${status}: not now`
    expect(await judge({ status, text: 'not now' })).toEqual({ kind: 'retry', status, error })
  })

  it.each([403, 404, 410, 421])('%i is retried for a while, because the receiver may be restarting', async (status) => {
    const error = `hooks.test responded ${status}: no`
    expect(await judge({ status, text: 'no' })).toEqual({ kind: 'retry', status, error, isRefusal: true })
  })

  it.each([401, 405, 409, 415, 422, 431, 451, 499])('%i is final', async (status) => {
    const error = `hooks.test responded ${status}: no`
    expect(await judge({ status, text: 'no' })).toEqual({ kind: 'rejected', status, error })
  })

  it.each([400, 413])('%i is final for this message', async (status) => {
    const error = `hooks.test responded ${status}: no`
    expect(await judge({ status, text: 'no' })).toEqual({ kind: 'rejected', status, error, isOfMessage: true })
  })

  it.each([300, 301, 302, 303, 304, 307, 308])('%i is final, and names the origin of the target', async (status) => {
    const headers = { location: 'https://a:b@new.test/services/T0SECRET?key=K3Y' }
    const error = `hooks.test responded ${status}: redirects are not followed; use the new address, at https://new.test`
    expect(await judge({ status, headers })).toEqual({ kind: 'rejected', status, error })
  })

  it.each([
    ['/elsewhere', 'use the new address, on the same host'],
    ['', 'use the new address, on the same host'],
    ['javascript:alert(1)', 'use an address that does not redirect'],
    ['https://', 'use an address that does not redirect'],
    [undefined, 'use an address that does not redirect'],
  ])('302 to %j gives advice', async (location, advice) => {
    const outcome = await judge({ status: 302, headers: location === undefined ? {} : { location } })
    expect(errorOf(outcome)).toBe(`hooks.test responded 302: redirects are not followed; ${advice}`)
  })
})

describe('Retry-After', () => {
  const waitOf = async (text: string, status = 429) => {
    const outcome = await judge({ status, headers: { 'retry-after': text } })
    return outcome.kind === 'retry' ? outcome.retryAfterMs : undefined
  }

  it.each([
    ['120', 2 * MINUTE],
    [' 7 ', 7 * SECOND],
    ['0', 0],
    ['Thu, 01 Jan 2026 00:01:00 GMT', MINUTE],
    ['Thursday, 01-Jan-26 00:01:00 GMT', MINUTE],
    ['Thu Jan  1 00:01:00 2026', MINUTE],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['90000', 24 * HOUR],
    ['9'.repeat(400), 24 * HOUR],
    ['Sat, 01 Jan 2028 00:00:00 GMT', 24 * HOUR],
  ])('%j is a wait of %i ms', async (text, ms) => {
    expect(await waitOf(text)).toBe(ms)
  })

  it('is in GMT in every time zone', async () => {
    vi.stubEnv('TZ', 'America/New_York')
    expect(new Date(NOW).getHours()).toBe(19)
    for (const text of ['Thu Jan  1 00:01:00 2026', 'Thu, 01 Jan 2026 00:01:00 GMT'])
      expect(await waitOf(text)).toBe(MINUTE)
  })

  it.each(['', 'soon', '-5', '1.5', '1e3', '0x10', '5 minutes', '2026-01-01T00:01:00Z', 'Thu, 99 Foo 2026', 'Thu'])(
    '%j is ignored',
    async (text) => {
      expect(await waitOf(text)).toBeUndefined()
    },
  )

  it('counts for every status that is retried, and for no other', async () => {
    for (const status of [408, 425, 500, 502, 503]) expect(await waitOf('60', status)).toBe(MINUTE)
    for (const status of [200, 302, 404])
      expect(await judge({ status, headers: { 'retry-after': '60' } })).not.toHaveProperty('retryAfterMs')
  })
})

describe('the quote of a response', () => {
  const quote = async (text: string, headers: Record<string, string> = {}) =>
    errorOf(await judge({ text, headers })).replace(/^hooks\.test responded 400(: )?/, '')

  it('is one line without control characters', async () => {
    expect(await quote('{"error":\n\t"no\u0000pe\u001b[31m\u202e!\u2028"}\r\n')).toBe('{"error": "no pe [31m ! "}')
  })

  it('is cut to 200 whole characters', async () => {
    const said = await quote('😀'.repeat(300))
    expect([...said]).toHaveLength(200)
    expect(said).toMatch(/^😀+…$/u)
    expect(await quote('x'.repeat(200))).toBe('x'.repeat(200))
  })

  it('is empty for an empty body and for an HTML page', async () => {
    for (const text of ['', ' \n', '<!DOCTYPE html><title>Not Found</title>']) expect(await quote(text)).toBe('')
    expect(await quote('Cannot POST', { 'content-type': 'text/html; charset=utf-8' })).toBe('')
  })

  it.each([
    ['Cannot POST /services/T0SECRET?key=K3Y', 'Cannot POST …'],
    ['no route for /services/T0SECRET', 'no route for …'],
    ['{"path":"\\/services\\/T0SECRET"}', '{"path":"\\/…\\/…"}'],
    ['unknown hook T0SECRET', 'unknown hook …'],
    ['wrong key=K3Y', 'wrong …'],
    ['who is mary?', 'who is …?'],
    ['not p@ss, nor p%40ss', 'not …, nor …'],
    [`Authorization: Basic ${btoa('mary:p@ss')}`, 'Authorization: Basic …'],
  ])('hides the secrets of the URL: %s', async (text, shown) => {
    expect(await quote(text)).toBe(shown)
  })

  it('keeps its words when the URL has no path', async () => {
    expect(errorOf(await judge({ text: 'a/b: no' }, 'https://hooks.test'))).toBe('hooks.test responded 400: a/b: no')
  })
})

describe('an error of the client', () => {
  it.each([
    ['CERT_HAS_EXPIRED', 'presents an expired certificate'],
    ['CERT_NOT_YET_VALID', 'presents a certificate that is not valid yet'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'NODE_EXTRA_CA_CERTS adds an authority'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'NODE_EXTRA_CA_CERTS'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'NODE_EXTRA_CA_CERTS'],
    ['CERT_REVOKED', 'presents a revoked certificate'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'a certificate for another name: check the host name in the URL'],
    ['INVALID_PURPOSE', 'presents an invalid certificate'],
    ['CERT_CHAIN_TOO_LONG', 'presents an invalid certificate'],
    ['HPE_INVALID_CONSTANT', 'sent a response that is not HTTP'],
    ['ETIMEDOUT', 'did not accept a connection in time'],
    ['EHOSTUNREACH', 'is unreachable'],
    ['ENETUNREACH', 'is unreachable'],
    ['EPIPE', 'closed the connection before it responded'],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'does not speak TLS as expected'],
    ['ENOTFOUND', 'has no address: check the host name in the URL'],
    ['EAI_AGAIN', 'could not be resolved: the name servers did not respond'],
    ['EAI_FAIL', 'could not be resolved'],
    ['EMFILE', 'could not be reached'],
  ])('%s is retried', async (code, text) => {
    const outcome = await judge(Object.assign(new Error(URL_WITH_SECRETS), { code }))
    expect(outcome).toMatchObject({ kind: 'retry', status: null })
    expect(errorOf(outcome)).toMatch(new RegExp(`^hooks\\.test .*${text}.* \\(${code}\\)$`))
  })

  it('without a code is named by its class', async () => {
    expect(errorOf(await judge(new TypeError(URL_WITH_SECRETS)))).toBe('hooks.test could not be reached (TypeError)')
  })
})

describe('a request over a socket', () => {
  async function receive(options?: ReceiverOptions) {
    const receiver = await startReceiver(options)
    ends.push(receiver.close)
    return receiver
  }
  function ask(url: string, options: Partial<HttpClientOptions> = {}, request: Parameters<typeof outcomeOf>[1] = {}) {
    const client = createHttpClient({ allowedTargets: ['127.0.0.0/8'], bodyMs: 100, ...options })
    ends.push(client.close)
    const withSecrets = `${url.replace('//', '//mary:p%40ss@')}/services/T0SECRET?key=K3Y`
    return outcomeOf(client, { url: withSecrets, ...request })
  }
  async function askReceiver(answer: ReceiverAnswer) {
    const receiver = await receive()
    receiver.answer(answer)
    const outcome = await ask(receiver.url)
    expect(receiver.requests).toHaveLength(1)
    return outcome
  }
  const findAll =
    (addresses: readonly string[]): LookupFunction =>
    (_, __, callback) =>
      callback(
        null,
        addresses.map((address): LookupAddress => ({ address, family: 4 })),
      )

  it.each(['flood', 'trickle', 'break'] as const)(
    'has the outcome of its status when the body is a %s',
    async (body) => {
      expect(await askReceiver({ status: 200, body })).toEqual({ kind: 'delivered', status: 200 })
      expect(await askReceiver({ status: 503, body })).toMatchObject({ kind: 'retry', status: 503 })
      expect(await askReceiver({ status: 404, body })).toMatchObject({ kind: 'retry', status: 404 })
    },
  )

  it('is retried when no response comes before the signal', async () => {
    const receiver = await receive()
    receiver.answer('hang')
    const timeout = new AbortController()
    let now = NOW
    const asking = ask(receiver.url, {}, { signal: timeout.signal, now: () => now })
    await receiver.waitFor(1)
    now += 10_004
    timeout.abort()
    const error = `no response from 127.0.0.1:${receiver.port} within 10 s`
    expect(await asking).toEqual({ kind: 'retry', status: null, error })
  })

  it('is retried when the connection is refused', async () => {
    const receiver = await startReceiver()
    await receiver.close()
    const why = 'refused the connection: check that it is running, and the port in the URL (ECONNREFUSED)'
    const error = `127.0.0.1:${receiver.port} ${why}`
    expect(await ask(receiver.url)).toEqual({ kind: 'retry', status: null, error })
  })

  it.each<[string, ReceiverAnswer, string]>([
    ['is reset', 'reset', 'closed the connection before it responded'],
    ['is closed without a response', { raw: '' }, 'closed the connection before it responded'],
    [
      'is closed within the head',
      { raw: 'HTTP/1.1 200 OK\r\nContent-Ty' },
      'closed the connection before it responded',
    ],
    ['has no HTTP on it', { raw: 'SSH-2.0-OpenSSH_9.6\r\n\r\n' }, 'not HTTP (HPE_'],
    ['has a broken status line on it', { raw: 'HTTP/1.1 2x0 OK\r\n\r\n' }, 'not HTTP (HPE_'],
    ['has a broken header on it', { raw: 'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n' }, 'not HTTP (HPE_'],
    [
      'has endless headers on it',
      { raw: `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n` },
      'too many headers (HPE_HEADER_OVERFLOW)',
    ],
    ['changes its protocol', { raw: 'HTTP/1.1 101 Switching Protocols\r\n\r\n' }, 'not HTTP (HPE_'],
  ])('is retried when the connection %s', async (_, answer, error) => {
    const outcome = await askReceiver(answer)
    expect(outcome).toMatchObject({ kind: 'retry', status: null, error: expect.stringContaining(error) })
  })

  it('is retried when no authority has signed the certificate', async () => {
    const receiver = await receive({ certified: signServer(createAuthority('unknown'), ['127.0.0.1']) })
    const outcome = await ask(receiver.url)
    expect(outcome).toMatchObject({ kind: 'retry', status: null })
    expect(errorOf(outcome)).toMatch(/ no known authority has signed: NODE_EXTRA_CA_CERTS .*\(UNABLE_TO_VERIFY_LEAF_/)
    expect(receiver.requests).toEqual([])
  })

  it('is retried when a server without TLS is asked for TLS', async () => {
    const receiver = await receive()
    const outcome = await ask(receiver.url.replace('http:', 'https:'))
    expect(outcome.kind).toBe('retry')
    expect(errorOf(outcome)).toMatch(/does not speak TLS as expected: .* \((EPROTO|ERR_SSL_\w+)\)$/)
  })

  it('is retried when the client closes during the request', async () => {
    const receiver = await receive()
    receiver.answer('hang')
    const client = createHttpClient({ allowedTargets: ['127.0.0.0/8'] })
    const sending = outcomeOf(client, { url: receiver.url })
    await receiver.waitFor(1)
    await client.close()
    expect(await sending).toMatchObject({ kind: 'retry', error: expect.stringContaining('closed the connection') })
  })

  it('to a name with a private address is rejected', async () => {
    const error =
      'db.shop.svc: 10.9.8.7 is a private address, and channels reach public addresses only; ALLOWED_TARGETS may allow it'
    const outcome = await ask('https://db.shop.svc', { lookup: findAll(['10.9.8.7']) })
    expect(outcome).toEqual({ kind: 'rejected', status: null, error })
  })
})

describe('what a service says beyond its status', () => {
  const answer = (response: Partial<HttpResponse>): HttpResponse => ({
    status: 400,
    headers: {},
    text: '',
    ...response,
  })
  const ask = (response: Partial<HttpResponse>, more: { judge?: Judge; secrets?: readonly string[] }) =>
    sendForOutcome(
      { send: async () => answer(response), close: async () => {} },
      { method: 'POST', url: 'https://api.test/', body: '{}', isTrusted: false, tenant: undefined, ...more },
      AbortSignal.timeout(10_000),
      { now: () => NOW },
    )

  it('decides about the outcome, which it gets as the status has it', async () => {
    const later: Judge = (response, outcome) => retryIn(outcome, Number(fieldsOf(response).retry_after) * SECOND)
    expect(await ask({ status: 429, text: '{"retry_after":1.5}' }, { judge: later })).toMatchObject({
      kind: 'retry',
      status: 429,
      retryAfterMs: 1_500,
    })
    const gone: Judge = (_, outcome) => rejectFor(outcome, 'the room was deleted: choose another')
    expect(await ask({ status: 404, text: 'no room' }, { judge: gone })).toEqual({
      kind: 'rejected',
      status: 404,
      error: 'api.test responded 404: no room; the room was deleted: choose another',
    })
    expect(await ask({ status: 204 }, { judge: gone })).toEqual({
      kind: 'rejected',
      status: 204,
      error: 'the room was deleted: choose another',
    })
  })

  it.each([
    [-1, 0],
    [0.2, 1],
    [48 * HOUR, 24 * HOUR],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, undefined],
  ])('is a time within bounds: %d ms', (given, ms) => {
    const outcome: Outcome = { kind: 'retry', status: 429, error: 'x' }
    expect(retryIn(outcome, given)).toEqual(ms === undefined ? outcome : { ...outcome, retryAfterMs: ms })
  })

  it.each([
    ['{"a":1}', { a: 1 }],
    ['[1]', [1]],
    ['null', {}],
    ['"text"', {}],
    ['{"cut', {}],
  ])('are its fields: %s', (text, fields) => {
    expect(fieldsOf(answer({ text }))).toEqual(fields)
  })

  it('is quoted without the secrets of the request', async () => {
    const outcome = await ask({ text: 'unknown key t0ken' }, { secrets: ['t0ken'] })
    expect(errorOf(outcome)).toBe('api.test responded 400: unknown key …')
    const link = await ask({ text: 'bad: https://heartbeat.example.com/ack/AaIkTzw6_-x?y' }, {})
    expect(errorOf(link)).toBe('api.test responded 400: bad: https://heartbeat.example.com/ack/…?y')
  })
})
