/** What the ping API accepts and says: methods, paths, headers, refusals (design, section 3.3). */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { type Answer, exchange, writeHead, writePost } from '../../support/http.ts'

let app: TestApp
let publicId: string

beforeAll(async () => {
  app = await startTestApp()
})
afterAll(() => app.close())

const send = (method: string, path: string, ...headers: string[]): Promise<Answer> =>
  exchange(app.pingUrl, writeHead(method, path, ...headers))
const newCheck = async () => {
  publicId = (await app.createCheck()).publicId
}
const typesStored = async () => (await app.storedPings(publicId)).map(({ type }) => type)

describe('a ping that is accepted', () => {
  beforeAll(newCheck)

  it.each(['GET', 'POST', 'HEAD'])('may be a %s', async (method) => {
    const before = (await typesStored()).length
    expect((await send(method, `/ping/${publicId}`)).status).toBe(200)
    expect((await typesStored()).length).toBe(before + 1)
  })

  it('is answered by a plain OK, for everybody to read and nobody to keep', async () => {
    const { status, text, headers } = await send('GET', `/ping/${publicId}`)
    expect({ status, text }).toEqual({ status: 200, text: 'OK' })
    expect(headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-length': '2',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
      'ping-body-limit': '10240',
    })
    expect(headers).not.toHaveProperty('ping-warning')
  })

  it('is OK in plain text whatever Accept asks for: clients read the status', async () => {
    const { text, headers } = await send('GET', `/ping/${publicId}`, 'Accept: application/json')
    expect(text).toBe('OK')
    expect(headers['content-type']).toBe('text/plain; charset=utf-8')
  })

  it('gets the same headers for HEAD, without the text', async () => {
    const { headers, body } = await send('HEAD', `/ping/${publicId}`)
    expect(headers['content-length']).toBe('2')
    expect(body).toHaveLength(0)
  })

  it('says nothing of what we run on', async () => {
    const { headers } = await send('GET', `/ping/${publicId}`)
    expect(headers).not.toHaveProperty('x-powered-by')
    expect(headers).not.toHaveProperty('server')
  })
})

describe('the path of a ping', () => {
  beforeAll(newCheck)

  it.each([
    ['', 'success', 0],
    ['/start', 'start', null],
    ['/fail', 'fail', null],
    ['/log', 'log', null],
    ['/0', 'success', 0],
    ['/1', 'fail', 1],
    ['/255', 'fail', 255],
  ])('%j is stored as %s with exit code %s, with and without a slash at the end', async (rest, type, exitCode) => {
    for (const slash of ['', '/']) {
      expect((await send('GET', `/ping/${publicId}${rest}${slash}`)).status).toBe(200)
      expect((await app.storedPings(publicId)).at(-1)).toMatchObject({ type, exitCode })
    }
  })

  it('takes the id in capitals', async () => {
    const before = (await typesStored()).length
    expect((await send('GET', `/ping/${publicId.toUpperCase()}/start`)).status).toBe(200)
    expect((await typesStored()).length).toBe(before + 1)
  })

  it('may be an absolute address, as clients behind a proxy send it', async () => {
    const before = (await typesStored()).length
    expect((await send('GET', `http://ping.example.com/ping/${publicId}?rid=${randomUUID()}`)).status).toBe(200)
    expect((await app.storedPings(publicId)).slice(before)).toMatchObject([{ type: 'success', runId: /./ }])
  })
})

