import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  ApiError,
  createClient,
  hasReason,
  type KubernetesClient,
  type RequestMetrics,
  TransportError,
  type WatchEvent,
} from '../../../src/kubernetes/client.ts'
import type { Connection } from '../../../src/kubernetes/connection.ts'
import type { KubernetesObject } from '../../../src/kubernetes/objects.ts'
import { CONFIG_MAPS, type FakeApiServer, type SeenRequest, startFakeApiServer } from '../../support/fake-api-server.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import { untilDone, untilSo } from './until-done.ts'

const SECRETS = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' }
const CHECKS = { group: 'example.com', version: 'v1', plural: 'checks', kind: 'Check' }
const A = { namespace: 'shop', name: 'a' }

let server: FakeApiServer
let clock: ManualClock
let client: KubernetesClient
let warnings: string[]
let counted: Parameters<RequestMetrics['request']>[]

beforeEach(async () => {
  server = await startFakeApiServer({ types: [CONFIG_MAPS, SECRETS, CHECKS] })
  clock = createManualClock()
  warnings = []
  counted = []
  client = clientOf(server.connection)
})

afterEach(async () => {
  await client.close()
  await server[Symbol.asyncDispose]()
})

function clientOf(connection: Connection): KubernetesClient {
  return createClient({
    connection,
    clock,
    random: () => 0.5,
    onWarning: (text) => warnings.push(text),
    metrics: { request: (...args) => counted.push(args) },
  })
}

const aConfigMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'shop', name },
  data,
})
const anyRequest = () => true
const store = (name: string) => server.collection(CONFIG_MAPS).create(aConfigMap(name))
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error) => error,
  )
const lastRequest = () => {
  const { method, path, query, headers, body }: SeenRequest = server.requests.at(-1)!
  const type = headers['content-type']
  return { method, path, query: String(query), ...(type && { type }), ...(body && { body: JSON.parse(body) }) }
}

async function readWatch(options: { signal: AbortSignal; resourceVersion?: string }, count = Number.POSITIVE_INFINITY) {
  const events: WatchEvent<KubernetesObject>[] = []
  const watch = client.watch(CONFIG_MAPS, {
    namespace: 'shop',
    resourceVersion: '100',
    timeoutSeconds: 300,
    ...options,
  })
  for await (const event of watch) {
    events.push(event)
    if (events.length === count) break
  }
  return events
}

