/** What a ping carries: kept byte for byte up to 10,240 of them, refused beyond, and never at the price of a cut connection (design, section 3.3). */

import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../../support/app.ts'
import {
  type Connection,
  exchange,
  LAST_CHUNK,
  openConnection,
  writeChunk,
  writeHead,
  writePost,
} from '../../support/http.ts'

const LIMIT = 10_240
const CHUNKED = 'Transfer-Encoding: chunked'

let app: TestApp
let id: string
let publicId: string
let target: string

beforeAll(async () => {
  app = await startTestApp()
})
afterAll(() => app.close())
beforeEach(async () => {
  ;({ id, publicId } = await app.createCheck({ name: `Job ${randomUUID()}` }))
  target = `/ping/${publicId}`
})

const stored = () => app.storedPings(publicId)
const bodies = async () => (await stored()).map(({ body }) => body)
const shown = async () => (await app.call('GET', `/checks/${id}/pings`)).body.pings[0].body
const post = (body: Buffer | string, ...headers: string[]) => exchange(app.pingUrl, writePost(target, body, ...headers))

/** Refused, told so, and left no trace. */
async function expectTooLarge({ status, text }: { status: number; text: string }): Promise<void> {
  expect({ status, text }).toEqual({
    status: 413,
    text: 'body too large: at most 10240 bytes; the ping was not recorded\n',
  })
  expect(await stored()).toEqual([])
  expect((await app.call('GET', `/checks/${id}`)).body).toMatchObject({ status: 'new', last_ping_at: null })
}

describe('a body', () => {
  it.each([
    ['text', Buffer.from('disk full\n')],
    ['NUL', Buffer.from('a\0b\0')],
    ['every byte', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['invalid UTF-8', Buffer.from([0xff, 0xfe, 0xc3, 0x28, 0xed, 0xa0, 0x80])],
    ['a multibyte character cut at the end', Buffer.from('Größe: 5 €').subarray(0, -1)],
    ['a byte order mark', Buffer.from('\ufefftext')],
    ['line ends of all kinds', Buffer.from('\r\n\n\r\r\n')],
  ])('is kept byte for byte: %s', async (_, body) => {
    expect((await post(body)).status).toBe(200)
    expect(await bodies()).toEqual([body])
    expect(await shown()).toBe(body.toString('utf8'))
  })

  it('is shown with replacement characters where it is no text', async () => {
    await post(Buffer.from('Größe').subarray(0, 4))
    expect(await shown()).toBe('Gr\ufffd'.replace('\ufffd', 'ö'))
    await post(Buffer.from('Größe').subarray(0, 3))
    expect(await shown()).toBe('Gr\ufffd')
  })

  it.each(['text/plain', 'application/json', 'application/x-www-form-urlencoded', 'multipart/form-data', 'nonsense'])(
    'may call itself anything: %s',
    async (type) => {
      expect((await post('a=1', `Content-Type: ${type}`)).status).toBe(200)
      expect(await bodies()).toEqual([Buffer.from('a=1')])
    },
  )

  it.each(['', '/start', '/fail', '/log', '/9'])('goes with every ping: %j', async (rest) => {
    await exchange(app.pingUrl, writePost(`${target}${rest}`, 'why'))
    expect(await bodies()).toEqual([Buffer.from('why')])
  })

  it.each([
    ['Content-Length: 0', ''],
    [CHUNKED, LAST_CHUNK],
    ['X-Nothing: said', ''],
  ])('that is empty is none: %s', async (header, body) => {
    expect((await exchange(app.pingUrl, writeHead('POST', target, header) + body)).status).toBe(200)
    expect(await bodies()).toEqual([null])
    expect(await shown()).toBeNull()
  })

  it.each(['GET', 'HEAD'])('of a %s is not kept, however large', async (method) => {
    for (const length of [5, LIMIT + 1]) {
      const head = writeHead(method, target, `Content-Length: ${length}`)
      expect((await exchange(app.pingUrl, head, 'x'.repeat(length))).status).toBe(200)
    }
    expect(await bodies()).toEqual([null, null])
  })

  it('of a GET is skipped: the next request on the connection is understood', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('GET', target, 'Content-Length: 50000'), 'x'.repeat(50_000))
    expect((await connection.receive()).status).toBe(200)
    connection.send(writePost(target, 'second'))
    expect((await connection.receive()).status).toBe(200)
    connection.socket.destroy()
    expect(await bodies()).toEqual([null, Buffer.from('second')])
  })
})

describe('the limit', () => {
  it('is 10,240 bytes by Content-Length', async () => {
    expect((await post('x'.repeat(LIMIT))).status).toBe(200)
    expect((await bodies())[0]).toHaveLength(LIMIT)
  })

  it('counts bytes, not characters', async () => {
    await expectTooLarge(await post('€'.repeat(3_414)))
    expect((await post('€'.repeat(3_413))).status).toBe(200)
  })

  it('refuses 10,241 by Content-Length alone: the answer comes before the body', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('POST', target, `Content-Length: ${LIMIT + 1}`))
    await expectTooLarge(await connection.receive())
    connection.socket.destroy()
  })

  it.each([
    ['one chunk', [LIMIT]],
    ['many chunks', Array(40).fill(256)],
  ])('is 10,240 bytes in %s', async (_, sizes: number[]) => {
    const chunks = sizes.map((size) => writeChunk('x'.repeat(size)))
    expect((await exchange(app.pingUrl, writeHead('POST', target, CHUNKED), ...chunks, LAST_CHUNK)).status).toBe(200)
    expect((await bodies())[0]).toHaveLength(LIMIT)
  })

  it('refuses one byte more in chunks, while they come', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('POST', target, CHUNKED), writeChunk('x'.repeat(LIMIT)), writeChunk('y'))
    await expectTooLarge(await connection.receive())
    connection.socket.destroy()
  })

  it('does not count what frames the chunks', async () => {
    const chunks = Array.from({ length: 1_000 }, () => Buffer.from('1;note="of no weight"\r\nx\r\n'))
    const { status } = await exchange(app.pingUrl, writeHead('POST', target, CHUNKED), ...chunks, LAST_CHUNK)
    expect(status).toBe(200)
    expect((await bodies())[0]).toHaveLength(1_000)
  })
})

