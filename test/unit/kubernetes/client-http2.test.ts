/** HTTP/2, which API servers offer: requests share its connections, watches have theirs by HTTP/1.1. The rest is as in client-sockets. */

import { once } from 'node:events'
import {
  createSecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createClient, type KubernetesClient } from '../../../src/kubernetes/client.ts'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { createAuthority, signServer } from '../../../tools/cluster/control-plane-certificates.ts'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { eventually } from '../../support/until.ts'
import { useEach } from '../../support/use.ts'
import { aConfigMap, failureOf } from './calling.ts'

type Handle = (request: Http2ServerRequest, response: Http2ServerResponse) => void

let stack: AsyncDisposableStack
let sessions: ServerHttp2Session[]
let seen: string[]
/** What the server does with the next requests; then it answers. */
let next: Handle[]
let client: KubernetesClient

const authority = createAuthority('first')

beforeEach(() => {
  stack = new AsyncDisposableStack()
  sessions = []
  seen = []
  next = []
})
const clock = useEach(createManualClock)
beforeEach(async () => {
  const { certificate, key } = signServer(authority, ['127.0.0.1'])
  const server = createSecureServer({ cert: certificate, key, allowHTTP1: true }, (request, response) => {
    seen.push(`${request.httpVersion} ${request.method}`)
    const handle = next.shift() ?? answer
    handle(request, response)
  })
  server.on('session', (session) => {
    sessions.push(session)
    session.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stack.defer(() => void server.close())
  const credentials = { headers: {}, tls: { ca: authority.certificate } }
  client = createClient({
    clock,
    random: () => 0.5,
    connection: {
      server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
      namespace: 'default',
      source: 'the test',
      proxyUrl: null,
      readCredentials: () => Promise.resolve(credentials),
      renewCredentials: () => Promise.resolve(credentials),
    },
  })
})
afterEach(async () => {
  await client.close()
  for (const session of sessions) session.destroy()
  await stack.disposeAsync()
})

const answer: Handle = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end('{"metadata":{"resourceVersion":"1"},"items":[]}')
}
const hang: Handle = () => {}
const breakOff: Handle = (request) => request.stream.session?.destroy()
const list = (signal?: AbortSignal) => client.list(CONFIG_MAPS, { limit: 1, ...(signal ? { signal } : {}) })

describe('requests to a server that offers HTTP/2', () => {
  it('share three connections at most, however many there are', async () => {
    await Promise.all(Array.from({ length: 300 }, () => list()))
    expect(new Set(seen)).toEqual(new Set(['2.0 GET']))
    expect(sessions.length).toBeLessThanOrEqual(3)
  })

  it('find another connection when the server has closed theirs', async () => {
    await list()
    sessions[0]!.close()
    await once(sessions[0]!, 'close')
    await list()
    expect(sessions).toHaveLength(2)
  })

  it('are asked again when their connection breaks if they only read', async () => {
    next = [breakOff]
    const reading = list()
    await eventually('the session has ended', () => seen.length === 1 && sessions[0]!.destroyed)
    await clock.advance(5_000)
    await reading
    expect(seen).toEqual(['2.0 GET', '2.0 GET'])
  })

  it('fail when it breaks if they write, for they may have been heard', async () => {
    next = [breakOff]
    expect(await failureOf(client.create(CONFIG_MAPS, aConfigMap('a')))).toBeInstanceOf(TransportError)
    expect(seen).toEqual(['2.0 POST'])
  })

  it.each([
    ['broken', (session: ServerHttp2Session) => session.destroy(), 0],
    ['closed in order', (session: ServerHttp2Session) => session.close(), 16],
  ])('that write are sent once when their connection is %s while many are on their way', async (_, end, done) => {
    await list()
    const waiting: (() => void)[] = []
    next = Array.from({ length: 16 }, () => (request, response) => {
      waiting.push(() => answer(request, response))
    })
    const writes = Array.from({ length: 16 }, (_, n) =>
      client.create(CONFIG_MAPS, aConfigMap(`c${n}`)).then(
        () => 'done',
        (error) => error,
      ),
    )
    await eventually('sixteen requests wait', () => waiting.length === 16)
    for (const session of [...sessions]) end(session)
    for (const give of waiting) give()
    const outcomes = await Promise.all(writes)
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(done)
    expect(outcomes.filter((outcome) => outcome instanceof TransportError)).toHaveLength(16 - done)
    expect(seen).toEqual(['2.0 GET', ...Array.from({ length: 16 }, () => '2.0 POST')])
  })

  it('replace a connection on which one of them got no response in time', async () => {
    next = [hang]
    const hanging = failureOf(list())
    await eventually('the request has arrived', () => seen.length === 1)
    await clock.advance(30_000)
    expect((await hanging).message).toMatch(/no response within 30 s/)
    await list()
    expect(sessions).toHaveLength(2)
    await eventually('the session has ended', () => sessions[0]!.destroyed)
  })

  it('go on when the caller of another gives up', async () => {
    let release: (() => void) | undefined
    next = [answer, hang, (request, response) => (release = () => answer(request, response))]
    const stop = new AbortController()
    await list()
    const given = failureOf(list(stop.signal))
    const kept = list()
    await eventually('the request has arrived', () => release !== undefined)
    stop.abort()
    await given
    release!()
    await kept
    expect(sessions).toHaveLength(1)
  })
})

describe('a watch of a server that offers HTTP/2', () => {
  it('has a connection of its own, by HTTP/1.1', async () => {
    await list()
    next = [(_, response) => response.end()]
    const events = client.watch(CONFIG_MAPS, {
      signal: new AbortController().signal,
      resourceVersion: '1',
      timeoutSeconds: 300,
    })
    for await (const _ of events) break
    expect(seen).toEqual(['2.0 GET', '1.1 GET'])
    expect(sessions).toHaveLength(1)
  })
})
