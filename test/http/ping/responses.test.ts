/** What the ping API accepts and returns: methods, paths, headers, rejections (design, section 3.3). */

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { type Answer, exchange, writeHead, writePost } from '../../support/http.ts'
import { use } from '../../support/use.ts'

let publicId: string

const app = use(startTestApp)

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

  it('gets a plain OK that any origin may read and no cache may keep', async () => {
    const { status, text, headers } = await send('GET', `/ping/${publicId}`)
    expect({ status, text }).toEqual({ status: 200, text: 'OK' })
    expect(headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-length': '2',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
      'ping-body-limit': '10240',
      'access-control-expose-headers': 'Ping-Warning, Ping-Body-Limit, Ping-Stored',
    })
    expect(headers).not.toHaveProperty('ping-warning')
  })

  it('gets plain text for any Accept: clients read the status', async () => {
    const { text, headers } = await send('GET', `/ping/${publicId}`, 'Accept: application/json')
    expect(text).toBe('OK')
    expect(headers['content-type']).toBe('text/plain; charset=utf-8')
  })

  it('gets the same headers for HEAD, without the text', async () => {
    const { headers, body } = await send('HEAD', `/ping/${publicId}`)
    expect(headers['content-length']).toBe('2')
    expect(body).toHaveLength(0)
  })

  it('gets no header that names our software', async () => {
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
    ['/255/', 'fail', 255],
  ])('%j is stored as %s with exit code %s', async (rest, type, exitCode) => {
    expect((await send('GET', `/ping/${publicId}${rest}`)).status).toBe(200)
    expect((await app.storedPings(publicId)).at(-1)).toMatchObject({ type, exitCode })
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

describe('what is not a ping', () => {
  beforeAll(newCheck)

  it.each(['/', '/ping/x', '/ping/{id}x', '*'])('%s is no check', async (path) => {
    const { status, text } = await send('GET', path.replace('{id}', publicId))
    expect({ status, text }).toEqual({ status: 404, text: 'no such check' })
  })

  it.each(['GET', 'POST', 'HEAD'])('clients: a typo in the signal is explained (%s)', async (method) => {
    const { status, text, headers } = await send(method, `/ping/${publicId}/strat`)
    const expected = 'unknown signal "strat": use start, fail, log or an exit code from 0 to 255'
    expect({ status, length: headers['content-length'] }).toEqual({ status: 404, length: String(expected.length) })
    expect(text).toBe(method === 'HEAD' ? '' : expected)
  })

  it.each(['strat', '256', '-1'])(
    'clients: %s is not explained where the check is unknown, nor where it is deleted',
    async (given) => {
      const unknown = { status: 404, text: 'no such check' }
      expect(await send('GET', `/ping/${randomUUID()}/${given}`)).toMatchObject(unknown)
      const check = await app.createCheck({ name: 'Gone' })
      expect((await send('GET', `/ping/${check.publicId}`)).status).toBe(200)
      await app.client.delete(`/checks/${check.id}`)
      expect(await send('GET', `/ping/${check.publicId}/${given}`)).toMatchObject(unknown)
    },
  )

  it.each([
    ['<b>"x"', '?b??x?'],
    ['%0d%0aX', '%0d%0aX'],
    ['%1b[31m', '%1b?31m'],
    ['x'.repeat(5_000), `${'x'.repeat(40)}...`],
  ])('a signal is repeated in part, and harmless: %s', async (given, shown) => {
    const { text, headers } = await send('GET', `/ping/${publicId}/${given}`)
    expect(text).toBe(`unknown signal "${shown}": use start, fail, log or an exit code from 0 to 255`)
    expect(headers).toMatchObject({ 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' })
  })

  it.each([
    ['256', '256'],
    ['-1', '-1'],
    ['9'.repeat(5_000), `${'9'.repeat(40)}...`],
  ])('clients: %s is not an exit code, and the response says what is', async (given, shown) => {
    const { status, text } = await send('POST', `/ping/${publicId}/${given}`)
    expect({ status, text }).toEqual({ status: 400, text: `invalid exit code ${shown}: 0 to 255` })
  })

  it('an unknown id is not found', async () => {
    for (const method of ['GET', 'POST', 'HEAD']) {
      expect((await send(method, `/ping/${randomUUID()}`)).status).toBe(404)
    }
  })

  it('the id of the management API is not found: only the public id may ping', async () => {
    const { id } = await app.createCheck({ name: 'Another' })
    expect((await send('GET', `/ping/${id}`)).status).toBe(404)
  })

  it('a deleted check is not found, even if it was just pinged', async () => {
    const check = await app.createCheck({ name: 'Short-lived' })
    expect((await send('GET', `/ping/${check.publicId}`)).status).toBe(200)
    expect((await app.client.delete(`/checks/${check.id}`)).status).toBe(204)
    expect((await send('GET', `/ping/${check.publicId}`)).status).toBe(404)
  })

  it.each(['PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY'])('a %s is not allowed', async (method) => {
    const { status, headers, text } = await send(method, `/ping/${publicId}`)
    expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'GET, HEAD, POST, PUT, OPTIONS' })
    expect(text).toBe('method not allowed: use GET, HEAD, POST, PUT or OPTIONS')
  })

  it.each(['', '/', '/start', '/fail', '/7', '?rid=x', '/strat'])(
    'clients: a browser asks by OPTIONS what it may send: %j',
    async (rest) => {
      const { status, headers, body } = await send(
        'OPTIONS',
        `/ping/${publicId}${rest}`,
        'Origin: https://example.com',
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Headers: x-service-duration',
      )
      expect({ status, length: body.length }).toEqual({ status: 204, length: 0 })
      expect(headers).toMatchObject({
        'access-control-allow-origin': '*',
        'access-control-allow-methods': 'GET, HEAD, POST, PUT',
        'access-control-allow-headers': 'Content-Type, X-Service-Duration',
        'access-control-max-age': '86400',
      })
    },
  )

  it('OPTIONS of what is no ping URL is not found', async () => {
    for (const path of ['/', '/ping/x', '*']) expect((await send('OPTIONS', path)).status).toBe(404)
  })

  it('nothing of it was stored', async () => {
    expect(await typesStored()).toEqual([])
  })
})

describe('a rejection', () => {
  beforeAll(newCheck)
  const rejections: [status: number, method: string, path: string][] = [
    [404, 'GET', '/nowhere'],
    [404, 'GET', '/ping/{id}/strat'],
    [400, 'GET', '/ping/{id}/256'],
    [405, 'DELETE', '/ping/{id}'],
    [413, 'POST', '/ping/{id}'],
    [415, 'POST', '/ping/{id}'],
  ]

  const sendRejected = ([status, method, path]: (typeof rejections)[number], ...headers: string[]) => {
    const target = path.replace('{id}', publicId)
    if (status === 413) return exchange(app.pingUrl, writePost(target, 'x'.repeat(10_241), ...headers))
    if (status === 415) return exchange(app.pingUrl, writePost(target, 'x', 'Content-Encoding: gzip', ...headers))
    return send(method, target, ...headers)
  }

  it.each(rejections)('%s has the headers of every response, and a line of text', async (...rejection) => {
    const { status, headers, text } = await sendRejected(rejection)
    expect(status).toBe(rejection[0])
    expect(headers).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
      'ping-body-limit': '10240',
      'access-control-expose-headers': 'Ping-Warning, Ping-Body-Limit, Ping-Stored',
    })
    expect(text).toMatch(/^[^\n]+$/)
  })

  it.each(rejections)('%s is JSON for a client that accepts that', async (...rejection) => {
    for (const accept of [
      'application/json',
      'text/html;q=0.1, application/json',
      'application/json, text/plain;q=0.9',
    ]) {
      const { status, headers, text } = await sendRejected(rejection, `Accept: ${accept}`)
      expect(status).toBe(rejection[0])
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

  it('has no text for a HEAD', async () => {
    const { status, headers, body } = await send('HEAD', '/nowhere')
    expect({ status, length: headers['content-length'] }).toEqual({ status: 404, length: '13' })
    expect(body).toHaveLength(0)
  })

  it('never contains the id of the request', async () => {
    const secret = randomUUID()
    expect((await send('GET', `/ping/${secret}/<b>`)).text).not.toContain(secret)
  })
})

describe('a paused check', () => {
  beforeAll(newCheck)

  it('stores pings with 200, and changes only the times of its pings', async () => {
    const { id, publicId } = await app.createCheck({ name: 'Paused' })
    await app.client.patch(`/checks/${id}/pause`)
    for (const rest of ['/start', '', '/fail', '/3', '/log']) {
      expect((await send('GET', `/ping/${publicId}${rest}`)).status).toBe(200)
    }
    const { body } = await app.client.get(`/checks/${id}`)
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
