/** The ping API does what /openapi.json says of it, with the same texts. */

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { use } from '../../support/use.ts'

type Content = Record<string, { example: unknown }>
interface Operation {
  readonly parameters: readonly { name: string; in: string; example: unknown }[]
  readonly responses: Record<string, { headers: Record<string, unknown>; content: Content }>
}

let publicId: string
let paths: Record<string, { servers: { url: string }[]; get: Operation; post: Operation }>

const app = use(startTestApp)
beforeAll(async () => {
  publicId = (await app.createCheck()).publicId
  paths = (await app.client.get('/openapi.json', { key: null })).body.paths
})

const SIGNALS = ['', '/start', '/fail', '/warn', '/log', '/{exit_code}'].map((signal) => `/ping/{public_id}${signal}`)

function send(path: string, method: 'get' | 'post', init: RequestInit = {}): Promise<Response> {
  const { servers, [method]: operation } = paths[path]!
  const given = ({ name, example }: { name: string; example: unknown }) =>
    name === 'public_id' ? publicId : String(example)
  const named = (place: string) => operation.parameters.filter((parameter) => parameter.in === place)
  const filled = named('path').reduce((text, one) => text.replace(`{${one.name}}`, given(one)), path)
  const query = new URLSearchParams(named('query').map((one) => [one.name, given(one)]))
  const headers = { ...Object.fromEntries(named('header').map((one) => [one.name, given(one)])), ...init.headers }
  return fetch(`${servers[0]!.url}${filled}?${query}`, { method, ...init, headers })
}

describe('the ping API in the document', () => {
  it('has a path for each signal, on the server of the pings', () => {
    expect(Object.keys(paths).filter((path) => path.startsWith('/ping/'))).toEqual(SIGNALS)
    for (const path of SIGNALS) expect(paths[path]!.servers.map(({ url }) => url)).toEqual([app.pingUrl])
  })

  it.each(SIGNALS.flatMap((path) => [['get', path] as const, ['post', path] as const]))(
    '%s %s accepts its examples without a warning',
    async (method, path) => {
      const response = await send(path, method, method === 'post' ? { body: 'text' } : {})
      const { headers, content } = paths[path]![method].responses[200]!
      expect([response.status, await response.text()]).toEqual([200, content['text/plain']!.example])
      expect(response.headers.get('Ping-Warning')).toBeNull()
      expect(Object.keys(headers)).toEqual(['Ping-Body-Limit', 'Ping-Warning', 'Ping-Stored'])
      expect(response.headers.has('Ping-Body-Limit')).toBe(true)
    },
  )

  const LARGE = { body: 'x'.repeat(10_241) }
  const COMPRESSED = { body: 'x', headers: { 'content-encoding': 'gzip' } }
  it.each<[number, string, string, string, RequestInit]>([
    [404, '/ping/{public_id}', 'an unknown check', `/ping/${randomUUID()}`, {}],
    [400, '/ping/{public_id}/{exit_code}', 'an exit code that is none', '/ping/$/256', {}],
    [413, '/ping/{public_id}', 'a large body', '/ping/$', LARGE],
    [415, '/ping/{public_id}', 'a compressed body', '/ping/$', COMPRESSED],
  ])('%i of %s: %s has the text of the example', async (status, path, _, target, init) => {
    const { content } = paths[path]!.post.responses[status]!
    const url = `${app.pingUrl}${target.replace('$', publicId)}`
    const text = await fetch(url, { method: 'POST', ...init })
    expect([text.status, await text.text()]).toEqual([status, content['text/plain']!.example])
    const json = await fetch(url, { method: 'POST', ...init, headers: { ...init.headers, accept: 'application/json' } })
    expect([json.status, await json.json()]).toEqual([status, content['application/json']!.example])
  })
})
