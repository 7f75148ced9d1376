/** The management API responds to any request with JSON and never with 500, with or without a valid credential. */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ERROR_CODES } from '../../../src/domain/errors.ts'
import { chooseSeed, type Random } from '../../support/random.ts'
import { mutateBytes, mutateJson, mutateTargetPart, mutateText, TEXTS } from './mutations.ts'
import { type Material, makeMaterial, type Operation, pickOperation } from './operations.ts'
import { METHODS, writeRequest } from './requests.ts'
import { fuzz } from './run.ts'
import { startWatchedApp, type WatchedApp } from './watched-app.ts'

const REQUESTS = 4_000
const CONTENT_TYPES = ['text/plain', 'application/json; charset=latin1', 'application/json;;', 'APPLICATION/JSON', 'multipart/form-data', ''] // biome-ignore format: a list
const UUIDS = [randomUUID(), '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']

let watched: WatchedApp
let material: Material
let token: string
beforeAll(async () => {
  // Without the dashboard, which responds to other paths with pages.
  watched = await startWatchedApp({ DASHBOARD: 'off' })
  material = await makeMaterial(watched.app)
  token = (await watched.app.client.post('/auth/login', watched.app.logIn, { key: null })).body.access_token
})
afterAll(() => watched.app.close())

/** Cursors of our form, of orders, times and ids that are none. */
function makeCursor(random: Random, usual: string): string {
  if (random.chance(0.3)) return mutateText(random, usual)
  const [list, text = ''] = usual.split('.')
  const bytes = Buffer.from(text, 'base64url')
  const time = random.pick(['0', '1', '9999999999999999', '99999999999999999999', '-1', '1.5', 'NaN', ''])
  const id = random.pick([...UUIDS, ...TEXTS, null, 0, -1, 1e15])
  const parts = (): unknown[] => JSON.parse(bytes.toString())
  const made = random.pick([
    () => mutateBytes(random, bytes),
    () => Buffer.from(`${time}.${id}`),
    () => (list === 'checks' ? Buffer.from(JSON.stringify(parts().map((part) => random.pick([part, id])))) : bytes),
  ])()
  return `${list}.${made.toString('base64url')}`
}

function makeTarget(random: Random, { path, query = {} }: Operation): string {
  const parts = path.map((part) => {
    if (random.chance(0.03)) return random.pick(UUIDS)
    return random.chance(0.04) ? mutateTargetPart(random, part) : part
  })
  const parameters = Object.entries(query).flatMap(([name, usual]) => {
    if (random.chance(0.2)) return []
    const value = name === 'cursor' && random.chance(0.6) ? makeCursor(random, usual) : usual
    const pair = `${name}=${random.chance(0.15) ? mutateTargetPart(random, value) : encodeURIComponent(value.slice(0, 5_000).toWellFormed())}`
    return random.chance(0.03) ? [pair, pair] : [pair]
  })
  if (random.chance(0.05)) parameters.push(mutateTargetPart(random, 'x=y'))
  const prefix = random.chance(0.02) ? random.pick(['http://x', 'http://[', '/', '/..']) : ''
  const end = random.chance(0.03) ? '/' : ''
  return `${prefix}/api/v1/${parts.join('/')}${end}${parameters.length > 0 ? '?' : ''}${parameters.join('&')}`
}

function makeCredential(random: Random): string[] {
  if (random.chance(0.85)) return [`Authorization: Bearer ${random.chance(0.8) ? watched.app.apiKey : token}`]
  const latin1 = (text: string) =>
    Buffer.from(text)
      .toString('latin1')
      .replaceAll(/[\r\n\0]/g, ' ')
      .slice(0, 5_000)
  const [head, , signature] = token.split('.')
  const claims = Buffer.from(random.pick(['{"sub":"x"}', '{}', 'null', 'x'])).toString('base64url')
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  return random.pick([
    () => [],
    () => [`authorization: bearer ${watched.app.apiKey}`],
    () => [`Authorization: Basic ${watched.app.apiKey}`],
    () => [`Authorization: Bearer  ${watched.app.apiKey} `],
    () => [`Authorization: ${latin1(random.pick(TEXTS))}`],
    () => [`Authorization: Bearer ${latin1(mutateText(random, watched.app.apiKey))}`],
    () => [`Authorization: Bearer ${latin1(mutateText(random, token))}`],
    () => [`Authorization: Bearer ${head}.${claims}.${signature}`],
    () => [`Authorization: Bearer ${none}.${claims}.`],
    () => [`Authorization: Bearer ${random.pick(material.refreshTokens)}`],
    () => [`Authorization: Bearer x`, `Authorization: Bearer ${watched.app.apiKey}`],
  ])()
}

function makeHeaders(random: Random, hasBody: boolean): string[] {
  const type = random.chance(0.93) ? 'application/json' : random.pick(CONTENT_TYPES)
  return [
    ...makeCredential(random),
    ...(hasBody || random.chance(0.1) ? [`Content-Type: ${type}`] : []),
    ...(random.chance(0.03) ? [`Content-Encoding: ${random.pick(['gzip', 'identity', ''])}`] : []),
    ...(random.chance(0.03) ? ['Expect: 100-continue'] : []),
    ...(random.chance(0.05) ? [`Connection: ${random.pick(['close', 'Upgrade', 'Authorization'])}`] : []),
    ...(random.chance(0.05) ? [`X-HTTP-Method-Override: DELETE`, `X-Forwarded-For: ${random.word(20)}`] : []),
    ...(random.chance(0.05) ? [`Accept: ${random.pick(['text/html', 'application/xml', ';;', '*/*;q=0'])}`] : []),
  ]
}

function makeBody(random: Random, body: unknown): Buffer | null {
  if (body === undefined) return random.chance(0.1) ? mutateJson(random, { any: 'thing' }) : null
  if (random.chance(0.03))
    return random.chance(0.5) ? null : Buffer.alloc(random.pick([0, 65_536, 65_537, 200_000]), ' ')
  return mutateJson(random, body)
}

it('the management API responds to every random request without 500, and still works afterwards', {
  timeout: 120_000,
}, async () => {
  const statuses = await fuzz({
    url: new URL(watched.app.apiUrl).origin,
    seed: chooseSeed(),
    requests: REQUESTS,
    make(random) {
      const operation = pickOperation(random, material)
      const method = random.chance(0.95) ? operation.method : random.pick(METHODS)
      const body = makeBody(random, operation.body)
      const headers = makeHeaders(random, body !== null)
      return writeRequest(random, { method, target: makeTarget(random, operation), headers, body })
    },
    judge({ status, text, headers }, method) {
      expect(status).toBeLessThan(500)
      if (method === 'HEAD' || status === 204) return
      expect(headers['content-type']).toBe('application/json; charset=utf-8')
      const body = JSON.parse(text)
      // The API of healthchecks has no codes.
      if (status >= 400)
        expect(body).toEqual({
          error: expect.stringMatching(/./),
          ...('code' in body ? { code: expect.toBeOneOf([...ERROR_CODES]) } : {}),
          ...('details' in body || ('code' in body && status === 400) ? { details: expect.any(Array) } : {}),
        })
    },
  })
  for (const status of [200, 201, 202, 204, 400, 401, 404, 405, 409, 413, 415]) {
    expect(statuses.get(status), `none was ${status}`).toBeGreaterThan(0)
  }

  await watched.expectWell()
  for (const list of [
    `/checks?project_id=${watched.app.projectId}`,
    '/projects',
    '/api-keys',
    '/users',
    '/channels',
    '/deliveries',
  ]) {
    expect((await watched.app.client.get(list)).status, list).toBe(200)
  }
})
