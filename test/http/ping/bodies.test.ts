/** Bodies of pings: stored byte by byte up to 10,240 bytes, rejected beyond, without a reset (design, section 3.3). */

import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { exchange, LAST_CHUNK, openConnection, writeChunk, writeHead, writePost } from '../../support/http.ts'

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

/** Rejected with a message, and nothing is stored. */
async function expectTooLarge({ status, text }: { status: number; text: string }): Promise<void> {
  expect({ status, text }).toEqual({
    status: 413,
    text: 'body too large: at most 10240 bytes; the ping was not recorded',
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

  it('is shown with replacement characters where it is not UTF-8', async () => {
    await post(Buffer.from('Größe').subarray(0, 4))
    expect(await shown()).toBe('Gr\ufffd'.replace('\ufffd', 'ö'))
    await post(Buffer.from('Größe').subarray(0, 3))
    expect(await shown()).toBe('Gr\ufffd')
  })

  it.each(['text/plain', 'application/json', 'application/x-www-form-urlencoded', 'multipart/form-data', 'nonsense'])(
    'may have any type: %s',
    async (type) => {
      expect((await post('a=1', `Content-Type: ${type}`)).status).toBe(200)
      expect(await bodies()).toEqual([Buffer.from('a=1')])
    },
  )

  it.each(['', '/start', '/fail', '/log', '/9'])('is stored with every kind of ping: %j', async (rest) => {
    await exchange(app.pingUrl, writePost(`${target}${rest}`, 'why'))
    expect(await bodies()).toEqual([Buffer.from('why')])
  })

  it.each([
    ['Content-Length: 0', ''],
    [CHUNKED, LAST_CHUNK],
    ['X-Nothing: said', ''],
  ])('that is empty is null: %s', async (header, body) => {
    expect((await exchange(app.pingUrl, writeHead('POST', target, header) + body)).status).toBe(200)
    expect(await bodies()).toEqual([null])
    expect(await shown()).toBeNull()
  })

  it.each(['GET', 'HEAD'])('of a %s is not stored, however large', async (method) => {
    for (const length of [5, LIMIT + 1]) {
      const head = writeHead(method, target, `Content-Length: ${length}`)
      expect((await exchange(app.pingUrl, head, 'x'.repeat(length))).status).toBe(200)
    }
    expect(await bodies()).toEqual([null, null])
  })

  it('of a GET is skipped, and the connection goes on', async () => {
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

  it('rejects 10,241 bytes by Content-Length alone: the response comes before the body', async () => {
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

  it('rejects one byte more in chunks, as they arrive', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('POST', target, CHUNKED), writeChunk('x'.repeat(LIMIT)), writeChunk('y'))
    await expectTooLarge(await connection.receive())
    connection.socket.destroy()
  })

  it('does not count the framing of chunks', async () => {
    const chunks = Array.from({ length: 1_000 }, () => Buffer.from('1;note="of no weight"\r\nx\r\n'))
    const { status } = await exchange(app.pingUrl, writeHead('POST', target, CHUNKED), ...chunks, LAST_CHUNK)
    expect(status).toBe(200)
    expect((await bodies())[0]).toHaveLength(1_000)
  })
})

describe('a compressed body', () => {
  it.each(['gzip', 'GZIP', 'br', 'deflate', 'zstd', 'gzip, identity'])('is not supported: %s', async (encoding) => {
    const { status, text } = await post(gzipSync('disk full'), `Content-Encoding: ${encoding}`)
    expect({ status, text }).toEqual({
      status: 415,
      text: 'compressed bodies are not supported; the ping was not recorded',
    })
    expect(await stored()).toEqual([])
  })

  it('is not supported as a transfer coding', async () => {
    const head = writeHead('POST', target, 'Transfer-Encoding: gzip, chunked')
    expect((await exchange(app.pingUrl, head, writeChunk(gzipSync('x')), LAST_CHUNK)).status).toBe(415)
    expect(await stored()).toEqual([])
  })

  it.each(['identity', 'Identity', ''])('is not a body with Content-Encoding: %j', async (encoding) => {
    expect((await post('text', `Content-Encoding: ${encoding}`)).status).toBe(200)
    expect(await bodies()).toEqual([Buffer.from('text')])
  })

  it('does not matter when it is empty or not read', async () => {
    expect((await exchange(app.pingUrl, writeHead('POST', target, 'Content-Encoding: gzip'))).status).toBe(200)
    expect((await exchange(app.pingUrl, writeHead('GET', target, 'Content-Encoding: gzip'))).status).toBe(200)
    expect(await bodies()).toEqual([null, null])
  })
})
