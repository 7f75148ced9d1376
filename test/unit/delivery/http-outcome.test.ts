/** The table of what is tried again, row by row, against real sockets. */

import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createHttpClient, type HttpClientOptions } from '../../../src/delivery/http.ts'
import { sendForOutcome } from '../../../src/delivery/http-outcome.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createAuthority, signServer } from '../../cluster/control-plane-certificates.ts'
import { type ReceiverAnswer, type ReceiverOptions, startReceiver } from '../../support/receiver.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const end of ends.splice(0).reverse()) await end()
})

async function receive(options?: ReceiverOptions) {
  const receiver = await startReceiver(options)
  ends.push(receiver.close)
  return receiver
}

const SECRETS = ['services', 'T0SECRET', 'K3Y', 'mary', 'p@ss', 'p%40ss', btoa('mary:p@ss')]
const addSecrets = (url: string) => `${url.replace('//', '//mary:p%40ss@')}/services/T0SECRET?key=K3Y`
/** 2026-01-01T00:00:00Z */
const NOW = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000

/** Sends to `url` with a path, a query and credentials that no text may show. */
async function ask(
  url: string,
  { signal = AbortSignal.timeout(10_000), ...options }: Partial<HttpClientOptions> & { signal?: AbortSignal } = {},
): Promise<Outcome> {
  const client = createHttpClient({ allowedTargets: ['127.0.0.0/8'], ...options })
  ends.push(client.close)
  const request = { method: 'POST', url: addSecrets(url), body: '{}', isTrusted: false } as const
  const outcome = await sendForOutcome(client, request, signal, { now: () => NOW })
  for (const secret of SECRETS) expect(JSON.stringify(outcome)).not.toContain(secret)
  return outcome
}

async function askReceiver(answer: ReceiverAnswer): Promise<Outcome> {
  const receiver = await receive()
  receiver.answer(answer)
  const outcome = await ask(receiver.url)
  expect(receiver.requests).toHaveLength(1)
  return outcome
}

const textOf = (outcome: Outcome) => (outcome.kind === 'delivered' ? outcome.note : outcome.error)

describe('delivered', () => {
  it.each([200, 201, 202, 204, 299])('by %i', async (status) => {
    expect(await askReceiver({ status })).toEqual({ kind: 'delivered', status })
  })

  it.each(['flood', 'trickle', 'break'] as const)('by a 200 whose body is a %s: the status decides', async (body) => {
    expect(await askReceiver({ status: 200, body })).toEqual({ kind: 'delivered', status: 200 })
  })

  it('by a 200 whose body is not done when the time is up', async () => {
    const receiver = await receive()
    receiver.answer({ status: 200, body: 'trickle' })
    expect(await ask(receiver.url, { signal: AbortSignal.timeout(500) })).toEqual({ kind: 'delivered', status: 200 })
  })
})

