/** Bodies that no handler reads, and connections that break off: nothing of them stays. On sockets of a server. */

import { IncomingMessage, type ServerResponse } from 'node:http'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type BodyLimits, readBody, respondAndDrain } from '../../../src/http/body.ts'
import { type Connection, exchange, LAST_CHUNK, openConnection, writeHead, writePost } from '../../support/http.ts'
import { anOpsApp, aPingApp, serve } from '../../support/servers.ts'
import { eventually } from '../../support/until.ts'

const CHUNKED = 'Transfer-Encoding: chunked'
const shortChunks = (count: number) => '1\r\nx\r\n'.repeat(count)

let server: Awaited<ReturnType<typeof serve>>
let url = ''
let dropped = 0

interface Start {
  readonly handler: (request: IncomingMessage, response: ServerResponse) => unknown
  readonly body?: BodyLimits
}

async function start({ handler, body }: Start): Promise<void> {
  dropped = 0
  server = await serve({
    maxConnections: 64,
    groupOf: (address) => address,
    onConnectionDropped: () => {
      dropped += 1
    },
    handler,
    ...(body === undefined ? {} : { body }),
  })
  url = server.url
}

afterEach(() => server.close(0))

describe('a body that is dropped', () => {
  const drop = (request: IncomingMessage, response: ServerResponse) => response.end(request.resume() && 'ok')

  it('is cut off after 1,024 short chunks, and its response is the last one', async () => {
    const asked = Promise.withResolvers<[IncomingMessage, ServerResponse]>()
    await start({ handler: (...given) => asked.resolve(given) })
    const connection = openConnection(url)
    connection.send(writeHead('GET', '/', CHUNKED), shortChunks(100_000))
    const [request, response] = await asked.promise
    request.resume()
    await eventually('the socket is paused', () => request.socket.isPaused())
    response.end('ok')
    const { status, headers } = await connection.receive()
    expect([status, headers.connection]).toEqual([200, 'close'])
    await connection.ended
  })

  it('is cut off after its response too', async () => {
    await start({ handler: drop })
    const connection = openConnection(url)
    connection.send(writeHead('GET', '/', CHUNKED), shortChunks(1))
    expect((await connection.receive()).status).toBe(200)
    connection.send(shortChunks(1_024))
    await connection.ended
  })

  it('may have 1,024 short chunks: its connection stays', async () => {
    await start({ handler: drop })
    const connection = openConnection(url)
    for (let round = 0; round < 2; round += 1) {
      connection.send(writeHead('GET', '/', CHUNKED), shortChunks(1_024), LAST_CHUNK)
      const { status, headers } = await connection.receive()
      expect([status, headers.connection]).toEqual([200, 'keep-alive'])
    }
    connection.socket.destroy()
  })

  it.each(['1\r\nx\r\n', '10\r\nxxxxxxxxxxxxxxxx\r\n'])(
    'is not kept behind sixteen requests that wait: %j',
    async (chunk) => {
      const waiting: ServerResponse[] = []
      await start({ handler: (_, response) => waiting.push(response) })
      const connection = openConnection(url)
      connection.send(writeHead('GET', '/').repeat(16), writeHead('POST', '/', CHUNKED), chunk.repeat(200_000))
      await eventually('sixteen requests wait', () => waiting.length === 16)
      const { socket } = waiting[0]!.req
      const parser = (socket as unknown as { parser: { incoming: IncomingMessage } }).parser
      await eventually('60 KB are read', () => socket.bytesRead > 60_000, 5_000)
      expect(parser.incoming.readableLength).toBe(0)
      for (const response of waiting) response.end('ok')
      for (let count = 0; count < 16; count += 1) expect((await connection.receive()).status).toBe(200)
      await connection.ended
    },
  )

  it('is there for a handler that reads it later', async () => {
    const asked = Promise.withResolvers<[IncomingMessage, ServerResponse]>()
    await start({ handler: (...given) => asked.resolve(given) })
    const connection = openConnection(url)
    connection.send(writePost('/', 'a body'))
    const [request, response] = await asked.promise
    await new Promise(setImmediate)
    response.end(await readBody(request, 10))
    expect((await connection.receive()).text).toBe('a body')
    connection.socket.destroy()
  })

  it.each(['/ping/0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f/unknown', '/ping/0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f/999'])(
    'is not kept while the check of %s is looked up',
    async (path) => {
      const looked = Promise.withResolvers<void>()
      const found = Promise.withResolvers<boolean>()
      const app = aPingApp({
        async hasCheck() {
          looked.resolve()
          return found.promise
        },
      })
      let asked: IncomingMessage | undefined
      await start({
        handler(request, response) {
          asked = request
          return app(request, response)
        },
      })
      const connection = openConnection(url)
      connection.send(writeHead('POST', path, CHUNKED), shortChunks(100_000))
      await looked.promise
      await eventually('the socket is paused', () => asked!.socket.isPaused())
      expect(asked!.readableLength).toBe(0)
      found.resolve(false)
      expect((await connection.receive('POST')).status).toBe(404)
      await connection.ended
    },
  )

  it('is not kept while the ops port reads the checks', async () => {
    const read = Promise.withResolvers<string>()
    const app = anOpsApp({ render: () => read.promise })
    let asked: IncomingMessage | undefined
    await start({
      handler(request, response) {
        asked = request
        return app(request, response)
      },
    })
    const connection = openConnection(url)
    connection.send(writeHead('GET', '/metrics', CHUNKED), shortChunks(100_000))
    await eventually('the socket is paused', () => asked?.socket.isPaused())
    expect(asked!.readableLength).toBe(0)
    read.resolve('a 1\n')
    await connection.ended
  })
})

