/** What stands around every call: the rate limit, our own faults, the log, the metrics, the stop. */

import { describe, expect, it } from 'vitest'
import { unavailable } from '../../../src/domain/errors.ts'
import { CLIENT_LEFT } from '../../../src/http/middleware/errors.ts'
import type { OnRequest } from '../../../src/http/middleware/observe.ts'
import type { Log } from '../../../src/runtime/log.ts'
import { openConnection, writeHead } from '../../support/http.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

interface Line {
  readonly level: string
  readonly fields: Record<string, unknown>
  readonly message: string
}

function createLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = []
  const at = (level: string) => (fields: object, message: string) =>
    lines.push({ level, fields: { ...fields }, message })
  return {
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } as unknown as Log,
    lines,
  }
}

describe('the rate limit', () => {
  const api = use(() => startTestApi({ rateLimitPerMinute: 5 }))
  const other = use(() => api.addOrganization())

  it('counts the calls of an organization over all its keys, whatever their status, but no calls without a credential', async () => {
    const left = async (path: string, key: string) => {
      const { status, headers } = await api.client.get(path, { key })
      expect(headers.get('ratelimit-limit')).toBe('5')
      expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThan(0)
      expect(Number(headers.get('ratelimit-reset'))).toBeLessThanOrEqual(60)
      return [status, headers.get('ratelimit-remaining'), headers.get('retry-after')]
    }
    // The last of the five calls is for admins.
    expect(await left('/me', api.keys.admin)).toEqual([200, '4', null])
    expect(await left('/users', api.keys.read)).toEqual([403, '2', null])
    expect(await left('/checks/1', api.keys.write)).toEqual([404, '1', null])
    expect(await left('/checks', api.keys.write)).toEqual([400, '0', null])
    expect(await left('/me', api.keys.admin)).toEqual([200, '0', null])

    for (const [scope, key] of Object.entries(api.keys)) {
      const { status, headers, body } = await api.client.get('/me', { key })
      expect([status, headers.get('ratelimit-remaining')]).toEqual([429, '0'])
      const seconds = headers.get('retry-after')
      expect(seconds).toMatch(/^[1-9]\d?$/)
      const rest = scope === 'admin' ? '' : ' (the last tenth is for callers with the scope admin)'
      expect(body).toEqual({
        error: `more than 5 calls in a minute for this organization${rest}; try again in ${seconds} s`,
        code: 'too_many_requests',
      })
    }
    expect((await api.client.get('/me', { key: other.keys.read })).status).toBe(200)
    expect((await api.client.get('/me', { key: null })).status).toBe(401)
    expect((await api.client.get('/openapi.json', { key: null })).headers.get('ratelimit-limit')).toBeNull()
    expect((await api.client.post('/auth/login', api.admin, { key: null })).status).toBe(200)
  })
})

describe('an error of the service', () => {
  it('gets a fixed text, and is logged once with the request', async () => {
    const { log, lines } = createLog()
    await using api = await startTestApi({ log })
    await api.database.query('alter table projects rename to elsewhere')
    lines.length = 0
    const { status, headers, body } = await api.client.get('/projects')
    expect({ status, body }).toEqual({ status: 500, body: { error: 'internal error', code: 'internal' } })
    expect(lines.map(({ level }) => level)).toEqual(['error', 'debug'])
    expect(lines[0]!.fields).toMatchObject({
      requestId: headers.get('x-request-id'),
      route: '/api/v1/projects',
      error: { code: '42P01' },
    })
  })

  it('of the database is 503 with Retry-After', async () => {
    const { log, lines } = createLog()
    const cause = new Error('connect ECONNREFUSED')
    await using api = await startTestApi({ log, authenticate: () => Promise.reject(unavailable(cause)) })
    lines.length = 0
    const { status, headers, body } = await api.client.get('/me')
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
    expect(body.error).toMatch(/try again/)
    expect(JSON.stringify(body)).not.toContain('ECONNREFUSED')
    expect(lines.map(({ level, fields }) => [level, fields.error])).toEqual([
      ['warn', cause],
      ['debug', undefined],
    ])
  })
})

describe('a client that leaves in the middle of its request', () => {
  it('is not logged as an error', async () => {
    const { log, lines } = createLog()
    const left = Promise.withResolvers<number>()
    await using api = await startTestApi({
      log,
      onRequest: (route, _, status) => route === '/api/v1/projects' && left.resolve(status),
    })
    lines.length = 0
    const connection = openConnection(api.url)
    const headers = [
      `Authorization: Bearer ${api.keys.admin}`,
      'Content-Type: application/json',
      'Expect: 100-continue',
      'Content-Length: 13',
    ]
    connection.send(writeHead('POST', '/api/v1/projects', ...headers))
    expect((await connection.receive('POST')).status).toBe(100)
    connection.send('{"name"')
    connection.socket.resetAndDestroy()
    expect(await left.promise).toBe(CLIENT_LEFT)
    expect(new Set(lines.map(({ level }) => level))).toEqual(new Set(['debug']))
    expect((await api.client.get('/me')).status).toBe(200)
  })
})

describe('the log and the metrics of a request', () => {
  it('hold its route and its outcome, never its path, its query or its credential', async () => {
    const seen: Parameters<OnRequest>[] = []
    const { log, lines } = createLog()
    await using api = await startTestApi({ log, onRequest: (...request) => seen.push(request) })
    const secret = '4a1c3bd2-52a5-4a07-9d4b-0d6f4f8f7a11'
    seen.length = 0
    lines.length = 0
    await api.client.get(`/checks/${secret}`)
    await api.client.call('HEAD', `/me?x=${secret}`)
    await api.client.get(`/${secret}`)
    await api.client.post('/checks', {}, { key: `hbk_${secret}` })
    expect(seen.map(([route, method, status]) => [route, method, status])).toEqual([
      ['/api/v1/checks/{id}', 'GET', 404],
      ['/api/v1/me', 'HEAD', 200],
      ['unmatched', 'GET', 404],
      ['/api/v1/checks', 'POST', 401],
    ])
    for (const [, , , ms] of seen) expect(ms).toBeGreaterThan(0)
    expect(lines).toHaveLength(4)
    expect(JSON.stringify(lines)).not.toContain(secret)
    expect(JSON.stringify(lines)).not.toContain(api.keys.admin)
  })
})

describe('a service that is stopping', () => {
  it('responds with Connection: close', async () => {
    let isStopping = false
    await using api = await startTestApi({ isStopping: () => isStopping })
    expect((await api.client.get('/me')).headers.get('connection')).toBe('keep-alive')
    isStopping = true
    for (const path of ['/me', '/nothing']) expect((await api.client.get(path)).headers.get('connection')).toBe('close')
  })
})
