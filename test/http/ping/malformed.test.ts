/** What the ping API returns for requests that are not valid HTTP, or too large. */

import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { exchange, openConnection, writeHead, writePost } from '../../support/http.ts'
import { usePings } from './fixture.ts'

const { app, check, stored } = usePings()
const get = () => writeHead('GET', check.target)

describe('what is not HTTP', () => {
  const NOT_HTTP = { status: 400, text: 'the request is not valid HTTP' }

  it.each([
    ['words', 'hello\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an unknown method', 'PING / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an unknown version', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['a header without a name', 'GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n'],
    ['a header with NUL', 'GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n'],
    ['a folded header', 'GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n'],
    ['a space before the colon', 'GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!'],
    ['a negative length', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n'],
    ['a length beyond numbers', `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${'9'.repeat(40)}\r\n\r\n`],
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a chunk of no size', 'POST /{t} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'],
  ])('%s: 400 in plain text, and the connection is closed', async (_, bytes) => {
    const connection = openConnection(app.pingUrl)
    connection.send(bytes.replace('/{t}', check.target))
    const { status, text, headers } = await connection.receive('POST')
    expect({ status, text }).toEqual(NOT_HTTP)
    expect(headers).toMatchObject({ 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
    expect(await connection.ended).toEqual({ rest: '', error: null })
    expect((await exchange(app.pingUrl, get())).status).toBe(200)
    expect(await stored()).toHaveLength(1)
  })

  it('gets its response after those to the pings before it', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(
      writeHead('GET', `${check.target}/start`),
      writePost(check.target, 'done'),
      'and now for something else\r\n\r\n',
    )
    expect((await connection.receive()).status).toBe(200)
    expect((await connection.receive()).status).toBe(200)
    expect(await connection.receive()).toMatchObject(NOT_HTTP)
    expect(await connection.ended).toEqual({ rest: '', error: null })
    expect((await stored()).map(({ type }) => type)).toEqual(['start', 'success'])
  })

  it('as the body of a pipelined ping gets the response in place of that ping', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(get(), writeHead('POST', check.target, 'Transfer-Encoding: chunked'), 'zz\r\n')
    expect((await connection.receive()).status).toBe(200)
    expect(await connection.receive()).toMatchObject(NOT_HTTP)
    expect(await connection.ended).toEqual({ rest: '', error: null })
    expect(await stored()).toHaveLength(1)
  })

  it('after a rejection gets no second response', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('POST', '/nowhere', 'Transfer-Encoding: chunked'), 'zz\r\n')
    expect([400, 404]).toContain((await connection.receive()).status)
    expect(await connection.ended).toEqual({ rest: '', error: null })
  })

  it.each(['http://[::1', 'http://', 'http://a:port/', 'http://x:y@[/', 'http://a:99999/'])(
    'a target such as %s is 400',
    async (target) => {
      const { status, text } = await exchange(app.pingUrl, writeHead('GET', target))
      expect({ status, text }).toEqual({ status: 400, text: "the request's target is not a valid address" })
    },
  )

  it('a request without a Host is 400 (RFC 9112, section 3.2)', async () => {
    const { status, text } = await exchange(app.pingUrl, `GET ${check.target} HTTP/1.1\r\n\r\n`)
    expect({ status, text }).toEqual({ status: 400, text: 'the request has no Host header' })
    expect(await stored()).toEqual([])
  })

  it('a request with two Host headers is 400 on every port, also if they are equal', async () => {
    for (const url of [app.pingUrl, new URL(app.apiUrl).origin, app.opsUrl]) {
      for (const other of ['Host: other', 'host: test', 'HOST:']) {
        const { status, text } = await exchange(url, writeHead('GET', check.target, other))
        expect(status).toBe(400)
        expect(text).toContain('the request has more than one Host header')
      }
    }
    expect((await exchange(app.pingUrl, `GET ${check.target} HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n`)).status).toBe(400)
    expect(await stored()).toEqual([])
  })
})

describe('the size of a head', () => {
  it('may be some kilobytes: of the address, or of the headers', async () => {
    expect((await exchange(app.pingUrl, writeHead('GET', `${check.target}?note=${'x'.repeat(15_000)}`))).status).toBe(
      200,
    )
    expect((await exchange(app.pingUrl, writeHead('GET', check.target, `X-Note: ${'x'.repeat(15_000)}`))).status).toBe(
      200,
    )
    expect(await stored()).toHaveLength(2)
  })

  it.each([
    ['address', () => writeHead('GET', `${check.target}?note=${'x'.repeat(17_000)}`)],
    ['header', () => writeHead('GET', check.target, `X-Note: ${'x'.repeat(17_000)}`)],
    ['number of headers', () => writeHead('GET', check.target, ...Array(2_000).fill('X-Note: xxxxx'))],
  ])('beyond 16 KB is 431, by its %s', async (_, write) => {
    const connection = openConnection(app.pingUrl)
    connection.send(write())
    const { status, text } = await connection.receive()
    expect({ status, text }).toEqual({ status: 431, text: "the request's headers are larger than 16384 bytes" })
    expect(await connection.ended).toEqual({ rest: '', error: null })
    expect(await stored()).toEqual([])
  })

  it('beyond 16 KB is 431 without a reset, while more of it is still being sent', async () => {
    const connection = openConnection(app.pingUrl)
    connection.socket.pause()
    connection.send(`GET ${check.target} HTTP/1.1\r\nX-Note: `)
    for (let sent = 0; sent < 64; sent += 1) {
      await new Promise<void>((resolve, reject) => {
        connection.socket.write('x'.repeat(8_192), (error) => (error ? reject(error) : resolve()))
      })
      await wait(1)
    }
    connection.socket.resume()
    expect((await connection.receive()).status).toBe(431)
    expect(await connection.ended).toEqual({ rest: '', error: null })
  })
})