describe('after too many short chunks', () => {
  /** Chunks that Node has pushed into requests: what its parser took of bodies. */
  function countChunks(): () => number {
    const push = vi.spyOn(IncomingMessage.prototype, 'push')
    return () => push.mock.calls.filter(([chunk]) => chunk !== null).length
  }
  afterEach(() => void vi.restoreAllMocks())
  const waiting = writeHead('GET', '/').repeat(16)

  // Node has read thousands of chunks at once by then. Fails when a release of Node renames what stops them.
  it.each([
    ['is read', writeHead('POST', '/', CHUNKED)],
    ['belongs to a refused request', writeHead('POST', '/', CHUNKED, `Accept: ${'x'.repeat(2_000)}`)],
    ['belongs to a request too many', waiting + writeHead('POST', '/', CHUNKED)],
  ])('no more are taken of a body that %s, and the next connection gets its body', async (_, head) => {
    await start({
      async handler(request, response) {
        const body = await readBody(request, 100_000).catch((error: Error) => error.message)
        response.end(body)
      },
      body: { keepBytes: 100_000, mostBytes: 100_000 },
    })
    const taken = countChunks()
    const connection = openConnection(url)
    connection.send(head, shortChunks(20_000))
    await connection.ended
    expect(taken()).toBe(1_025)
    expect((await exchange(url, writePost('/', 'a body'))).text).toBe('a body')
  })

  it('the requests behind it are left alone', async () => {
    const asked: string[] = []
    await start({
      handler(request, response) {
        asked.push(request.url!)
        response.end(request.resume() && 'ok')
      },
    })
    const connection = openConnection(url)
    connection.send(writeHead('GET', '/first', CHUNKED), shortChunks(1_025), LAST_CHUNK, writePost('/second', 'a body'))
    expect((await connection.receive()).status).toBe(200)
    await connection.ended
    expect(asked).toEqual(['/first'])
  })
})

describe('a connection that breaks off', () => {
  /** All that all bodies may take. */
  const BUDGET = 33_554_432
  const large = 'x'.repeat(100_000)
  const post = (target: string, body = large) => writePost(target, body)
  const half = (target: string, ...headers: string[]) =>
    `${writeHead('POST', target, ...headers, 'Content-Length: 100000')}${large.slice(1)}`
  const STAGES: readonly (readonly [string, readonly (string | Buffer)[]])[] = [
    ['before its first byte', []],
    ['within a head', ['GET / HTTP/1.1\r\nHos']],
    ['within a body of known length', [half('/')]],
    ['within a chunk', [writeHead('POST', '/', CHUNKED), `ffff\r\n${large.slice(0, 50_000)}`]],
    ['after a chunk that is none', [writeHead('POST', '/', CHUNKED), '5\r\nhello\r\nzz\r\n']],
    ['after short chunks', [writeHead('POST', '/', CHUNKED), shortChunks(3_000)]],
    ['while its request waits', [post('/wait')]],
    ['while many requests wait', Array.from({ length: 20 }, () => post('/wait'))],
    ['with requests that are answered behind one that waits', [post('/wait'), ...Array.from({ length: 8 }, () => post('/'))]],
    ['within a body behind a request that waits', [post('/wait'), half('/')]],
    ['with a head that is too long', [half('/', `Accept: ${'x'.repeat(2_000)}`)]],
    ['with a body that is too long', [writeHead('POST', '/', `Content-Length: ${BUDGET + 1}`), large]],
    ['before it was asked for its body', [writeHead('POST', '/', 'Expect: 100-continue', 'Content-Length: 5')]],
    ['after a response that it does not read', [post('/large'), post('/large')]],
  ] // biome-ignore format: a table

  let isWaiting = true
  const waiting: ServerResponse[] = []
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await readBody(request, BUDGET)
      if (request.url === '/large') response.end(Buffer.alloc(8_388_608))
      else if (request.url === '/wait' && isWaiting) waiting.push(response)
      else response.end('ok')
    } catch (error) {
      response.statusCode = 400
      await respondAndDrain(request, response, (error as Error).message)
    }
  }

  it.each(STAGES)('%s leaves nothing', async (_, parts) => {
    isWaiting = true
    await start({ handler: handle, body: { keepBytes: BUDGET, mostBytes: BUDGET } })
    const isServed = async () => (await exchange(url, writeHead('GET', '/'))).status === 200
    const broken: Connection[] = []
    const ways: readonly ((connection: Connection) => unknown)[] = [
      ({ socket }) => socket.resetAndDestroy(),
      ({ socket }) => socket.destroy(),
      ({ socket }) => socket.end(),
    ]
    for (const end of ways) {
      for (const seesIt of [false, true]) {
        const connection = openConnection(url)
        if (parts.some((part) => `${part}`.includes('/large'))) connection.socket.pause()
        connection.send(...parts)
        if (seesIt) expect(await isServed()).toBe(true)
        end(connection)
        broken.push(connection)
      }
    }
    // A client that has closed its side may still read: its request waits as before.
    isWaiting = false
    for (const response of waiting.splice(0)) if (!response.req.socket.destroyed) response.end('late')
    for (const { socket } of broken) socket.destroy()
    // One byte that is still counted would leave no room for the last one.
    await expect
      .poll(async () => (await exchange(url, post('/', 'x'.repeat(BUDGET)))).text, { timeout: 3_000 })
      .toBe('ok')
    const before = dropped
    const all = Array.from({ length: 16 }, () => openConnection(url))
    for (const { send, receive } of all) {
      send(writeHead('GET', '/'))
      expect((await receive()).status).toBe(200)
    }
    expect(dropped).toBe(before)
    for (const { socket } of all) socket.destroy()
  })
})