describe('each verb is sent as the API server wants it', () => {
  it('to read', async () => {
    store('a')
    await client.get(CONFIG_MAPS, A)
    expect(lastRequest()).toEqual({ method: 'GET', path: '/api/v1/namespaces/shop/configmaps/a', query: '' })
    const options = { namespace: 'shop', limit: 5, resourceVersion: '7', labelSelector: 'a=b,c' }
    await client.list(CONFIG_MAPS, options)
    expect(lastRequest()).toEqual({
      method: 'GET',
      path: '/api/v1/namespaces/shop/configmaps',
      query: 'limit=5&resourceVersion=7&labelSelector=a%3Db%2Cc',
    })
    await client.list(CHECKS)
    expect(lastRequest()).toEqual({ method: 'GET', path: '/apis/example.com/v1/checks', query: '' })
    await failureOf(client.get(CONFIG_MAPS, { namespace: 'shop', name: 'a/../../secrets/b' }))
    expect(lastRequest().path).toBe('/api/v1/namespaces/shop/configmaps/a%2F..%2F..%2Fsecrets%2Fb')
  })

  it('to write', async () => {
    const path = '/api/v1/namespaces/shop/configmaps/a'
    const json = { type: 'application/json' }
    await client.create(CONFIG_MAPS, aConfigMap('a'), { fieldManager: 'us' })
    expect(lastRequest()).toEqual({
      method: 'POST',
      path: '/api/v1/namespaces/shop/configmaps',
      query: 'fieldManager=us',
      body: aConfigMap('a'),
      ...json,
    })
    const found = await client.get(CONFIG_MAPS, A)
    await client.replace(CONFIG_MAPS, found)
    expect(lastRequest()).toEqual({ method: 'PUT', path, query: '', body: found, ...json })
    await client.mergePatch(CONFIG_MAPS, A, { data: { a: null } }, { fieldManager: 'us' })
    expect(lastRequest()).toEqual({
      method: 'PATCH',
      path,
      query: 'fieldManager=us',
      type: 'application/merge-patch+json',
      body: { data: { a: null } },
    })
    await client.apply(CONFIG_MAPS, aConfigMap('a'), { fieldManager: 'us', force: true })
    expect(lastRequest()).toEqual({
      method: 'PATCH',
      path,
      query: 'fieldManager=us&force=true',
      type: 'application/apply-patch+yaml',
      body: aConfigMap('a'),
    })
    server.disturb(anyRequest, { status: 404 })
    await failureOf(client.apply(CONFIG_MAPS, aConfigMap('a'), { fieldManager: 'us', subresource: 'status' }))
    expect(lastRequest()).toMatchObject({ path: `${path}/status`, query: 'fieldManager=us' })
    await client.delete(CONFIG_MAPS, A, { uid: found.metadata.uid, propagationPolicy: 'Background' })
    expect(lastRequest()).toEqual({
      method: 'DELETE',
      path,
      query: '',
      body: {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        preconditions: { uid: found.metadata.uid },
        propagationPolicy: 'Background',
      },
      ...json,
    })
  })

  it('to watch, always with bookmarks', async () => {
    store('a')
    await readWatch({ signal: AbortSignal.timeout(10_000) }, 1)
    expect(lastRequest()).toEqual({
      method: 'GET',
      path: '/api/v1/namespaces/shop/configmaps',
      query: 'watch=1&allowWatchBookmarks=true&resourceVersion=100&timeoutSeconds=300',
    })
  })

  it('to ask for what is no resource, as text if it is no JSON', async () => {
    server.disturb(anyRequest, { status: 200, text: 'ok' })
    expect(await client.raw('GET', '/readyz?verbose')).toBe('ok')
    expect(lastRequest()).toMatchObject({ method: 'GET', path: '/readyz', query: 'verbose=' })
    expect(await client.raw('POST', '/api/v1/namespaces/shop/configmaps', aConfigMap('a'))).toMatchObject({
      metadata: { name: 'a' },
    })
  })

  it('below the path of the server', async () => {
    const below = clientOf({ ...server.connection, server: `${server.url}/k8s/c-1` })
    await failureOf(below.get(CONFIG_MAPS, A))
    expect(lastRequest().path).toBe('/k8s/c-1/api/v1/namespaces/shop/configmaps/a')
    await below.close()
  })
})

describe('sockets', () => {
  it('are kept: 300 requests one after the other use two, and 300 at once no more than three', async () => {
    // Two, since undici gives a socket free only a turn after its answer.
    for (let n = 0; n < 300; n += 1) await client.list(CONFIG_MAPS, { limit: 1 })
    expect(server.connections().accepted).toBeLessThanOrEqual(2)
    await Promise.all(Array.from({ length: 300 }, () => client.list(CONFIG_MAPS, { limit: 1 })))
    expect(server.connections().accepted).toBe(3)
    expect(server.requests).toHaveLength(600)
  })

  it('of watches are their own, one each, and are used again', async () => {
    const stop = new AbortController()
    const watches = [1, 2, 3].map(() => readWatch({ signal: stop.signal }))
    await untilSo(() => server.watches.length === 3)
    await client.list(CONFIG_MAPS, { limit: 1 })
    expect(server.connections()).toEqual({ accepted: 4, open: 4 })
    for (const watch of server.watches) watch.end()
    await Promise.all(watches)
    const again = readWatch({ signal: stop.signal })
    await untilSo(() => server.watches.length === 1)
    expect(server.connections().accepted).toBe(4)
    stop.abort()
    await failureOf(again)
  })

  it('of a watch that is read no more, or stopped, are closed', async () => {
    store('a')
    await readWatch({ signal: AbortSignal.timeout(10_000) }, 1)
    await untilSo(() => server.connections().open === 0)
    const stop = new AbortController()
    const watch = failureOf(readWatch({ signal: stop.signal }))
    await untilSo(() => server.watches.length === 1)
    stop.abort(new Error('stopped by the test'))
    expect((await watch).message).toBe('stopped by the test')
    await untilSo(() => server.connections().open === 0)
  })

  it('all close with the client, and what is on its way ends', async () => {
    const watch = failureOf(readWatch({ signal: new AbortController().signal }))
    await untilSo(() => server.watches.length === 1)
    server.disturb(anyRequest, 'hang')
    const call = failureOf(client.create(CONFIG_MAPS, aConfigMap('a')))
    await untilSo(() => server.requests.length === 2)
    await client.close()
    expect(await watch).toBeInstanceOf(TransportError)
    expect(await call).toBeInstanceOf(TransportError)
    expect((await failureOf(client.create(CONFIG_MAPS, aConfigMap('b')))).message).toContain('the client is closed')
    await untilSo(() => server.connections().open === 0)
  })
})

