/** Responses as servers may cut them up, and interim ones before them. */

import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { fetchBounded, sendRequest } from '../../../src/runtime/http-request.ts'
import { eventually } from '../../support/until.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone'

/** Responds to each request with these bytes. */
async function respondWith(bytes: string) {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (data) => {
      requests.push(data.toString())
      socket.write(bytes)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    requests,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((closed) => server.close(closed))
    },
  }
}
const pieces = (count: number, size: number) =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${`${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`.repeat(count)}0\r\n\r\n`
const LIMITS = { maxBytes: 100_000, createError: () => new Error('too much') }
const get = (url: string, signal = AbortSignal.timeout(10_000)) => fetchBounded(url, { signal }, LIMITS)

it.each([
  ['100 Continue', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['102 Processing', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ['103 Early Hints', 'HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n'],
  ['several', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'],
])('the response counts after %s, and the request is sent once', async (_, interim) => {
  await using server = await respondWith(interim + OK)
  const { status, bytes } = await fetchBounded(
    server.url,
    { method: 'POST', body: '{"ä":1}', signal: AbortSignal.timeout(10_000) },
    LIMITS,
  )
  expect({ status, text: bytes.toString() }).toEqual({ status: 200, text: 'done' })
  expect(server.requests).toHaveLength(1)
  expect(server.requests[0]).toMatch(/^POST \/ HTTP\/1\.1\r\n[\s\S]*Content-Length: 8\r\n[\s\S]*\{"ä":1\}$/i)
})

it.each([
  ['with', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ['without', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
])('another protocol is no response, %s its name', async (_, answer) => {
  await using server = await respondWith(answer)
  await expect(get(server.url)).rejects.toMatchObject({ cause: { code: 'HPE_PAUSED_UPGRADE' } })
  await eventually('no socket is open', () => server.sockets.size === 0)
})

it.each([
  ['as many bytes as are allowed', pieces(10, 10_000), 100_000],
  ['many pieces of 16 bytes', pieces(6_000, 16), 96_000],
  ['1,024 short chunks', pieces(1_024, 15), 15_360],
])('a body of %s is read', async (_, answer, length) => {
  await using server = await respondWith(answer)
  expect((await get(server.url)).bytes).toHaveLength(length)
})

it.each([
  ['one byte more than is allowed', pieces(1, 100_001)],
  ['1,025 short chunks', pieces(1_025, 15)],
  ['a hundred thousand pieces of a byte', pieces(100_000, 1)],
])('a body of %s is cut off', async (_, answer) => {
  await using server = await respondWith(answer)
  await expect(get(server.url)).rejects.toThrow('too much')
  await eventually('no socket is open', () => server.sockets.size === 0)
})

it('a body in short chunks is parsed no further, and the next response has its body', async () => {
  await using server = await respondWith(pieces(10_000, 1))
  const response = await sendRequest(new URL(server.url), { signal: AbortSignal.timeout(10_000) })
  let taken = 0
  response.on('data', () => (taken += 1)).on('error', () => {})
  await eventually('more than a thousand pieces are taken', () => taken > 1_000)
  response.destroy()
  expect(taken).toBe(1_025)
  await using next = await respondWith(pieces(10, 1))
  expect((await get(next.url)).bytes).toHaveLength(10)
})

it('a body that is not whole is an error, and that of the signal where it aborted', async () => {
  await using server = await respondWith('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')
  const stop = new AbortController()
  const response = await sendRequest(new URL(server.url), { signal: stop.signal })
  expect(response.statusCode).toBe(200)
  response.destroy()
  const fetching = get(server.url, stop.signal)
  await eventually('the second request has arrived', () => server.requests.length === 2)
  stop.abort(new Error('time is up'))
  await expect(fetching).rejects.toThrow('time is up')
  await eventually('no socket is open', () => server.sockets.size === 0)
})
