import { describe, expect, it } from 'vitest'
import { ROUTES } from '../../../src/http/api/routes.ts'
import { exchange, LAST_CHUNK, openConnection, writeChunk, writeHead, writePost } from '../../support/http.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

const target = (path: string) => `/api/v1${path}`
const authorization = (key = api.keys.admin) => `Authorization: Bearer ${key}`
const JSON_TYPE = 'Content-Type: application/json'

describe('paths and methods', () => {
  it.each([
    '/',
    '/check',
    '/checks/1/2',
    '/checks/1/pings/2/text',
    '/Checks',
    '/%',
    '/%zz',
    '/che%ffcks',
    '//checks',
    '/checks%2f1',
    '/..%2fchecks',
  ])('the unknown path %s is 404, with or without a credential', async (path) => {
    for (const key of [api.keys.admin, null]) {
      const { status, body } = await api.client.get(path, { key })
      const error = 'not found; GET /api/v1/openapi.json lists the paths'
      expect({ status, body }).toEqual({ status: 404, body: { error, code: 'not_found' } })
    }
  })

  it('every path below /api/ outside the base path is 404 with a pointer to the document', async () => {
    const error = 'not found: the paths of this API begin with /api/v1/; GET /api/v1/openapi.json lists them'
    for (const path of ['/api', '/api/v2/checks', '/api/v1', '/api/v1checks']) {
      const { status, text } = await exchange(api.url, writeHead('GET', path, authorization()))
      expect({ path, status, body: JSON.parse(text) }).toEqual({
        path,
        status: 404,
        body: { error, code: 'not_found' },
      })
    }
  })

  const paths = [...new Set(ROUTES.map(({ path }) => path))]
  it.each(paths)('other methods on %s are 405 with Allow', async (path) => {
    const known = ROUTES.filter((route) => route.path === path).map(({ method }) => method as string)
    if (known.includes('GET')) known.push('HEAD')
    const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY'].filter(
      (method) => !known.includes(method),
    )
    for (const method of others) {
      const answer = await exchange(api.url, writeHead(method, target(path.replace('{id}', '1'))))
      expect({ method, status: answer.status, allow: answer.headers.allow }).toEqual({
        method,
        status: 405,
        allow: known.sort().join(', '),
      })
      if (method !== 'HEAD')
        expect(JSON.parse(answer.text)).toEqual({
          error: expect.stringMatching(new RegExp(`^${method} is not allowed here; `)),
          code: 'method_not_allowed',
        })
    }
  })

  it('HEAD is like GET, without the body', async () => {
    for (const path of ['/me', '/openapi.json', '/checks/1']) {
      const get = await exchange(api.url, writeHead('GET', target(path), authorization()))
      const head = await exchange(api.url, writeHead('HEAD', target(path), authorization()))
      expect(head.status).toBe(get.status)
      expect(head.text).toBe('')
      expect(head.headers['content-length']).toBe(get.headers['content-length'])
    }
  })

  it('a slash at the end is accepted', async () => {
    expect((await api.client.get('/me/')).status).toBe(200)
  })
})

