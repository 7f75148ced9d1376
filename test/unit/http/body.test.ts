import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { AppError } from '../../../src/domain/errors.ts'
import { deferContinue, RequestAborted, readBody, respondAndDrain } from '../../../src/http/body.ts'

const LIMIT = 1_000
const servers: Server[] = []

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** Answers with the length of the body or the code of the refusal; `seen` settles with what readBody did with the first request. */
async function startServer(
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
  return { port: (server.address() as AddressInfo).port, seen: seen.promise }
}

interface Raw {
  readonly socket: Socket
  /** Everything received so far that `until` matches. */
  receive(until: RegExp): Promise<string>
  /** Settles when the connection is gone, with all that came and the error, if it was cut. */
  readonly ended: Promise<{ text: string; error: Error | null }>
}

function open(port: number): Raw {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  let error: Error | null = null
  const ended = new Promise<{ text: string; error: Error | null }>((resolve) => {
    socket.on('error', (problem) => {
      error = problem
    })
    socket.on('close', () => resolve({ text, error }))
  })
  const waiting: (() => void)[] = []
  socket.on('data', (chunk) => {
    text += chunk
    for (const look of waiting) look()
  })
  const receive = (until: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => until.test(text) && resolve(text)
      waiting.push(look)
      void ended.then(() => reject(new Error(`the connection ended after: ${text}`)))
      look()
    })
  return { socket, receive, ended }
}

const head = (...headers: string[]) =>
  `POST / HTTP/1.1\r\nHost: x\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n`
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

describe('readBody', () => {
  it('gives a body of known length', async () => {
    const { port, seen } = await startServer()
    open(port).socket.write(`${head('Content-Length: 5')}hello`)
    expect(await seen).toEqual(Buffer.from('hello'))
  })

  it('gives a body that comes in chunks', async () => {
    const { port, seen } = await startServer()
    const { socket } = open(port)
    socket.write(head('Transfer-Encoding: chunked') + chunk('hel'))
    socket.write(`${chunk('lo')}0\r\n\r\n`)
    expect(await seen).toEqual(Buffer.from('hello'))
  })

  it.each([[head()], [head('Content-Length: 0')], [`${head('Transfer-Encoding: chunked')}0\r\n\r\n`]])(
    'is empty for %j',
    async (request) => {
      const { port, seen } = await startServer()
      open(port).socket.write(request)
      expect(await seen).toEqual(Buffer.alloc(0))
    },
  )

  it('takes exactly the limit and keeps the connection', async () => {
    const { port } = await startServer()
    const { socket, receive } = open(port)
    for (let call = 1; call <= 2; call += 1) {
      socket.write(head(`Content-Length: ${LIMIT}`) + 'x'.repeat(LIMIT))
      await receive(new RegExp(String.raw`^(HTTP/1.1 200 [\s\S]*?\r\n\r\n${LIMIT}){${call}}$`))
    }
  })

  it('refuses one byte more by its declared length, before any of it comes', async () => {
    const { port, seen } = await startServer()
    const { socket, receive } = open(port)
    socket.write(head(`Content-Length: ${LIMIT + 1}`))
    expect(await seen).toMatchObject({ code: 'too_large', message: 'body too large: at most 1000 bytes are accepted' })
    expect(await receive(/refused$/)).toMatch(/^HTTP\/1.1 413 /)
  })

  it('refuses one byte more while streaming', async () => {
    const { port, seen } = await startServer()
    const { socket, receive } = open(port)
    socket.write(head('Transfer-Encoding: chunked') + chunk('x'.repeat(LIMIT)) + chunk('y'))
    expect(await seen).toMatchObject({ code: 'too_large' })
    expect(await receive(/refused$/)).toMatch(/^HTTP\/1.1 413 [\s\S]*Connection: close/)
  })

  it.each([
    ['declares', 'Content-Length: 100'],
    ['streams', 'Transfer-Encoding: chunked'],
  ])('ends quietly when a client that %s its body leaves half way', async (_, framing) => {
    const begun = Promise.withResolvers<void>()
    const { port, seen } = await startServer((request) => {
      request.once('data', () => begun.resolve())
      return readBody(request, LIMIT)
    })
    const { socket } = open(port)
    socket.write(`${head(framing)}5\r\nhello\r\n`)
    await begun.promise
    socket.resetAndDestroy()
    expect(await seen).toBeInstanceOf(RequestAborted)
  })

  it('ends quietly when the client left before the body was read', async () => {
    const left = Promise.withResolvers<void>()
    const { port, seen } = await startServer(async (request) => {
      request.socket.on('close', left.resolve)
      await left.promise
      return readBody(request, LIMIT)
    })
    const { socket } = open(port)
    socket.write(head('Content-Length: 100'), () => socket.destroy())
    expect(await seen).toBeInstanceOf(RequestAborted)
  })
})

