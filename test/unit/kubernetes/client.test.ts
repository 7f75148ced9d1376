import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { ApiError, hasStatus, TransportError } from '../../../src/kubernetes/errors.ts'
import { CONFIG_MAPS, type SeenRequest } from '../../support/fake-api-server.ts'
import {
  A,
  aConfigMap,
  anyRequest,
  CHECKS,
  client,
  clientOf,
  clock,
  counted,
  failureOf,
  readWatch,
  SECRETS,
  server,
  store,
  useFakeServer,
  warnings,
} from './calling.ts'
import { untilDone } from './until-done.ts'

useFakeServer()

const lastRequest = () => {
  const { method, path, query, headers, body }: SeenRequest = server.requests.at(-1)!
  const type = headers['content-type']
  return { method, path, query: String(query), ...(type && { type }), ...(body && { body: JSON.parse(body) }) }
}

describe('each verb is sent as the API server wants it', () => {
  it('read verbs are sent as the API server expects them', async () => {
    store('a')
    await client.get(CONFIG_MAPS, A)
    expect(lastRequest()).toEqual({ method: 'GET', path: '/api/v1/namespaces/shop/configmaps/a', query: '' })
    const options = { namespace: 'shop', limit: 5, labelSelector: 'a=b,c' }
    await client.list(CONFIG_MAPS, options)
    expect(lastRequest()).toEqual({
      method: 'GET',
      path: '/api/v1/namespaces/shop/configmaps',
      query: 'limit=5&labelSelector=a%3Db%2Cc',
    })
    await client.list(CHECKS)
    expect(lastRequest()).toEqual({ method: 'GET', path: '/apis/example.com/v1/checks', query: '' })
    await failureOf(client.get(CONFIG_MAPS, { namespace: 'shop', name: 'a/../../secrets/b' }))
    expect(lastRequest().path).toBe('/api/v1/namespaces/shop/configmaps/a%2F..%2F..%2Fsecrets%2Fb')
  })

  it('write verbs are sent as the API server expects them', async () => {
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
    await client.delete(CONFIG_MAPS, A, { uid: found.metadata.uid })
    expect(lastRequest()).toEqual({
      method: 'DELETE',
      path,
      query: '',
      body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: found.metadata.uid } },
      ...json,
    })
  })

  it('a watch always asks for bookmarks', async () => {
    store('a')
    await readWatch({ signal: AbortSignal.timeout(10_000) }, 1)
    expect(lastRequest()).toEqual({
      method: 'GET',
      path: '/api/v1/namespaces/shop/configmaps',
      query: 'watch=1&allowWatchBookmarks=true&resourceVersion=100&timeoutSeconds=300',
    })
  })

  it('raw returns text when the response is not JSON', async () => {
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
    expect(hasStatus(error, 403, 404)).toBe(true)
    expect(hasStatus(error, 409)).toBe(false)
    expect(hasStatus(new Error('NotFound'), 404)).toBe(false)
  })

  it('a rejection that is not a Status is described by its code', async () => {
    server.disturb(anyRequest, { status: 403, text: '<html>geheim</html>' })
    const error = await failureOf(client.get(CONFIG_MAPS, A))
    expect(error).toMatchObject({ status: 403, reason: 'Forbidden', details: null })
    expect(error.message).toBe('the server responded 403 to: get configmaps shop/a')
  })

  it('is not a list, nor is anything else that is none: it would look as if all were deleted', async () => {
    for (const json of [{}, { metadata: { resourceVersion: '7' } }, { items: [] }, { kind: 'Status', items: {} }]) {
      server.disturb(anyRequest, { status: 200, json })
      const error = await failureOf(client.list(CONFIG_MAPS))
      expect(error).toBeInstanceOf(TransportError)
      expect(error.message).toMatch(/did not send the list/)
    }
    server.disturb(anyRequest, { status: 200, json: { metadata: { resourceVersion: '7' }, items: null } })
    expect(await client.list(CONFIG_MAPS)).toEqual({ items: [], resourceVersion: '7', continueToken: null })
  })

  it.each([
    ['a page of a proxy', { status: 200, text: '<html>geheim</html>' }, /sent text\/html instead of JSON/],
    ['half an answer', 'break' as const, /no response from 127\.0\.0\.1:\d+: /],
    ['no answer', 'reset' as const, /^create secrets shop\/a: no response from 127\.0\.0\.1:\d+: /],
  ])('is not %s: then it is unknown what happened, and no error shows a Secret', async (_, how, expected) => {
    server.disturb(anyRequest, how)
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: A, data: { url: 'Z2VoZWlt' } }
    const error = await failureOf(client.create(SECRETS, secret))
    expect(error).toBeInstanceOf(TransportError)
    expect(error.message).toMatch(expected)
    expect(inspect(error, { depth: 10 })).not.toMatch(/geheim|Z2VoZWlt/)
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
