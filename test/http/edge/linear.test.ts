/**
 * What a stranger sends costs time in proportion to its length. The headers that something parses are found by watching which of them are read; the
 * inputs are sent to each port through its real server.
 */

import type { RequestListener } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../../src/http/api/routes.ts'
import { PAGES } from '../../../src/http/dashboard/routes.ts'
import { HEADER_LIMITS } from '../../../src/http/head.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'
import { exchange, writeHead, writePost } from '../../support/http.ts'
import { anOpsApp, aPingApp, serve } from '../../support/servers.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const PING = '/ping/0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f'

let ports: Record<'ping' | 'api' | 'ops', string>
/** In lower case: what a handler, ours or of a library, has asked for. */
const read = new Set<string>()

/** Around `handler`: notes which headers are read. */
function watch(handler: RequestListener): RequestListener {
  return (request, response) => {
    const headers = new Proxy(request.headers, {
      get(target, name) {
        if (typeof name === 'string') read.add(name)
        return Reflect.get(target, name)
      },
    })
    Object.defineProperty(request, 'headers', { value: headers })
    return handler(request, response)
  }
}

// With TLS, so that pages look for how they were opened.
const api = use(() => startTestApi({ baseUrl: () => 'https://heartbeat.example.com/api/v1' }, watch))
const ping = use(() => serve({ handler: watch(aPingApp()) }))
const ops = use(() => serve({ handler: watch(anOpsApp({ onFault: () => {} }, { metricsToken: 'secret-token' })) }))
beforeAll(() => {
  ports = { ping: ping.url, api: new URL(api.url).origin, ops: ops.url }
})

const withIds = (path: string) => path.replaceAll(/\{\w+\}/g, 'x')
/** Each route of each port, as method and path. */
const TARGETS: readonly (readonly ['ping' | 'api' | 'ops', string, string])[] = [
  ...['GET', 'POST', 'PUT', 'OPTIONS'].map((method) => ['ping', method, PING] as const),
  ['ping', 'GET', '/nowhere'],
  ['ping', 'POST', '/api/push/token'],
  ...['/livez', '/readyz', '/startupz', '/metrics', '/nowhere'].map((path) => ['ops', 'GET', path] as const),
  ...ROUTES.map(({ method, path }) => ['api', method.toUpperCase(), `/api/v1${withIds(path)}`] as const),
  ...['/api/v1/checks/', '/api/v3/checks/', '/api/v3/badges/', '/badge/x/y.svg', '/nowhere', '/api/v1/nowhere'].map(
    (path) => ['api', 'GET', path] as const,
  ),
  ['api', 'POST', '/api/v3/checks/'],
  ...PAGES.map(({ method, path }) => ['api', method, withIds(path)] as const),
]

it('each header that a handler reads has a limit', async () => {
  const form = 'Content-Type: application/x-www-form-urlencoded'
  for (const [port, method, path] of TARGETS) {
    for (const headers of [
      [],
      ['Authorization: Bearer x', 'X-Api-Key: hbk_x'],
      [form, 'Sec-Fetch-Site: same-origin'],
    ]) {
      const request =
        method === 'POST'
          ? writePost(path, 'a=b', ...headers)
          : writeHead(method, path, ...headers, 'Connection: close')
      await exchange(ports[port], request)
    }
  }
  const limited = new Set([...HEADER_LIMITS.keys()].map((name) => name.toLowerCase()))
  // What Node parses itself, or of which only the first digits count.
  const others = ['connection', 'x-service-duration']
  expect([...read].filter((name) => !limited.has(name) && !others.includes(name))).toEqual([])
  for (const name of ['accept', 'authorization', 'content-type', 'cookie', 'x-api-key']) expect(read).toContain(name)
})

/** Texts that are long for a parser: separators in a row, and what makes one search again from each place. */
const PIECES = [
  ' ', '\t', ',', ';', '"', '",', '";', 'a=', 'a,', 'a;', '=', '&', 'a&', '%', '%41', '%ff', '+', '\\', '/', '//', '.', '-', ':', '[', '(', 'a', '0', 'a/b;', 'q=0.1,', '\xff', 'e\xcc\x81', '\xed\xa0\x80', '{"a":', '["', '{"a":[',
] // biome-ignore format: a table
/** An end that lets what was matched so far fail. */
const ENDS = ['', 'x', '"', '\xff']

/** At most, for anything that is accepted. */
const MOST_MS = 60
/** Runs of the shorter and the longer text: the quickest of each counts, because others use the machine. */
const RUNS = 4
/** What seems slow is measured again: something else may have slowed all runs of one text. */
const ROUNDS = 5

type Send = (text: string) => Promise<unknown>