describe('tried again', () => {
  it.each([408, 425, 429, 500, 501, 502, 503, 504, 507, 599])('after %i', async (status) => {
    expect(await askReceiver({ status, text: 'not now' })).toEqual({
      kind: 'retry',
      status,
      error: expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:\\d+ answered ${status}: not now$`)),
    })
  })

  it.each(['flood', 'break'] as const)('after a 503 whose body is a %s', async (body) => {
    expect(await askReceiver({ status: 503, body })).toMatchObject({ kind: 'retry', status: 503 })
  })

  it('when no answer comes in time', async () => {
    const receiver = await receive()
    receiver.answer('hang')
    const client = createHttpClient({ allowedTargets: ['127.0.0.0/8'] })
    ends.push(client.close)
    let now = NOW
    const time = new AbortController()
    const sending = sendForOutcome(
      client,
      { method: 'POST', url: addSecrets(receiver.url), isTrusted: false },
      time.signal,
      { now: () => now },
    )
    await receiver.waitFor(1)
    now += 10_004
    time.abort()
    expect(await sending).toEqual({
      kind: 'retry',
      status: null,
      error: `no answer from 127.0.0.1:${receiver.port} within 10 s`,
    })
  })

  it('when the name servers are silent until the time is up', async () => {
    const lookup: LookupFunction = () => {}
    expect(await ask('http://hooks.test', { lookup, signal: AbortSignal.timeout(100) })).toMatchObject({
      kind: 'retry',
      error: expect.stringMatching(/^no answer from hooks\.test within /),
    })
  })

  it('when connections are refused', async () => {
    const receiver = await startReceiver()
    await receiver.close()
    expect(await ask(receiver.url)).toEqual({
      kind: 'retry',
      status: null,
      error: `127.0.0.1:${receiver.port} refuses connections: does it run, and is the port right? (ECONNREFUSED)`,
    })
  })

  it('when all addresses of a name refuse connections', async () => {
    const receiver = await startReceiver()
    await receiver.close()
    const lookup = answerWith(['127.0.0.2', '127.0.0.3'])
    expect(await ask(`http://hooks.test:${receiver.port}`, { lookup })).toMatchObject({
      kind: 'retry',
      error: expect.stringContaining('(ECONNREFUSED)'),
    })
  })

  it.each([
    ['is reset', 'reset'],
    ['is closed without an answer', { raw: '' }],
    ['is closed within the head of the answer', { raw: 'HTTP/1.1 200 OK\r\nContent-Ty' }],
  ] as const)('when the connection %s', async (_, answer) => {
    expect(await askReceiver(answer)).toMatchObject({
      kind: 'retry',
      status: null,
      error: expect.stringContaining('broke the connection off before it answered'),
    })
  })

  it.each([
    ['ENOTFOUND', 'hooks.test has no address: is the name right? (ENOTFOUND)'],
    ['EAI_AGAIN', 'hooks.test could not be looked up: the name servers gave no answer (EAI_AGAIN)'],
    ['EAI_FAIL', 'hooks.test could not be looked up: the name servers gave no answer (EAI_FAIL)'],
  ])('when the lookup fails with %s', async (code, error) => {
    const lookup = answerWith(Object.assign(new Error(`getaddrinfo ${code} hooks.test`), { code }))
    expect(await ask('http://hooks.test', { lookup })).toEqual({ kind: 'retry', status: null, error })
  })

  it('when nobody vouches for the certificate', async () => {
    const receiver = await receive({ certified: signServer(createAuthority('unknown'), ['127.0.0.1']) })
    expect(await ask(receiver.url)).toEqual({
      kind: 'retry',
      status: null,
      error: expect.stringMatching(/ no known authority vouches for: NODE_EXTRA_CA_CERTS .*\(UNABLE_TO_VERIFY_LEAF_/),
    })
    expect(receiver.requests).toEqual([])
  })

  it('when the certificate is not one for servers', async () => {
    const receiver = await receive({ certified: createAuthority('127.0.0.1') })
    expect(await ask(receiver.url)).toMatchObject({
      kind: 'retry',
      error: expect.stringContaining('shows a certificate that does not hold (INVALID_PURPOSE)'),
    })
  })

  it('when the certificate is for another name', async () => {
    const authority = createAuthority('known')
    const receiver = await receive({ certified: signServer(authority, ['other.test']) })
    expect(await ask(receiver.url, { ca: authority.certificate })).toMatchObject({
      kind: 'retry',
      error: expect.stringContaining('shows a certificate for another name: is the address right?'),
    })
  })

  it('when a plain server is asked for TLS', async () => {
    const receiver = await receive()
    expect(await ask(receiver.url.replace('http:', 'https:'))).toMatchObject({
      kind: 'retry',
      error: expect.stringMatching(/does not speak TLS as expected: .* \((EPROTO|ERR_SSL_\w+)\)$/),
    })
  })

  it('when a TLS server is asked without', async () => {
    const receiver = await receive({ certified: createAuthority('127.0.0.1') })
    expect(await ask(receiver.url.replace('https:', 'http:'))).toMatchObject({ kind: 'retry', status: null })
  })

  it.each([
    ['is not HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n', 'gave an answer that is not HTTP (HTTPParserError)'],
    ['has a broken status line', 'HTTP/1.1 2x0 OK\r\n\r\n', 'gave an answer that is not HTTP (HTTPParserError)'],
    [
      'has a broken header',
      'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n',
      'gave an answer that is not HTTP (HTTPParserError)',
    ],
    [
      'has headers without end',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      'answered with too many headers (UND_ERR_HEADERS_OVERFLOW)',
    ],
    ['changes to another protocol', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', ' ('],
  ])('when the answer %s', async (_, raw, error) => {
    expect(await askReceiver({ raw })).toMatchObject({
      kind: 'retry',
      status: null,
      error: expect.stringContaining(error),
    })
  })

  it('when the client is closed under it', async () => {
    const receiver = await receive()
    receiver.answer('hang')
    const client = createHttpClient({ allowedTargets: ['127.0.0.0/8'] })
    const request = { method: 'GET', url: receiver.url, isTrusted: false } as const
    const sending = sendForOutcome(client, request, new AbortController().signal, systemClock)
    await receiver.waitFor(1)
    await client.close()
    expect(await sending).toMatchObject({ kind: 'retry', error: expect.stringContaining('the service is stopping') })
  })
})

describe('refused', () => {
  it.each([400, 401, 403, 404, 405, 409, 410, 413, 415, 421, 422, 431, 451, 499])('after %i', async (status) => {
    expect(await askReceiver({ status, text: 'no' })).toEqual({
      kind: 'refused',
      status,
      error: expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:\\d+ answered ${status}: no$`)),
    })
  })

  it('after 404 whose body has no end', async () => {
    expect(await askReceiver({ status: 404, body: 'flood' })).toMatchObject({ kind: 'refused', status: 404 })
  })

  it.each([300, 301, 302, 303, 304, 307, 308])('after %i, with where it leads', async (status) => {
    const outcome = await askReceiver({
      status,
      headers: { location: 'https://a:b@new.test/services/T0SECRET?key=K3Y' },
    })
    expect(outcome).toEqual({
      kind: 'refused',
      status,
      error: expect.stringMatching(
        new RegExp(
          `^127\\.0\\.0\\.1:\\d+ answered ${status}: redirects are not followed; use the new address, at https://new\\.test$`,
        ),
      ),
    })
  })

  it.each([
    ['/elsewhere', 'use the new address, on the same host'],
    ['', 'use the new address, on the same host'],
    ['javascript:alert(1)', 'use an address that answers itself'],
    ['https://', 'use an address that answers itself'],
  ])('after a redirect to %j', async (location, advice) => {
    const outcome = await askReceiver({ status: 302, headers: { location } })
    expect(textOf(outcome)).toMatch(new RegExp(`answered 302: redirects are not followed; ${advice}$`))
  })

  it('after a redirect to nowhere', async () => {
    expect(textOf(await askReceiver({ status: 302 }))).toContain('use an address that answers itself')
  })

  it.each(['http://10.0.0.1', 'https://169.254.169.254', 'http://[::ffff:10.0.0.1]:8080', 'http://0x0a.1'])(
    'when the target is %s, naming the address and ALLOWED_TARGETS',
    async (url) => {
      const outcome = await ask(url)
      expect(outcome).toMatchObject({ kind: 'refused', status: null })
      expect(textOf(outcome)).toMatch(/^(10\.0\.0\.1|169\.254\.169\.254|::ffff:a00:1) is a .*; ALLOWED_TARGETS may/)
    },
  )

  it('when a name leads to a private address', async () => {
    expect(await ask('https://db.shop.svc', { lookup: answerWith(['10.9.8.7']) })).toEqual({
      kind: 'refused',
      status: null,
      error:
        'db.shop.svc: 10.9.8.7 is a private address, and channels reach public addresses only; ALLOWED_TARGETS may allow it',
    })
  })

  it.each([
    ['nonsense', 'is not a URL'],
    ['ftp://mary:p%40ss@127.0.0.1/T0SECRET', 'begins with ftp:, not with https: or http:'],
  ])('when the address is %s', async (url, why) => {
    const client = createHttpClient({ allowedTargets: [] })
    const request = { method: 'POST', url, isTrusted: true } as const
    const outcome = await sendForOutcome(client, request, AbortSignal.timeout(1_000), systemClock)
    expect(outcome).toEqual({ kind: 'refused', status: null, error: `the address ${why}` })
  })
})

describe('Retry-After', () => {
  it.each([
    ['120', 120_000],
    [' 7 ', 7_000],
    ['0', 0],
    ['Thu, 01 Jan 2026 00:01:00 GMT', 60_000],
    ['Thursday, 01-Jan-26 00:01:00 GMT', 60_000],
    ['Thu Jan  1 00:01:00 2026', 60_000],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['90000', 24 * HOUR_MS],
    ['9'.repeat(400), 24 * HOUR_MS],
    ['Sat, 01 Jan 2028 00:00:00 GMT', 24 * HOUR_MS],
  ])('%j is a wait of %i ms', async (text, retryAfterMs) => {
    for (const status of [429, 503])
      expect(await askReceiver({ status, headers: { 'Retry-After': text } })).toMatchObject({
        kind: 'retry',
        status,
        retryAfterMs,
      })
  })

  it('is in GMT wherever we are', async () => {
    vi.stubEnv('TZ', 'America/New_York')
    expect(new Date(NOW).getHours()).toBe(19)
    for (const text of ['Thu Jan  1 00:01:00 2026', 'Thu, 01 Jan 2026 00:01:00 GMT'])
      expect(await askReceiver({ status: 429, headers: { 'Retry-After': text } })).toMatchObject({
        retryAfterMs: 60_000,
      })
  })

  it.each(['', 'soon', '-5', '1.5', '1e3', '0x10', '5 minutes', '2026-01-01T00:01:00Z', 'Thu, 99 Foo 2026', 'Thu'])(
    '%j is nonsense and left out',
    async (text) => {
      expect(await askReceiver({ status: 429, headers: { 'Retry-After': text } })).not.toHaveProperty('retryAfterMs')
    },
  )

  it('counts for every status that is tried again, and for no other', async () => {
    const headers = { 'retry-after': '60' }
    for (const status of [408, 425, 500, 502])
      expect(await askReceiver({ status, headers })).toMatchObject({ retryAfterMs: 60_000 })
    for (const status of [200, 302, 404])
      expect(await askReceiver({ status, headers })).not.toHaveProperty('retryAfterMs')
  })
})

function answerWith(answer: readonly string[] | NodeJS.ErrnoException): LookupFunction {
  return (_, __, callback) => {
    if (answer instanceof Error) callback(answer, [])
    else
      callback(
        null,
        answer.map((address): LookupAddress => ({ address, family: 4 })),
      )
  }
}