describe('a refusal', () => {
  it('keeps what the API server says', async () => {
    const error = await failureOf(client.get(CONFIG_MAPS, A))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      message: 'configmaps "a" not found',
      request: 'get configmaps shop/a',
      status: 404,
      reason: 'NotFound',
      details: { name: 'a', kind: 'configmaps' },
      retryAfterSeconds: null,
    })
    expect(hasReason(error, 'NotFound')).toBe(true)
    expect(hasReason(error, 'Conflict')).toBe(false)
    expect(hasReason(new Error('NotFound'), 'NotFound')).toBe(false)
  })

  it('that is no Status is told by its code alone', async () => {
    server.disturb(anyRequest, { status: 403, text: '<html>geheim</html>' })
    const error = await failureOf(client.get(CONFIG_MAPS, A))
    expect(error).toMatchObject({ status: 403, reason: 'Forbidden', details: null })
    expect(error.message).toBe('the server answered 403 to: get configmaps shop/a')
  })

  it('is not a list, nor is anything else that is none: it would look as if all were deleted', async () => {
    for (const json of [{}, { metadata: { resourceVersion: '7' } }, { items: [] }, { kind: 'Status', items: {} }]) {
      server.disturb(anyRequest, { status: 200, json })
      const error = await failureOf(client.list(CONFIG_MAPS))
      expect(error).toBeInstanceOf(TransportError)
      expect(error.message).toMatch(/answered with something else than the list/)
    }
    server.disturb(anyRequest, { status: 200, json: { metadata: { resourceVersion: '7' }, items: null } })
    expect(await client.list(CONFIG_MAPS)).toEqual({ items: [], resourceVersion: '7', continueToken: null })
  })

  it.each([
    ['a page of a proxy', { status: 200, text: '<html>geheim</html>' }, /answered with text\/html and not with JSON/],
    ['half an answer', 'break' as const, /no answer from 127\.0\.0\.1:\d+: /],
    ['no answer', 'reset' as const, /^create secrets shop\/a: no answer from 127\.0\.0\.1:\d+: /],
  ])('is not %s: then it is unknown what happened, and no error shows a Secret', async (_, how, expected) => {
    server.disturb(anyRequest, how)
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: A, data: { url: 'Z2VoZWlt' } }
    const error = await failureOf(client.create(SECRETS, secret))
    expect(error).toBeInstanceOf(TransportError)
    expect(error.message).toMatch(expected)
    expect(inspect(error, { depth: 10 })).not.toMatch(/geheim|Z2VoZWlt/)
  })
})