describe('respondAndDrain', () => {
  it('lets a client finish sending although it has its answer: no reset, and then the end', async () => {
    const { port } = await startServer()
    const { socket, ended, receive } = open(port)
    const part = chunk('x'.repeat(16_384))
    socket.write(head('Transfer-Encoding: chunked') + part)
    await receive(/refused$/)
    for (let sent = 0; sent < 40; sent += 1) socket.write(part)
    socket.write('0\r\n\r\n')
    const { text, error } = await ended
    expect(error).toBeNull()
    expect(text).toMatch(/^HTTP\/1.1 413 [\s\S]*\r\n\r\nrefused$/)
  })

  it('drops no more than its bound: a client that never stops is cut', async () => {
    const { port } = await startServer()
    const { socket, ended } = open(port)
    const part = chunk('x'.repeat(65_536))
    let sent = 0
    const send = () => {
      while (socket.writable && socket.write(part)) sent += part.length
    }
    socket.on('drain', send)
    socket.write(head('Transfer-Encoding: chunked'))
    send()
    const { text } = await ended
    expect(text).toMatch(/refused$/)
    expect(sent).toBeLessThan(50_000_000)
  })

  it('does not wait for a client that sends nothing more', async () => {
    const { port } = await startServer()
    const { socket, ended } = open(port)
    const startedAt = performance.now()
    socket.write(head(`Content-Length: ${LIMIT + 1}`))
    await ended
    expect(performance.now() - startedAt).toBeLessThan(3_000)
  })
})

describe('deferContinue', () => {
  const expecting = (length: number) => head(`Content-Length: ${length}`, 'Expect: 100-continue')

  it('asks for the body when it is read, and keeps the connection', async () => {
    const { port } = await startServer()
    const { socket, receive } = open(port)
    socket.write(expecting(5))
    await receive(/^HTTP\/1.1 100 Continue\r\n\r\n$/)
    socket.write('hello')
    expect(await receive(/\r\n\r\n5$/)).not.toMatch(/Connection: close/)
  })

  it('refuses what is too large without asking for it', async () => {
    const { port } = await startServer()
    const times: number[] = []
    for (let count = 0; count < 3; count += 1) {
      const { socket, ended } = open(port)
      const startedAt = performance.now()
      socket.write(expecting(LIMIT + 1))
      expect((await ended).text).toMatch(/^HTTP\/1.1 413 [\s\S]*Connection: close/)
      times.push(performance.now() - startedAt)
    }
    // The shortest: on a busy machine, one may take as long as a body would be waited for.
    expect(Math.min(...times), 'nothing is on its way').toBeLessThan(900)
  })

  it('closes the connection of a request that is answered without its body', async () => {
    const { port } = await startServer(async () => Buffer.alloc(0))
    const { socket, ended } = open(port)
    socket.write(expecting(5))
    expect((await ended).text).toMatch(/^HTTP\/1.1 200 [\s\S]*Connection: close/)
  })
})
