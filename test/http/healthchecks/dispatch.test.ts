import { beforeAll, describe, expect, it } from 'vitest'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { addProject, callerOf, type Project } from './support.ts'

let project: Project
let other: Project
let foreign: Project
let uuid: string
const seen: string[] = []

const api = use(() => startTestApi({ onRequest: (route, method, status) => seen.push(`${method} ${route} ${status}`) }))
const call = callerOf(api, () => project.keys.write)
beforeAll(async () => {
  project = await addProject(api)
  other = await addProject(api)
  foreign = await addProject(api, await api.addOrganization())
  uuid = (await call('POST', 'v3/checks/', { json: { name: 'A' } })).body.uuid
})

/** Each call of the table. A unique key of 40 digits finds nothing, which is as good here. */
const CALLS = [
  ['GET', 'checks/', 'read'],
  ['POST', 'checks/', 'write'],
  ['GET', 'checks/{uuid}', 'read'],
  ['POST', 'checks/{uuid}', 'write'],
  ['POST', 'checks/{uuid}/pause', 'write'],
  ['POST', 'checks/{uuid}/resume', 'write'],
  ['GET', 'checks/{uuid}/pings/', 'write'],
  ['GET', 'checks/{uuid}/pings/1/body', 'write'],
  ['GET', 'checks/{uuid}/flips/', 'read'],
  ['GET', 'checks/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'read'],
  ['GET', 'checks/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/flips/', 'read'],
  ['GET', 'channels/', 'write'],
  ['GET', 'badges/', 'read'],
  ['DELETE', 'checks/{uuid}', 'write'],
] as const
const pathOf = (path: string, version = 3) => `v${version}/${path.replace('{uuid}', uuid)}`
const error = (text: string | RegExp) => ({ error: text instanceof RegExp ? expect.stringMatching(text) : text })

describe('credentials', () => {
  it.each(CALLS)('%s %s needs a key that is right, with the scope, bound to a project', async (method, path, scope) => {
    for (const version of [1, 2, 3]) {
      const at = pathOf(path, version)
      expect(await call(method, at, { key: '' })).toMatchObject({ status: 401, body: error('missing api key') })
      expect(await call(method, at, { key: 'x'.repeat(32) })).toMatchObject({
        status: 401,
        body: error('wrong api key'),
      })
      expect(await call(method, at, { key: `${project.keys.write}x` })).toMatchObject({ status: 401 })
      expect(await call(method, at, { key: api.keys.admin })).toMatchObject({
        status: 403,
        body: error(/bound to a project/),
      })
      if (scope === 'write') expect((await call(method, at, { key: project.keys.read })).status).toBe(403)
    }
  })

  it('takes no token of a person', async () => {
    const { access_token } = (await api.client.post('/auth/login', api.admin)).body
    expect((await call('GET', 'v3/checks/', { key: access_token })).status).toBe(401)
  })

  it('takes the key from the body of a POST', async () => {
    const json = { api_key: project.keys.write, name: 'By body' }
    for (const version of [1, 2, 3]) {
      expect((await call('POST', `v${version}/checks/`, { key: null, json })).status).toBe(201)
      expect((await call('POST', pathOf('checks/{uuid}/pause', version), { key: null, json })).status).toBe(200)
    }
    expect((await call('POST', 'v1/checks/', { key: null, json: { api_key: 5 } })).body).toEqual(error('wrong api key'))
    expect((await call('POST', 'v3/checks/', { key: null, json: { api_key: 'hbk_\u0000' } })).status).toBe(401)
    // The header comes first.
    expect((await call('POST', 'v3/checks/', { key: 'wrong', json })).status).toBe(401)
  })

  it('counts calls for the rate limit of the organization', async () => {
    const { headers } = await call('GET', 'v3/checks/')
    expect(Number(headers.get('ratelimit-remaining'))).toBeGreaterThan(0)
  })
})

describe('borders', () => {
  it.each(CALLS.filter(([, path]) => path.includes('{uuid}')))(
    '%s %s finds no check of another project or organization',
    async (method, path) => {
      for (const { keys } of [other, foreign])
        expect(
          await call(method, pathOf(path), { key: keys.write, ...(method === 'POST' ? { json: {} } : {}) }),
        ).toMatchObject({ status: 404, body: error('check not found') })
    },
  )

  it('lists nothing of another project', async () => {
    expect((await call('GET', 'v3/checks/', { key: other.keys.write })).body).toEqual({ checks: [] })
    expect(Object.keys((await call('GET', 'v3/badges/', { key: other.keys.write })).body.badges)).toEqual(['*'])
  })
})

describe('our own API', () => {
  const ours = async (method: string, path: string, init: RequestInit = {}) => {
    const response = await fetch(api.url + path, { method, ...init })
    return { status: response.status, body: await response.text() }
  }

  it.each([
    ['GET', '/checks/', undefined],
    ['POST', '/checks/', '{"name":"x"}'],
    ['POST', '/checks/', '{'],
    ['POST', '/checks/', 'x'.repeat(70_000)],
    ['GET', '/checks/6f3d3b52-6b36-4f8a-8a4b-0d9af4bb0c3f', undefined],
    ['POST', '/checks/6f3d3b52-6b36-4f8a-8a4b-0d9af4bb0c3f', '{}'],
    ['PUT', '/checks/6f3d3b52-6b36-4f8a-8a4b-0d9af4bb0c3f', '{}'],
    ['GET', '/channels/', undefined],
    ['GET', '/status/', undefined],
  ])('%s %s without a key of healthchecks is its own', async (method, path, body) => {
    const { status, body: text } = await ours(method, path, body === undefined ? {} : { body })
    expect([401, 404, 405]).toContain(status)
    expect(text).not.toContain('api key"')
  })

  it('responds with its own list and its own check to its own credential, also with an api_key in a body', async () => {
    const headers = { authorization: `Bearer ${api.keys.admin}`, 'content-type': 'application/json' }
    const list = await ours('GET', `/checks/?project_id=${project.id}`, { headers })
    expect(JSON.parse(list.body).checks[0]).toHaveProperty('id')
    const made = { project_id: project.id, name: 'Ours', api_key: 'x' }
    expect(await ours('POST', '/checks/', { headers, body: JSON.stringify(made) })).toMatchObject({
      status: 400,
      body: expect.stringContaining('api_key is not a known field'),
    })
  })

  it('responds on every other path, whatever the header', async () => {
    const headers = { 'x-api-key': project.keys.write, authorization: `Bearer ${project.keys.write}` }
    expect((await ours('GET', '/me', { headers })).status).toBe(200)
    expect((await ours('GET', `/checks?project_id=${project.id}`, { headers })).body).toContain('"id"')
    expect((await ours('PUT', `/checks/${uuid}`, { headers })).status).not.toBe(200)
    expect((await ours('GET', '/openapi.json', { headers })).status).toBe(200)
  })
})

describe('a list without the slash at the end of its address', () => {
  const LISTS = CALLS.filter(([, path]) => path.endsWith('/')).map(([method, path]) => [method, path.slice(0, -1)])
  LISTS.push(['GET', 'status'], ['HEAD', 'status'], ['PUT', 'checks'])

  it.each(LISTS)('leads to the address with it, in each version: %s %s', async (method, path) => {
    for (const version of [1, 2, 3]) {
      const at = `/api/${pathOf(path, version)}`
      const init = { method, headers: { 'x-api-key': 'x' }, redirect: 'manual' } as const
      const { status, headers } = await fetch(new URL(`${at}?slug=a&tag=%20`, api.url), init)
      expect([status, headers.get('location')], at).toEqual([301, `${at}/?slug=a&tag=%20`])
    }
  })

  it('is read by a client that follows', async () => {
    for (const version of [1, 2, 3]) {
      const { status, body } = await call('GET', `v${version}/checks?slug=a`)
      expect([status, body.checks.length]).toEqual([200, 1])
    }
  })

  it('is one of ours in version 1 with a credential of ours, or without a key of theirs', async () => {
    const own = { authorization: `Bearer ${project.keys.write}` }
    for (const headers of [own, { ...own, 'x-api-key': project.keys.write }]) {
      const response = await fetch(`${api.url}/checks?project_id=${project.id}`, { headers, redirect: 'manual' })
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"id"')])
    }
    for (const path of ['/checks', '/channels', `/checks/${uuid}/pings`])
      expect((await fetch(api.url + path, { redirect: 'manual' })).status).toBe(401)
    expect((await call('POST', 'v1/checks', { key: null, json: { api_key: 'x' } })).status).toBe(401)
  })
})

describe('versions 2 and 3', () => {
  it('are without our own API', async () => {
    expect(await call('GET', 'v3/checks/', { key: null })).toMatchObject({
      status: 401,
      body: error('missing api key'),
    })
    expect((await call('GET', 'v4/checks/')).status).toBe(404)
    expect((await call('GET', 'v3/checks', { key: null })).status).toBe(404)
    for (const path of ['v3/me', 'v3/checks/not-a-uuid']) {
      const { status, body } = await call('GET', path)
      expect([status, body]).toEqual([404, error(/^not found/)])
    }
    const { status, headers } = await call('PUT', 'v3/checks/')
    expect([status, headers.get('allow')]).toEqual([405, 'GET, POST'])
  })

  it('say that the database responds, also without a key and to probes that ask for headers only', async () => {
    expect(await call('HEAD', 'v2/status/', { key: null })).toMatchObject({ status: 200, body: '' })
    expect((await call('HEAD', 'v1/status/')).status).toBe(200)
    const { status, headers } = await call('POST', 'v3/status/', { key: null })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD'])
    expect(await call('GET', 'v3/status/', { key: null })).toMatchObject({ status: 200, body: 'OK' })
    expect(await call('GET', 'v1/status/')).toMatchObject({ status: 200, body: 'OK' })
  })
})

it('no response has a header for other origins', async () => {
  const { headers } = await call('GET', 'v3/checks/')
  expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
})

it('metrics and logs see patterns, never the path', async () => {
  seen.length = 0
  await call('GET', `v2/checks/${uuid}`)
  await call('GET', `v3/checks/${uuid}/pings/12/body`)
  expect(seen.map((line) => line.replace(/ \d+$/, ''))).toEqual([
    'GET /healthchecks/checks/{uuid}',
    'GET /healthchecks/checks/{uuid}/pings/{n}/body',
  ])
})