describe('another attempt', () => {
  const attempts = (method: string) => server.requests.filter((request) => request.method === method).length

  it.each([['reset' as const], ['break' as const], [{ status: 500 }], [{ status: 503 }], [{ status: 429 }]])(
    'is made for a read after %j',
    async (how) => {
      store('a')
      server.disturb(anyRequest, how, 3)
      const found = await untilDone(clock, client.get(CONFIG_MAPS, A))
      expect(found.metadata.name).toBe('a')
      expect(attempts('GET')).toBe(4)
    },
  )

  it('is not the fifth', async () => {
    server.disturb(anyRequest, { status: 500, message: 'etcd has no leader' }, Number.POSITIVE_INFINITY)
    const error = await untilDone(clock, failureOf(client.list(CONFIG_MAPS, { limit: 5 })))
    expect(error).toMatchObject({ status: 500, message: 'etcd has no leader' })
    expect(attempts('GET')).toBe(4)
  })

  it('is made ever later', async () => {
    const sleeps: number[] = []
    const noted: ManualClock = {
      ...clock,
      sleep(ms, signal) {
        if (ms < 30_000) sleeps.push(ms)
        return clock.sleep(ms, signal)
      },
    }
    const own = createClient({ connection: server.connection, clock: noted, random: () => 0.5 })
    server.disturb(anyRequest, { status: 500 }, 4)
    await untilDone(clock, failureOf(own.get(CONFIG_MAPS, A)))
    expect(sleeps).toEqual([300, 600, 1_200])
    await own.close()
  })

  it.each([['reset' as const], ['break' as const], [{ status: 500 }], [{ status: 503 }]])(
    'is not made for a write after %j, which may have happened',
    async (how) => {
      server.disturb(anyRequest, how)
      expect(await untilDone(clock, failureOf(client.create(CONFIG_MAPS, aConfigMap('a'))))).toBeInstanceOf(Error)
      expect(attempts('POST')).toBe(1)
    },
  )

  it('is made for a write that was not let in, no sooner than asked', async () => {
    server.disturb(anyRequest, { status: 429, headers: { 'retry-after': '7' } })
    const from = clock.now()
    await untilDone(clock, client.create(CONFIG_MAPS, aConfigMap('a')))
    expect(attempts('POST')).toBe(2)
    expect(clock.now() - from).toBe(7_000)
  })

  it('is not waited for when it would come too late', async () => {
    server.disturb(anyRequest, { status: 429, headers: { 'retry-after': '60' } })
    const error = await failureOf(client.get(CONFIG_MAPS, A))
    expect(error).toMatchObject({ status: 429, reason: 'TooManyRequests', retryAfterSeconds: 60 })
    expect(attempts('GET')).toBe(1)
  })
})

describe('the time limit', () => {
  it('ends a call that nobody answers', async () => {
    server.disturb(anyRequest, 'hang', 2)
    const usual = failureOf(client.get(CONFIG_MAPS, A))
    const short = failureOf(client.create(CONFIG_MAPS, aConfigMap('a'), { timeoutMs: 5_000 }))
    await untilSo(() => server.requests.length === 2)
    await clock.advance(5_000)
    expect((await short).message).toBe('create configmaps shop/a: no answer within 5 s')
    await clock.advance(25_000)
    expect((await usual).message).toBe('get configmaps shop/a: no answer within 30 s')
    expect(await usual).toBeInstanceOf(TransportError)
  })

  it('counts all attempts together', async () => {
    server.disturb(anyRequest, { status: 500 }, 2)
    server.disturb(() => server.requests.length > 2, 'hang')
    const call = failureOf(client.get(CONFIG_MAPS, A, { timeoutMs: 10_000 }))
    await untilSo(() => server.requests.length === 1)
    const from = clock.now()
    await untilDone(clock, call)
    expect((await call).message).toMatch(/no answer within 10 s/)
    expect(clock.now() - from).toBeLessThanOrEqual(10_000)
  })

  it('is for the beginning of a watch only', async () => {
    const stop = new AbortController()
    server.disturb(anyRequest, 'hang')
    const hanging = failureOf(readWatch({ signal: stop.signal }))
    await untilSo(() => server.requests.length === 1)
    await clock.advance(30_000)
    expect((await hanging).message).toBe('watch configmaps shop: no answer within 30 s')
    const quiet = readWatch({ signal: stop.signal }, 1)
    await untilSo(() => server.watches.length === 1)
    await clock.settle()
    await untilSo(() => clock.wakeTimes().length === 0)
    await clock.advance(3_600_000)
    store('a')
    expect((await quiet)[0]).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } })
  })

  it('gives way to the signal of the caller, also in the pause between two attempts', async () => {
    const stop = new AbortController()
    server.disturb(anyRequest, 'hang')
    const hanging = failureOf(client.get(CONFIG_MAPS, A, { signal: stop.signal }))
    await untilSo(() => server.requests.length === 1)
    server.disturb(anyRequest, { status: 500 })
    const pausing = failureOf(client.get(CONFIG_MAPS, A, { signal: stop.signal }))
    await untilSo(() => clock.wakeTimes().length === 3)
    const reason = new Error('stopped by the test')
    stop.abort(reason)
    expect(await hanging).toBe(reason)
    expect(await pausing).toBe(reason)
    expect(await failureOf(client.get(CONFIG_MAPS, A, { signal: stop.signal }))).toBe(reason)
    expect(clock.wakeTimes()).toEqual([])
  })
})