describe('Expect: 100-continue', () => {
  const expecting = (length: number, path = target) =>
    writeHead('POST', path, `Content-Length: ${length}`, 'Expect: 100-continue')

  async function withConnection<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = openConnection(app.pingUrl)
    try {
      return await use(connection)
    } finally {
      connection.socket.destroy()
    }
  }

  it('gets its 100, and then its 200', () =>
    withConnection(async (connection) => {
      connection.send(expecting(LIMIT))
      expect((await connection.receive()).status).toBe(100)
      connection.send('x'.repeat(LIMIT))
      const { status, headers } = await connection.receive()
      expect({ status, connection: headers.connection }).toEqual({ status: 200, connection: 'keep-alive' })
      expect((await bodies())[0]).toHaveLength(LIMIT)
    }))

  it('is refused without a 100 when the body is too large', () =>
    withConnection(async (connection) => {
      connection.send(expecting(LIMIT + 1))
      await expectTooLarge(await connection.receive())
      expect(await connection.ended).toEqual({ rest: '', error: null })
    }))

  it('is refused without a 100 when there is no such path', () =>
    withConnection(async (connection) => {
      connection.send(expecting(5, '/nowhere'))
      expect((await connection.receive()).status).toBe(404)
    }))

  it('is taken by a GET as word that no body is needed', () =>
    withConnection(async (connection) => {
      connection.send(writeHead('GET', target, 'Content-Length: 5', 'Expect: 100-continue'))
      expect((await connection.receive()).status).toBe(200)
    }))

  it('other expectations cost no heartbeat', async () => {
    expect((await post('x', 'Expect: a-miracle')).status).toBe(200)
    expect(await stored()).toHaveLength(1)
  })
})

describe('a client that is still sending', () => {
  /** Sends everything before it reads a byte, as simple clients do. */
  async function sendThenRead(head: string, part: Buffer, parts: number) {
    const connection = openConnection(app.pingUrl)
    connection.socket.pause()
    connection.send(head)
    for (let sent = 0; sent < parts; sent += 1) {
      await new Promise<void>((resolve, reject) => {
        connection.socket.write(part, (error) => (error ? reject(error) : resolve()))
      })
    }
    connection.socket.resume()
    return { answer: await connection.receive(), ended: await connection.ended }
  }

  it('gets the 413 and no reset, by Content-Length', async () => {
    const head = writeHead('POST', target, `Content-Length: ${64 * 8_192}`)
    const { answer, ended } = await sendThenRead(head, Buffer.alloc(8_192, 'x'), 64)
    await expectTooLarge(answer)
    expect(answer.headers.connection).toBe('close')
    expect(ended).toEqual({ rest: '', error: null })
  })

  it('gets the 413 and no reset, in chunks without end', async () => {
    const { answer, ended } = await sendThenRead(
      writeHead('POST', target, CHUNKED),
      writeChunk(Buffer.alloc(8_192, 'x')),
      64,
    )
    await expectTooLarge(answer)
    expect(ended).toEqual({ rest: '', error: null })
  })

  it.each(['/nowhere', '/ping/{id}/256'])('gets the refusal of %s and no reset', async (path) => {
    const head = writeHead('POST', path.replace('{id}', publicId), `Content-Length: ${64 * 8_192}`)
    const { answer, ended } = await sendThenRead(head, Buffer.alloc(8_192, 'x'), 64)
    expect([400, 404]).toContain(answer.status)
    expect(ended).toEqual({ rest: '', error: null })
  })
})

describe('a compressed body', () => {
  it.each(['gzip', 'GZIP', 'br', 'deflate', 'zstd', 'gzip, identity'])('is not supported: %s', async (encoding) => {
    const { status, text } = await post(gzipSync('disk full'), `Content-Encoding: ${encoding}`)
    expect({ status, text }).toEqual({
      status: 415,
      text: 'compressed bodies are not supported; the ping was not recorded\n',
    })
    expect(await stored()).toEqual([])
  })

  it('is not supported as a transfer coding either', async () => {
    const head = writeHead('POST', target, 'Transfer-Encoding: gzip, chunked')
    expect((await exchange(app.pingUrl, head, writeChunk(gzipSync('x')), LAST_CHUNK)).status).toBe(415)
    expect(await stored()).toEqual([])
  })

  it.each(['identity', 'Identity', ''])('is something else than Content-Encoding: %j', async (encoding) => {
    expect((await post('text', `Content-Encoding: ${encoding}`)).status).toBe(200)
    expect(await bodies()).toEqual([Buffer.from('text')])
  })

  it('that is not there, or that nobody reads, costs no heartbeat', async () => {
    expect((await exchange(app.pingUrl, writeHead('POST', target, 'Content-Encoding: gzip'))).status).toBe(200)
    expect((await exchange(app.pingUrl, writeHead('GET', target, 'Content-Encoding: gzip'))).status).toBe(200)
    expect(await bodies()).toEqual([null, null])
  })
})