/** Processor time of this process, so that of the client too. */
async function measure(send: Send, text: string): Promise<number> {
  const cpuMs = startCpuTimer()
  await send(text)
  return cpuMs()
}

async function quickest(send: Send, text: string): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS && best > MOST_MS / 4; run += 1) best = Math.min(best, await measure(send, text))
  return best
}

/** What costs little is not looked at further. What costs more must be at most four times as much for a text that is twice as long, and less than the limit. */
async function expectLinear(send: Send, length: number, ends = ENDS): Promise<void> {
  const slow: string[] = []
  for (const piece of PIECES) {
    for (const end of ends) {
      const make = (bytes: number) => `x${piece.repeat(Math.floor((bytes - 2) / piece.length))}${end}`
      let [half, whole] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
      const isSlow = () => whole > MOST_MS || whole > 3.5 * half
      for (let round = 0; round < ROUNDS && isSlow(); round += 1) {
        whole = Math.min(whole, await quickest(send, make(length)))
        if (whole < MOST_MS / 4) break
        half = Math.min(half, await quickest(send, make(length / 2)))
      }
      if (whole >= MOST_MS / 4 && isSlow())
        slow.push(`${JSON.stringify(piece)}${end}: ${half.toFixed(1)}, ${whole.toFixed(1)} ms`)
    }
  }
  expect(slow).toEqual([])
}

describe('costs time in proportion to its length', () => {
  const WHERE = [
    ['ping', 'POST', PING],
    ['ping', 'GET', '/nowhere'],
    ['ops', 'GET', '/metrics'],
    ['api', 'GET', '/login'],
    ['api', 'GET', '/checks'],
    ['api', 'GET', '/api/v1/checks'],
    ['api', 'POST', '/api/v1/auth/login'],
    ['api', 'GET', '/api/v3/checks/'],
    ['api', 'GET', '/badge/x/y.svg'],
  ] as const

  it.each([...HEADER_LIMITS].filter(([name]) => !['Content-Length', 'Expect'].includes(name)))(
    'the header %s of %i bytes',
    async (name, most) => {
      for (const [port, method, path] of WHERE) {
        const body = method === 'POST' && name !== 'Transfer-Encoding' ? '{}' : ''
        const framing = [
          ...(body === '' ? [] : [`Content-Length: ${body.length}`]),
          ...(name === 'Content-Type' || body === '' ? [] : ['Content-Type: application/json']),
        ]
        const host = name === 'Host' ? '' : 'Host: test\r\n'
        const prefix = { Authorization: 'Bearer ', 'Content-Type': 'application/json;' }[name] ?? ''
        for (const before of new Set(['', prefix])) {
          const send = (text: string) => {
            const head = [
              `${method} ${path} HTTP/1.1`,
              `${host}${name}: ${before}${text}`,
              ...framing,
              'Connection: close',
              '',
              '',
            ].join('\r\n')
            return exchange(ports[port], head + body).catch(() => {})
          }
          await expectLinear(send, most - before.length, most > 2_000 ? ENDS : ['x'])
        }
      }
    },
  )

  it.each(['path', 'query'])('the %s of a head as long as there may be', async (part) => {
    for (const [port, , path] of WHERE) {
      const send = (text: string) => {
        // A target has no spaces, and no control characters.
        const given = text.replaceAll(/[ \t]/g, '%20').slice(0, 15_000)
        const target = part === 'path' ? `${path}/${given}` : `${path}?${given}`
        return exchange(ports[port], writeHead('GET', target, 'Connection: close')).catch(() => {})
      }
      await expectLinear(send, 15_000)
    }
  })

  const BODIES = [
    ['/api/v1/auth/login', 'application/json', (text: string) => JSON.stringify({ email: text, password: 'x' })],
    ['/api/v1/auth/refresh', 'application/json', (text: string) => JSON.stringify({ refresh_token: text })],
    ['/api/v1/auth/login', 'application/json', (text: string) => text],
    ['/api/v3/checks/', 'application/json', (text: string) => JSON.stringify({ api_key: text })],
    ['/login', 'application/x-www-form-urlencoded', (text: string) => text],
    ['/login', 'application/x-www-form-urlencoded', (text: string) => `next=${encodeURIComponent(text)}`],
    ['/logout', 'application/x-www-form-urlencoded', (text: string) => text],
  ] as const
  it.each(BODIES)('the body of %s as %s', async (path, type, write) => {
    const send = (text: string) => {
      const body = Buffer.from(write(text), 'latin1').subarray(0, 65_536)
      const headers = [`Content-Type: ${type}`, 'Sec-Fetch-Site: same-origin', 'Connection: close']
      return exchange(ports.api, writePost(path, body, ...headers)).catch(() => {})
    }
    await expectLinear(send, 60_000)
  })
})