describe('a watch', () => {
  it('tells of contact: its beginning, and everything that comes', async () => {
    const stop = new AbortController()
    let contacts = 0
    const onContact = () => {
      contacts += 1
    }
    const options = { resourceVersion: '100', timeoutSeconds: 300, signal: stop.signal, onContact }
    const watch = failureOf(Array.fromAsync(client.watch(CONFIG_MAPS, options)))
    await untilSo(() => server.watches.length === 1 && contacts === 1)
    server.watches[0]!.bookmark()
    await untilSo(() => contacts === 2)
    stop.abort()
    await watch
  })

  it('is whole, however its bytes are cut', async () => {
    server.setPieceBytes(3)
    server.collection(CONFIG_MAPS).create(aConfigMap('a', { text: 'grüß dich, 世界 🦄' }))
    const [event] = await readWatch({ signal: AbortSignal.timeout(10_000) }, 1)
    expect(event!.object).toMatchObject({ data: { text: 'grüß dich, 世界 🦄' } })
  })

  it.each([
    ['reset in the middle of a line', (watch: FakeApiServer['watches'][number]) => watch.reset()],
    ['ended in the middle of a line', (watch: FakeApiServer['watches'][number]) => watch.end()],
    ['broken by a line that is none', (watch: FakeApiServer['watches'][number]) => watch.send('geheim\n')],
  ])('that is %s fails after what came whole', async (_, disturb) => {
    store('a')
    const seen: string[] = []
    const options = { resourceVersion: '100', timeoutSeconds: 300, signal: AbortSignal.timeout(10_000) }
    const reading = failureOf(
      (async () => {
        for await (const { object } of client.watch(CONFIG_MAPS, options)) seen.push(object.metadata.name)
      })(),
    )
    await untilSo(() => seen.length === 1)
    server.watches[0]!.send('{"type":"ADD')
    disturb(server.watches[0]!)
    const error = await reading
    expect(error).toBeInstanceOf(TransportError)
    expect(inspect(error)).not.toContain('geheim')
    expect(seen).toEqual(['a'])
  })

  it('that is refused fails with the refusal, and is not tried again', async () => {
    server.disturb(anyRequest, { status: 403, reason: 'Forbidden', message: 'configmaps is forbidden' })
    const error = await failureOf(readWatch({ signal: AbortSignal.timeout(10_000) }))
    expect(error).toMatchObject({ status: 403, message: 'configmaps is forbidden' })
    expect(server.requests).toHaveLength(1)
  })
})

describe('warnings of the API server', () => {
  it('are given on, each once', async () => {
    server.setWarning('299 - "v1beta1 is \\"deprecated\\"", 299 kube "second, with a comma"')
    await client.list(CONFIG_MAPS, { limit: 1 })
    await client.list(CONFIG_MAPS, { limit: 1 })
    expect(warnings).toEqual(['v1beta1 is "deprecated"', 'second, with a comma'])
  })
})

describe('requests are counted', () => {
  it('each attempt, by verb, method, server and outcome', async () => {
    const host = new URL(server.url).host
    server.disturb(anyRequest, 'reset')
    server.disturb(anyRequest, { status: 503 })
    await untilDone(clock, client.list(CONFIG_MAPS, { limit: 1 }))
    await client.create(CONFIG_MAPS, aConfigMap('a'))
    await readWatch({ signal: AbortSignal.timeout(10_000) }, 1)
    expect(counted.map((args) => args.slice(0, 4))).toEqual([
      ['list', 'GET', host, '<error>'],
      ['list', 'GET', host, '503'],
      ['list', 'GET', host, '200'],
      ['create', 'POST', host, '201'],
      ['watch', 'GET', host, '200'],
    ])
  })
})
