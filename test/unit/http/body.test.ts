import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/domain/errors.ts'
import { beginBody, deferContinue, endBody, RequestAborted, readBody, respondAndDrain } from '../../../src/http/body.ts'
import { LAST_CHUNK, openConnection, writeChunk, writeHead } from '../../support/http.ts'

const LIMIT = 1_000
const CHUNKED = 'Transfer-Encoding: chunked'
const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** Answers with the length of the body or the code of the refusal; `seen` settles with what readBody did with the first request. */
async function connect(
  read: (request: IncomingMessage, response: ServerResponse) => Promise<Buffer> = (request) => readBody(request, LIMIT),
) {
  const server = createServer()
  deferContinue(server)
  const seen = Promise.withResolvers<Buffer | Error>()
  server.on('request', async (request, response) => {
    try {
      const body = await read(request, response)
      seen.resolve(body)
      response.end(String(body.length))
    } catch (error) {
      seen.resolve(error as Error)
      response.statusCode = error instanceof AppError && error.code === 'too_large' ? 413 : 401
      if (!(error instanceof RequestAborted)) await respondAndDrain(request, response, 'refused')
    }
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const open = () => openConnection(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return { ...open(), open, seen: seen.promise }
}

const head = (...headers: string[]) => writeHead('POST', '/', ...headers)

describe('readBody', () => {
  it('gives a body of known length', async () => {
    const { send, seen } = await connect()
    send(head('Content-Length: 5'), 'hello')
    expect(await seen).toEqual(Buffer.from('hello'))
  })

  it('gives a body that comes in chunks', async () => {
    const { send, seen } = await connect()
    send(head(CHUNKED), writeChunk('hel'))
    send(writeChunk('lo'), LAST_CHUNK)
    expect(await seen).toEqual(Buffer.from('hello'))
  })

  it.each([[head()], [head('Content-Length: 0')], [head(CHUNKED) + LAST_CHUNK]])('is empty for %j', async (request) => {
    const { send, seen } = await connect()
    send(request)
    expect(await seen).toEqual(Buffer.alloc(0))
  })

  it('takes exactly the limit and keeps the connection', async () => {
    const { send, receive } = await connect()
    for (let call = 1; call <= 2; call += 1) {
      send(head(`Content-Length: ${LIMIT}`), 'x'.repeat(LIMIT))
      expect(await receive()).toMatchObject({ status: 200, text: String(LIMIT) })
    }
  })

  it('refuses one byte more by its declared length, before any of it comes', async () => {
    const { send, receive, seen } = await connect()
    send(head(`Content-Length: ${LIMIT + 1}`))
    expect(await seen).toMatchObject({ code: 'too_large', message: 'body too large: at most 1000 bytes are accepted' })
    expect(await receive()).toMatchObject({ status: 413, text: 'refused' })
  })

  it('refuses one byte more while streaming', async () => {
    const { send, receive, seen } = await connect()
    send(head(CHUNKED), writeChunk('x'.repeat(LIMIT)), writeChunk('y'))
    expect(await seen).toMatchObject({ code: 'too_large' })
    expect(await receive()).toMatchObject({ status: 413, text: 'refused', headers: { connection: 'close' } })
  })

  it.each([
    ['declares', 'Content-Length: 100'],
    ['streams', CHUNKED],
  ])('ends quietly when a client that %s its body leaves half way', async (_, framing) => {
    const begun = Promise.withResolvers<void>()
    const { send, seen, socket } = await connect((request) => {
      request.once('data', () => begun.resolve())
      return readBody(request, LIMIT)
    })
    send(head(framing), '5\r\nhello\r\n')
    await begun.promise
    socket.resetAndDestroy()
    expect(await seen).toBeInstanceOf(RequestAborted)
  })

  it('ends quietly when the client left before the body was read', async () => {
    const left = Promise.withResolvers<void>()
    const { socket, seen } = await connect(async (request) => {
      request.socket.on('close', left.resolve)
      await left.promise
      return readBody(request, LIMIT)
    })
    socket.write(head('Content-Length: 100'), () => socket.destroy())
    expect(await seen).toBeInstanceOf(RequestAborted)
  })
})

describe('a body that the server reads from its first byte on', () => {
  /** As on the management port (src/http/server.ts). */
  const begun = (asked: (request: IncomingMessage) => Promise<Buffer>) =>
    connect((request, response) => {
      beginBody(request, { keepBytes: LIMIT, mostBytes: LIMIT })
      response.once('close', () => endBody(request))
      return asked(request)
    })
  const closed = (request: IncomingMessage) => new Promise<void>((resolve) => void request.once('close', resolve))

  it('is given to the handler also after it is complete', async () => {
    const { send, seen } = await begun(async (request) => {
      while (!request.readableEnded) await new Promise<void>((resolve) => setImmediate(resolve))
      return readBody(request, LIMIT)
    })
    send(head('Content-Length: 5'), 'hello')
    expect(await seen).toEqual(Buffer.from('hello'))
  })

  it.each<[string, (request: IncomingMessage) => Promise<Buffer>]>([
    ['while the handler waits for it', (request) => readBody(request, LIMIT)],
    ['before the handler asks for it', (request) => closed(request).then(() => readBody(request, LIMIT))],
  ])('ends for a client that left %s', async (_, asked) => {
    const isReached = Promise.withResolvers<void>()
    const { send, socket, seen } = await begun((request) => {
      isReached.resolve()
      return asked(request)
    })
    send(head('Content-Length: 5'), 'he')
    await isReached.promise
    socket.resetAndDestroy()
    expect(await seen).toBeInstanceOf(RequestAborted)
  })
})

describe('respondAndDrain', () => {
  it('lets a client finish sending although it has its answer: no reset, and then the end', async () => {
    const { send, receive, ended } = await connect()
    const part = writeChunk('x'.repeat(16_384))
    send(head(CHUNKED), part)
    expect(await receive()).toMatchObject({ status: 413, text: 'refused' })
    send(...Array.from({ length: 40 }, () => part), LAST_CHUNK)
    expect(await ended).toEqual({ rest: '', error: null })
  })

  it('drops no more than its bound: a client that never stops is cut', async () => {
    const { socket, ended } = await connect()
    const part = writeChunk('x'.repeat(65_536))
    let sent = 0
    const send = () => {
      while (socket.writable && socket.write(part)) sent += part.length
    }
    socket.on('drain', send)
    socket.write(head(CHUNKED))
    send()
    expect((await ended).rest).toMatch(/refused$/)
    expect(sent).toBeLessThan(50_000_000)
  })

  it('does not wait for a client that sends nothing more', async () => {
    const { send, ended } = await connect()
    const startedAt = performance.now()
    send(head(`Content-Length: ${LIMIT + 1}`))
    await ended
    expect(performance.now() - startedAt).toBeLessThan(3_000)
  })
})

describe('deferContinue', () => {
  const expecting = (length: number) => head(`Content-Length: ${length}`, 'Expect: 100-continue')

  it('asks for the body when it is read, and keeps the connection', async () => {
    const { send, receive } = await connect()
    send(expecting(5))
    expect((await receive()).status).toBe(100)
    send('hello')
    expect(await receive()).toMatchObject({ text: '5', headers: { connection: 'keep-alive' } })
  })

  it('refuses what is too large without asking for it', async () => {
    const { open } = await connect()
    const times: number[] = []
    for (let count = 0; count < 3; count += 1) {
      const { send, receive, ended } = open()
      const startedAt = performance.now()
      send(expecting(LIMIT + 1))
      expect(await receive()).toMatchObject({ status: 413, headers: { connection: 'close' } })
      await ended
      times.push(performance.now() - startedAt)
    }
    // The shortest: on a busy machine, one may take as long as a body would be waited for.
    expect(Math.min(...times), 'nothing is on its way').toBeLessThan(900)
  })

  it('closes the connection of a request that is answered without its body', async () => {
    const { send, receive, ended } = await connect(async () => Buffer.alloc(0))
    send(expecting(5))
    expect(await receive()).toMatchObject({ status: 200, headers: { connection: 'close' } })
    await ended
  })
})
