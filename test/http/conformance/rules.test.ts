/**
 * docs/reference/interface.md, section by section and row by row: what a client that knows only that document relies on. Each title
 * begins with the section. What the document leaves open is tested elsewhere.
 * Sections 5 to 9.
 */

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createApiKey } from '../../../src/tenancy/api-keys.ts'
import type { Answer } from '../../support/api-client.ts'
import { startTestApp } from '../../support/app.ts'
import { addTenant, anAdmin } from '../../support/tenant.ts'
import { aMessage, LONGEST_MS, useClient } from './client.ts'

const { app, call, ping, aCheck, lastPing } = useClient()

const ENDPOINTS: [method: string, path: string][] = [
  ['GET', '/checks'],
  ['POST', '/checks'],
  ['GET', '/checks/{id}'],
  ['PUT', '/checks/{id}'],
  ['DELETE', '/checks/{id}'],
  ['PATCH', '/checks/{id}/pause'],
  ['PATCH', '/checks/{id}/resume'],
  ['GET', '/checks/{id}/pings'],
]

/** A request that is right in all but, perhaps, its credential: null for none. */
function callEndpoint([method, path]: [string, string], id: string, authorization: string | null): Promise<Answer> {
  const query = method === 'GET' && path === '/checks' ? `?project_id=${app.projectId}` : ''
  const bodies: Record<string, unknown> = { POST: { project_id: app.projectId, name: 'Any' }, PUT: { name: 'Any' } }
  const headers: Record<string, string> = authorization === null ? {} : { authorization }
  return app.client.call(method, path.replace('{id}', id) + query, { json: bodies[method], key: null, headers })
}

describe('5. Authentication', () => {
  let jwt: string
  beforeAll(async () => {
    jwt = (await app.client.post('/auth/login', app.logIn, { key: null })).body.access_token
    expect(jwt).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
  })

  it.each(ENDPOINTS)('5: %s %s requires the header Authorization', async (...endpoint) => {
    const { id } = await aCheck()
    for (const authorization of [null, 'Bearer nonsense', `Basic ${app.apiKey}`]) {
      const { status, body } = await callEndpoint(endpoint, id, authorization)
      expect({ status, body }).toEqual({ status: 401, body: aMessage })
    }
    expect((await call('GET', `/checks/${id}`)).body.name).not.toBe('Any')
  })

  it.each(ENDPOINTS)('5: %s %s takes an API key and a JWT, which is obtained via login', async (...endpoint) => {
    for (const credential of [app.apiKey, jwt]) {
      const { id } = await aCheck()
      expect((await callEndpoint(endpoint, id, `Bearer ${credential}`)).status).toBeLessThan(300)
    }
  })

  it('5: ping endpoints use no credential header, and one that is sent does no harm', async () => {
    const { publicId } = await aCheck()
    expect(await ping(publicId)).toBe(200)
    expect(await ping(publicId, '', { headers: { Authorization: 'Bearer nonsense' } })).toBe(200)
  })
})

describe('7. Errors', () => {
  it.each([
    ['authentication failure', () => app.client.get('/me', { key: null })],
    ['validation', () => call('POST', '/checks', { project_id: app.projectId })],
    ['validation of the query', () => call('GET', `/checks?project_id=${app.projectId}&limit=x`)],
    ['an unknown check', () => call('GET', `/checks/${randomUUID()}`)],
    ['an unknown path', () => call('GET', '/nowhere')],
    ['an unknown method', () => call('DELETE', '/checks')],
    ['a conflict', () => call('DELETE', `/projects/${app.projectId}`)],
  ])('7: %s is returned as JSON with a string field error holding a message', async (_, send) => {
    const { status, headers, body } = await send()
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(headers.get('content-type')).toMatch(/^application\/json/)
    expect(body).toMatchObject(aMessage)
  })
})

describe('8. Limits', () => {
  const times = <T>(count: number, send: () => Promise<T>) => {
    const results: T[] = []
    const worker = async () => {
      while (count-- > 0) results.push(await send())
    }
    return Promise.all(Array.from({ length: 20 }, worker)).then(() => results)
  }

  it('8: the ping API rate is unlimited', async () => {
    const { publicId } = await aCheck()
    expect(new Set(await times(1_500, () => ping(publicId)))).toEqual(new Set([200]))
  })

  it('8 and 1: the management API takes 1000 requests per minute, counted per organization', async () => {
    await using own = await startTestApp()
    const { body: second } = await own.client.post('/api-keys', { name: 'Second', scope: 'admin' })
    // Not a list, of which an organization reads one at a time.
    const get = async (key: string) => {
      const response = await fetch(`${own.apiUrl}/me`, { headers: { authorization: `Bearer ${key}` } })
      await response.arrayBuffer()
      return response.status
    }
    expect(new Set(await times(999, () => get(Math.random() < 0.5 ? own.apiKey : second.key)))).toEqual(new Set([200]))
    for (const key of [own.apiKey, second.key]) expect(await get(key)).toBe(429)
    const { organizationId } = await addTenant(own)
    const other = await createApiKey({ database: own.database, clock: systemClock }, anAdmin(organizationId), {
      name: 'Other',
      scope: 'read',
    })
    expect(await get(other.key), 'another organization').toBe(200)
    expect((await fetch(`${own.pingUrl}/ping/${randomUUID()}`)).status, 'pings are not counted').toBe(404)
  })

  it('8: the ping body size is 10 KB at most, 413 when exceeded', async () => {
    const { publicId } = await aCheck()
    expect(await ping(publicId, '', { method: 'POST', body: 'x'.repeat(10_240) })).toBe(200)
    expect(await ping(publicId, '', { method: 'POST', body: 'x'.repeat(10_241) })).toBe(413)
  })

  it.each([0, 1, LONGEST_MS])('8: a duration of %s ms is within the limits', async (ms) => {
    const { id, publicId } = await aCheck()
    await ping(publicId, `?duration=${ms}`)
    expect((await lastPing(id)).duration_ms).toBe(ms)
  })

  it('8: exit codes are 0 to 255', async () => {
    const { id, publicId } = await aCheck()
    for (const exitCode of [0, 1, 127, 254, 255]) {
      expect(await ping(publicId, `/${exitCode}`)).toBe(200)
      expect((await lastPing(id)).exit_code).toBe(exitCode)
    }
  })
})

describe('9. Versioning', () => {
  it('9: the management API carries the version in its path prefix, the ping endpoints carry none', async () => {
    const { publicId } = await aCheck()
    const headers = { authorization: `Bearer ${app.apiKey}` }
    expect((await fetch(app.apiUrl.replace('/api/v1', '/api/checks'), { headers })).status).toBe(404)
    expect((await fetch(`${app.pingUrl}/api/v1/ping/${publicId}`)).status).toBe(404)
    expect(await ping(publicId)).toBe(200)
  })
})