describe('headers', () => {
  it.each([
    ['a success', '/me', 200],
    ['an error', '/checks/1', 404],
    ['an unknown path', '/nothing', 404],
  ])('are the same for %s', async (_, path, expected) => {
    const { status, headers } = await api.client.get(path)
    expect(status).toBe(expected)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
  })

  it('allow no other origin', async () => {
    const asked = ['Origin: https://evil.example', 'Access-Control-Request-Method: POST', authorization()]
    for (const method of ['GET', 'OPTIONS']) {
      const { headers } = await exchange(api.url, writeHead(method, target('/me'), ...asked))
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })
})

describe('bodies', () => {
  const post = (body: string | Buffer, ...headers: string[]) =>
    exchange(api.url, writePost(target('/projects'), body, authorization(), ...headers))
  const padded = (length: number) => `{"name": "padded"${' '.repeat(length - 18)}}`

  it('may have 65,536 bytes', async () => {
    expect(padded(65_536)).toHaveLength(65_536)
    expect((await post(padded(65_536), JSON_TYPE)).status).toBe(201)
  })

  it('may not be larger, declared or streamed', async () => {
    const declared = await post(padded(65_537), JSON_TYPE)
    const head = writeHead('POST', target('/projects'), authorization(), JSON_TYPE, 'Transfer-Encoding: chunked')
    const streamed = await exchange(api.url, head, writeChunk(padded(65_537)), LAST_CHUNK)
    for (const { status, text, headers } of [declared, streamed]) {
      expect({ status, text }).toEqual({
        status: 413,
        text: '{"error":"body too large: at most 65536 bytes are accepted","code":"too_large"}',
      })
      expect(headers).toMatchObject({
        connection: 'close',
        'x-content-type-options': 'nosniff',
        'ratelimit-limit': '1000000',
      })
    }
  })

  it('that are too large are rejected while they are still being sent, and the response arrives', async () => {
    const connection = openConnection(api.url)
    connection.send(writeHead('POST', target('/projects'), authorization(), JSON_TYPE, 'Transfer-Encoding: chunked'))
    for (let sent = 0; sent < 10; sent += 1) connection.send(writeChunk('x'.repeat(65_536)))
    connection.send(LAST_CHUNK)
    expect((await connection.receive('POST')).status).toBe(413)
    expect((await connection.ended).error).toBeNull()
  })

  it.each([
    ['no type at all', []],
    ['another type', ['Content-Type: text/plain']],
    ['a form', ['Content-Type: application/x-www-form-urlencoded']],
    ['a type that only ends alike', ['Content-Type: application/merge-patch+json']],
    ['nonsense for a type', ['Content-Type: json']],
    ['another charset', ['Content-Type: application/json; charset=iso-8859-1']],
    ['compression', [JSON_TYPE, 'Content-Encoding: gzip']],
    ['two layers of encoding', [JSON_TYPE, 'Content-Encoding: identity, br']],
  ])('with %s are rejected with 415', async (_, headers) => {
    const { status, text } = await post('{"name": "x"}', ...headers)
    expect(status).toBe(415)
    expect(JSON.parse(text)).toEqual({ error: expect.stringMatching(/send /), code: 'unsupported_media_type' })
  })

  it.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"; version=1',
  ])('of the type %s are accepted', async (type) => {
    expect((await post('{"name": "x"}', `Content-Type: ${type}`, 'Content-Encoding: identity')).status).toBe(201)
  })

  it.each<[string, string | Buffer, string]>([
    ['nothing', '', 'the body is empty; send a JSON object'],
    ['no object', '[]', 'the body must be a JSON object'],
    ['null', 'null', 'the body must be a JSON object'],
    ['a string', '"x"', 'the body must be a JSON object'],
    ['half an object', '{"name"', 'the body is not valid JSON: see line 1, column 8'],
    ['a comma too many', '{\n"name": "x",}', 'the body is not valid JSON: see line 2, column 13'],
    ['words', 'name=x', 'the body is not valid JSON'],
    ['bytes that are no UTF-8', Buffer.from('{"name": "\xe4"}', 'latin1'), 'the body is not valid UTF-8'],
    [
      'a fault in the second of two',
      '{"name": "x", "n\\u0061me": 1}',
      'name must be text of 1 to 100 characters, without control characters',
    ],
    ['a prototype', '{"name": "x", "__proto__": {"slug": "y"}}', '__proto__ is not a known field'],
    [
      'a deep nest',
      `{"name": ${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
      'name must be text of 1 to 100 characters, without control characters',
    ],
  ])('with %s are rejected with 400', async (_, body, error) => {
    const { status, text } = await post(body, JSON_TYPE)
    const answer = JSON.parse(text)
    expect({ status, ...answer }).toMatchObject({ status: 400, error, code: 'invalid_request' })
    expect(answer.details).toEqual([{ path: expect.stringMatching(/^body/), message: expect.any(String) }])
  })

  it('that are needed and absent are rejected with 400', async () => {
    const { status, text } = await exchange(api.url, writeHead('POST', target('/projects'), authorization()))
    const message = 'is empty; send a JSON object'
    const details = [{ path: 'body', message }]
    const body = { error: `the body ${message}`, code: 'invalid_request', details }
    expect({ status, body: JSON.parse(text) }).toEqual({ status: 400, body })
  })

  it('that no operation needs are ignored, and the connection stays open', async () => {
    const connection = openConnection(api.url)
    for (let call = 0; call < 2; call += 1) {
      connection.send(writeHead('GET', target('/me'), authorization(), 'Content-Type: x', 'Content-Length: 5'), 'hello')
      expect((await connection.receive()).status).toBe(200)
    }
    connection.socket.destroy()
  })

  it('of a rejected request get no 100 Continue', async () => {
    const head = writeHead(
      'POST',
      target('/projects'),
      authorization('x'),
      JSON_TYPE,
      'Content-Length: 13',
      'Expect: 100-continue',
    )
    const connection = openConnection(api.url)
    connection.send(head)
    const { status, headers } = await connection.receive('POST')
    expect([status, headers.connection]).toEqual([401, 'close'])
    expect(await connection.ended).toEqual({ rest: '', error: null })
  })

  it('of an accepted request get 100 Continue', async () => {
    const connection = openConnection(api.url)
    connection.send(
      writeHead('POST', target('/projects'), authorization(), JSON_TYPE, 'Content-Length: 13', 'Expect: 100-continue'),
    )
    expect((await connection.receive('POST')).status).toBe(100)
    connection.send('{"name": "x"}')
    expect((await connection.receive('POST')).status).toBe(201)
    connection.socket.destroy()
  })
})

describe('GET /openapi.json', () => {
  it('needs no credential, and names the address of the API', async () => {
    const { status, body } = await api.client.get('/openapi.json', { key: null })
    expect([status, body.openapi, body.servers]).toEqual([200, '3.1.1', [{ url: api.url }]])
  })
})