describe('what is no ping', () => {
  beforeAll(newCheck)

  it.each([
    '/',
    '/ping',
    '/ping/',
    '/ping/x',
    '/ping/{id}x',
    '/ping/{id}//',
    '/ping/{id}/stop',
    '/ping/{id}/START',
    '/ping/{id}/start/1',
    '/ping/{id}/1.5',
    '/ping/{id}/1e1',
    '/ping/%7bid%7d',
    '//ping/{id}',
    '/PING/{id}',
    '/api/v1/ping/{id}',
    '*',
  ])('%s is not found', async (path) => {
    const { status, text } = await send('GET', path.replace('{id}', publicId))
    expect({ status, text }).toEqual({ status: 404, text: 'not found' })
  })

  it.each(['256', '-1', '+1', '1000', '007777', '99999999999999999999'])('%s is no exit code', async (exitCode) => {
    const { status, text } = await send('POST', `/ping/${publicId}/${exitCode}`)
    expect({ status, text }).toEqual({
      status: 400,
      text: 'invalid exit code',
    })
  })

  it('is a check that nobody made', async () => {
    for (const method of ['GET', 'POST', 'HEAD']) {
      expect((await send(method, `/ping/${randomUUID()}`)).status).toBe(404)
    }
  })

  it('is the id of management: only the public id is the right to ping', async () => {
    const { id } = await app.createCheck({ name: 'Another' })
    expect((await send('GET', `/ping/${id}`)).status).toBe(404)
  })

  it('is a check that was deleted, even one that was just pinged', async () => {
    const check = await app.createCheck({ name: 'Short-lived' })
    expect((await send('GET', `/ping/${check.publicId}`)).status).toBe(200)
    expect((await app.call('DELETE', `/checks/${check.id}`)).status).toBe(204)
    expect((await send('GET', `/ping/${check.publicId}`)).status).toBe(404)
  })

  it.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'])(
    'a %s is not allowed',
    async (method) => {
      const { status, headers, text } = await send(method, `/ping/${publicId}`)
      expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'GET, HEAD, POST' })
      expect(text).toBe('method not allowed: use GET, HEAD or POST')
    },
  )

  it('and nothing of it was stored', async () => {
    expect(await typesStored()).toEqual([])
  })
})

describe('a refusal', () => {
  beforeAll(newCheck)
  const refusals: [status: number, method: string, path: string][] = [
    [404, 'GET', '/nowhere'],
    [400, 'GET', '/ping/{id}/256'],
    [405, 'DELETE', '/ping/{id}'],
    [413, 'POST', '/ping/{id}'],
    [415, 'POST', '/ping/{id}'],
  ]

  const sendRefused = ([status, method, path]: (typeof refusals)[number], ...headers: string[]) => {
    const target = path.replace('{id}', publicId)
    if (status === 413) return exchange(app.pingUrl, writePost(target, 'x'.repeat(10_241), ...headers))
    if (status === 415) return exchange(app.pingUrl, writePost(target, 'x', 'Content-Encoding: gzip', ...headers))
    return send(method, target, ...headers)
  }

  it.each(refusals)('%s has the headers of every answer, and a line of text', async (...refusal) => {
    const { status, headers, text } = await sendRefused(refusal)
    expect(status).toBe(refusal[0])
    expect(headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
      'ping-body-limit': '10240',
    })
    expect(text).toMatch(/^[^\n]+$/)
  })

  it.each(refusals)('%s is JSON for those who ask', async (...refusal) => {
    for (const accept of [
      'application/json',
      'text/html;q=0.1, application/json',
      'application/json, text/plain;q=0.9',
    ]) {
      const { status, headers, text } = await sendRefused(refusal, `Accept: ${accept}`)
      expect(status).toBe(refusal[0])
      expect(headers['content-type']).toBe('application/json; charset=utf-8')
      expect(JSON.parse(text)).toEqual({ error: expect.stringMatching(/./) })
    }
  })

  it.each(['*/*', 'text/plain', 'text/*, application/json;q=0.5', 'image/png', 'nonsense;;;,', ''])(
    'stays text for Accept: %s',
    async (accept) => {
      const { headers } = await send('GET', '/nowhere', `Accept: ${accept}`)
      expect(headers['content-type']).toBe('text/plain; charset=utf-8')
    },
  )

  it('of a HEAD has no text', async () => {
    const { status, headers, body } = await send('HEAD', '/nowhere')
    expect({ status, length: headers['content-length'] }).toEqual({ status: 404, length: '9' })
    expect(body).toHaveLength(0)
  })

  it('never repeats what was asked for', async () => {
    const secret = randomUUID()
    expect((await send('GET', `/ping/${secret}/<b>`)).text).not.toContain(secret)
  })
})

describe('a paused check', () => {
  beforeAll(newCheck)

  it('stores pings and answers 200; only the times of its pings move', async () => {
    const { id, publicId } = await app.createCheck({ name: 'Paused' })
    await app.call('PATCH', `/checks/${id}/pause`)
    for (const rest of ['/start', '', '/fail', '/3', '/log']) {
      expect((await send('GET', `/ping/${publicId}${rest}`)).status).toBe(200)
    }
    const { body } = await app.call('GET', `/checks/${id}`)
    expect(body).toMatchObject({ status: 'paused', due_at: null, expected_at: null })
    expect(body.last_ping_at).toMatch(/Z$/)
    expect(body.last_start_at).toMatch(/Z$/)
    expect((await app.storedPings(publicId)).map(({ type }) => type)).toEqual([
      'start',
      'success',
      'fail',
      'fail',
      'log',
    ])
  })
})
