/** Heads that no handler sees, on each of the three ports. */

import { beforeAll, describe, expect, it } from 'vitest'
import { createHostRule, HEADER_LIMITS } from '../../../src/http/head.ts'
import { startTestApp } from '../../support/app.ts'
import { exchange, openConnection, writeHead } from '../../support/http.ts'
import { use } from '../../support/use.ts'

let publicId: string
let ports: readonly (readonly [name: string, url: string, target: string])[]

const app = use(startTestApp)
beforeAll(async () => {
  ;({ publicId } = await app.createCheck())
  ports = [
    ['ping', app.pingUrl, `/ping/${publicId}`],
    ['api', new URL(app.apiUrl).origin, '/login'],
    ['ops', app.opsUrl, '/livez'],
  ]
})

/** By path: what tells the API, the dashboard and the badges apart. */
const TYPES: Readonly<Record<string, RegExp>> = { '/api/v1/me': /json/, '/login': /html/, '/badge/x.svg': /json/ }

/** Framing has rules of its own: its values mean something at any length. */
const FRAMING = ['Content-Length', 'Transfer-Encoding', 'Host', 'Expect']

describe('a header that something parses', () => {
  it.each([...HEADER_LIMITS].filter(([name]) => !FRAMING.includes(name)))(
    '%s of %i bytes passes, and of one more gets 431 with its name, on each port',
    async (name, most) => {
      for (const [port, url, target] of ports) {
        const send = (length: number) => exchange(url, writeHead('GET', target, `${name}: ${'x'.repeat(length)}`))
        expect((await send(most)).status, port).not.toBe(431)
        const { status, text, headers } = await send(most + 1)
        expect([status, headers.connection], port).toEqual([431, 'close'])
        expect(text).toContain(`the header ${name} has more than ${most} bytes`)
      }
    },
  )

  it('counts with all its lines', async () => {
    const lines = (count: number) => Array.from({ length: count }, () => 'accept: text/plain')
    for (const [port, url, target] of ports) {
      // Joined by a comma and a space: 12 bytes a line.
      expect((await exchange(url, writeHead('GET', target, ...lines(85)))).status, port).not.toBe(431)
      expect((await exchange(url, writeHead('GET', target, ...lines(86)))).status, port).toBe(431)
    }
  })

  it('Host has its limit too, on each port', async () => {
    for (const [port, url, target] of ports) {
      const send = (length: number) => exchange(url, `GET ${target} HTTP/1.1\r\nHost: ${'x'.repeat(length)}\r\n\r\n`)
      expect((await send(1_024)).status, port).not.toBe(431)
      expect((await send(1_025)).status, port).toBe(431)
    }
  })

  it('is an error of the API in its form', async () => {
    const { text } = await exchange(app.apiUrl, writeHead('GET', '/api/v1/me', `Accept: ${'x'.repeat(2_000)}`))
    expect(JSON.parse(text)).toEqual({ error: 'the header Accept has more than 1024 bytes', code: 'too_large' })
  })
})

describe('of an API without codes, a fault has its message alone:', () => {
  const KEY = 'X-Api-Key: x'
  const [ID, UNIQUE] = ['00000000-0000-4000-8000-000000000000', '0'.repeat(40)]

  const bodyOf = async (target: string, ...lines: string[]) =>
    JSON.parse((await exchange(app.apiUrl, writeHead('GET', target, ...lines))).text)
  const long = `Accept: ${'x'.repeat(1_025)}`
  const twoHosts = 'Host: b'

  it.each([
    ['/api/v3/checks/'],
    ['/api/v2/checks/?tag=a'],
    ['/api/v3/status/'],
    ['/api/v3/checks', KEY],
    ['/api/v3/checks/none', KEY],
    ['/badge/x.svg'],
    ['/badge/x.svg?states=2'],
    ['/api/v1/checks/', KEY],
    ['/api/v1/checks', KEY],
    [`/api/v1/checks/${ID}`, KEY],
    [`/api/v1/checks/${UNIQUE}/flips/`, KEY],
  ])('%s', async (target, ...lines) => {
    expect(await bodyOf(target, ...lines, long)).toEqual({ error: 'the header Accept has more than 1024 bytes' })
    expect(await bodyOf(target, ...lines, twoHosts)).toEqual({ error: 'the request has more than one Host header' })
  })

  it.each([
    ['/api/v1/checks/'],
    ['/api/v2/checks'],
    ['/api/v3/checks/none', 'Authorization: Bearer x'],
    ['/api/v1/me', KEY],
    [`/api/v1/checks/${ID}/pings`, KEY, 'Authorization: Bearer x'],
    ['/api/v30/checks/', KEY],
    ['/badges/', KEY],
  ])('%s is not of such an API', async (target, ...lines) => {
    expect(await bodyOf(target, ...lines, long)).toMatchObject({ code: 'too_large' })
    expect(await bodyOf(target, ...lines, twoHosts)).toMatchObject({ code: 'invalid_request' })
  })

  it('where a proxy serves the site below a path', async () => {
    await using own = await startTestApp({ environment: { BASE_URL: 'https://a.example/heartbeat/api/v1' } })
    const ask = (target: string) => exchange(own.listeningApiUrl, writeHead('GET', target, long))
    for (const target of ['/heartbeat/api/v3/checks/', '/heartbeat/badge/x.svg', '/badge/x.svg'])
      expect(JSON.parse((await ask(target)).text), target).toEqual({ error: expect.any(String) })
    expect(JSON.parse((await ask('/heartbeat/api/v1/me')).text)).toHaveProperty('code')
  })

  it('also where its body is not valid HTTP', async () => {
    for (const [target, hasCode] of [
      ['/api/v3/checks/', false],
      ['/api/v1/checks', true],
    ] as const) {
      const connection = openConnection(app.apiUrl)
      connection.send(writeHead('POST', target, 'Transfer-Encoding: chunked'), 'no chunk\r\n')
      const { status, text } = await connection.receive()
      expect([status, 'code' in JSON.parse(text)]).toEqual([400, hasCode])
      await connection.ended
    }
  })
})

describe('a ping is not lost over', () => {
  it.each(['User-Agent', 'Traceparent', 'Baggage', 'X-Forwarded-Client-Cert', 'X-Custom'])(
    'a long %s, which nothing parses',
    async (name) => {
      const before = (await app.storedPings(publicId)).length
      const head = writeHead('GET', `/ping/${publicId}`, `${name}: ${'x'.repeat(12_000)}`)
      expect((await exchange(app.pingUrl, head)).status).toBe(200)
      expect(await app.storedPings(publicId)).toHaveLength(before + 1)
    },
  )

  it('a long duration, which gets a warning', async () => {
    const head = writeHead('GET', `/ping/${publicId}`, `X-Service-Duration: ${'9'.repeat(12_000)}`)
    const { status, headers } = await exchange(app.pingUrl, head)
    expect([status, headers['ping-warning']]).toEqual([200, 'duration ignored: not an integer from 0 to 604800000'])
  })

  it('a host name that is not known', async () => {
    const head = `GET /ping/${publicId} HTTP/1.1\r\nHost: jobs.example.com\r\n\r\n`
    expect((await exchange(app.pingUrl, head)).status).toBe(200)
  })
})

describe('a version', () => {
  it.each(['GET {t} HTTP/0.9\r\n\r\n', 'GET {t}\r\n\r\n', 'GET {t} HTTP/2.0\r\nHost: a\r\n\r\n'])(
    'other than 1.0 and 1.1 is not HTTP, on each port: %j',
    async (bytes) => {
      const before = (await app.storedPings(publicId)).length
      for (const [port, url, target] of ports) {
        const connection = openConnection(url)
        connection.send(bytes.replace('{t}', target))
        const { status, text } = await connection.receive()
        expect(status, port).toBe(400)
        expect(text).toContain('the request is not valid HTTP')
        await connection.ended
      }
      expect(await app.storedPings(publicId)).toHaveLength(before)
    },
  )
})

it.each([
  ['/api/v1/me', 401],
  ['/login', 200],
  ['/badge/x.svg', 404],
])('a target may be an absolute address, of which the path counts: %s is %d', async (path, status) => {
  for (const target of [path, `http://a.example${path}`, `HTTP://a:8081${path}?x=1`]) {
    const found = await exchange(app.apiUrl, writeHead('GET', target))
    expect([found.status, found.headers['content-type']], target).toEqual([status, expect.stringMatching(TYPES[path]!)])
  }
})

describe('a host name', () => {
  const ask = (url: string, host: string, target = '/') =>
    exchange(url, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)

  it.each([
    'localhost',
    'LOCALHOST:8081',
    'localhost.',
    'app.localhost',
    'APP.localhost:1',
    '127.0.0.1',
    '127.9.9.9:8081',
    '127.1',
    '[::1]',
    '[::1]:8081',
    '192.0.2.7',
    'test',
    '',
  ])('%j is known where only this machine reaches the ports', async (host) => {
    expect((await ask(app.apiUrl, host, '/login')).status).toBe(200)
    expect((await ask(app.opsUrl, host, '/livez')).status).toBe(200)
  })

  it.each(['evil.example', 'EVIL.example:8081', 'evil.example.', 'localhost.evil.example', '127.0.0.1.evil.example'])(
    '%j is not: 421 on the management and the ops port',
    async (host) => {
      for (const url of [app.apiUrl, app.opsUrl]) {
        for (const target of ['/livez', '/login', '/api/v1/openapi.json', '/metrics', '/badge/x/y', '*']) {
          const { status, text } = await ask(url, host, target)
          expect(status).toBe(421)
          expect(text).toContain('set BASE_URL')
        }
      }
    },
  )

  it('of BASE_URL or PING_URL is known, as a proxy on this machine sends it', async () => {
    const environment = { BASE_URL: 'https://Heartbeat.example.com/api/v1', PING_URL: 'https://ping.example.com' }
    await using own = await startTestApp({ environment })
    for (const host of ['heartbeat.example.com', 'HEARTBEAT.example.com:443', 'ping.example.com', '127.0.0.1:8081'])
      expect((await ask(own.listeningApiUrl, host, '/login')).status, host).toBe(200)
    expect((await ask(own.listeningApiUrl, 'example.com')).status).toBe(421)
  })

  it('is of no concern where other machines reach the ports', () => {
    for (const address of ['0.0.0.0', '::', '192.0.2.7']) expect(createHostRule(address, [])).toBeNull()
    for (const address of ['127.0.0.1', '127.0.0.5', '::1', 'localhost', '::ffff:127.0.0.1'])
      expect(createHostRule(address, [])?.('evil.example'), address).toBe(false)
  })
})
