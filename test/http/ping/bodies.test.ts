/** Bodies of pings: stored byte by byte; of a longer one the last 10,240 bytes (design, section 3.3). No body costs a ping. */

import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { exchange, LAST_CHUNK, openConnection, writeChunk, writeHead, writePost } from '../../support/http.ts'
import { usePings } from './fixture.ts'

const LIMIT = 10_240
const CHUNKED = 'Transfer-Encoding: chunked'

const { app, check, stored } = usePings()
const bodies = async () => (await stored()).map(({ body }) => body)
const shown = async () => (await app.client.get(`/checks/${check.id}/pings`)).body.pings[0].body
const post = (body: Buffer | string, ...headers: string[]) =>
  exchange(app.pingUrl, writePost(check.target, body, ...headers))

const CUT = 'body too large: 10240 bytes at most; the ping was recorded with the last 10240'
const WITHOUT = 'body too large: 10240 bytes at most; the ping was recorded without it'
const MEGABYTE = 1_048_576
/** Whose end cannot be mistaken for another part. */
const longBody = (length: number) => Buffer.from('0123456789abcdef'.repeat(Math.ceil(length / 15))).subarray(-length)

/** What the API shows of the newest ping. */
const newest = async () => (await app.client.get(`/checks/${check.id}/pings`)).body.pings[0]

/** A 413, and a ping that counts, with the end of `body`; without a body, with none. */
async function expectRecorded({ status, text }: { status: number; text: string }, body: Buffer | null): Promise<void> {
  expect({ status, text }).toEqual({ status: 413, text: body === null ? WITHOUT : CUT })
  expect(await stored()).toMatchObject([{ body: body === null ? null : body.subarray(-LIMIT), isBodyTruncated: true }])
  expect(await newest()).toMatchObject({
    body: body === null ? null : body.subarray(-LIMIT).toString(),
    body_truncated: true,
  })
  expect((await app.client.get(`/checks/${check.id}`)).body).toMatchObject({
    status: 'up',
    last_ping_at: expect.stringMatching(/Z$/),
  })
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
    await exchange(app.pingUrl, writePost(`${check.target}${rest}`, 'why'))
    expect(await bodies()).toEqual([Buffer.from('why')])
  })

  it.each([
    ['Content-Length: 0', ''],
    [CHUNKED, LAST_CHUNK],
    ['X-Nothing: said', ''],
  ])('that is empty is null: %s', async (header, body) => {
    expect((await exchange(app.pingUrl, writeHead('POST', check.target, header) + body)).status).toBe(200)
    expect(await bodies()).toEqual([null])
    expect(await shown()).toBeNull()
  })

  it.each(['GET', 'HEAD'])('of a %s is not stored, however large', async (method) => {
    for (const length of [5, LIMIT + 1]) {
      const head = writeHead(method, check.target, `Content-Length: ${length}`)
      expect((await exchange(app.pingUrl, head, 'x'.repeat(length))).status).toBe(200)
    }
    expect(await bodies()).toEqual([null, null])
  })

  it('of a GET is skipped, and the connection goes on', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('GET', check.target, 'Content-Length: 50000'), 'x'.repeat(50_000))
    expect((await connection.receive()).status).toBe(200)
    connection.send(writePost(check.target, 'second'))
    expect((await connection.receive()).status).toBe(200)
    connection.socket.destroy()
    expect(await bodies()).toEqual([null, Buffer.from('second')])
  })
})

describe('clients: a body over 10 KB', () => {
  it('is stored whole at 10,240 bytes, by Content-Length', async () => {
    expect((await post('x'.repeat(LIMIT))).status).toBe(200)
    expect(await stored()).toMatchObject([{ body: { length: LIMIT }, isBodyTruncated: false }])
    expect(await newest()).toMatchObject({ body_truncated: false })
  })

  it.each([LIMIT + 1, 3 * LIMIT, MEGABYTE])('of %s bytes is stored with its last 10,240', async (length) => {
    const body = longBody(length)
    await expectRecorded(await post(body), body)
  })

  it('is measured in bytes, not in characters, and may be cut within one', async () => {
    await expectRecorded(await post('€'.repeat(3_414)), Buffer.from('€'.repeat(3_414)))
    expect((await post('€'.repeat(3_413))).status).toBe(200)
  })

  it.each([
    ['one chunk', [LIMIT]],
    ['many chunks', Array(40).fill(256)],
  ])('is stored whole at 10,240 bytes in %s', async (_, sizes: number[]) => {
    const chunks = sizes.map((size) => writeChunk('x'.repeat(size)))
    expect((await exchange(app.pingUrl, writeHead('POST', check.target, CHUNKED), ...chunks, LAST_CHUNK)).status).toBe(
      200,
    )
    expect(await bodies()).toEqual([Buffer.from('x'.repeat(LIMIT))])
  })

  it.each([
    ['10,241 bytes', LIMIT + 1, 1_000],
    ['a megabyte', MEGABYTE, 65_536],
  ])('of %s in chunks is stored with its last 10,240', async (_, length, size) => {
    const body = longBody(length)
    const chunks: Buffer[] = []
    for (let at = 0; at < length; at += size) chunks.push(writeChunk(body.subarray(at, at + size)))
    const response = await exchange(app.pingUrl, writeHead('POST', check.target, CHUNKED), ...chunks, LAST_CHUNK)
    await expectRecorded(response, body)
  })

  it('does not count the framing of chunks', async () => {
    const chunks = Array.from({ length: 1_000 }, () => Buffer.from('1;note="of no weight"\r\nx\r\n'))
    const { status } = await exchange(app.pingUrl, writeHead('POST', check.target, CHUNKED), ...chunks, LAST_CHUNK)
    expect(status).toBe(200)
    expect((await bodies())[0]).toHaveLength(1_000)
  })

  it('above a megabyte is recorded without text, before any of it comes, and the connection is closed', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('POST', check.target, `Content-Length: ${MEGABYTE + 1}`))
    const response = await connection.receive('POST')
    await expectRecorded(response, null)
    expect(response.headers.connection).toBe('close')
    expect((await connection.ended).error).toBeNull()
  })

  it('above a megabyte in chunks is recorded without text as soon as it is, and the connection is closed', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('POST', check.target, CHUNKED), writeChunk(longBody(MEGABYTE)), writeChunk('y'))
    const response = await connection.receive('POST')
    await expectRecorded(response, null)
    expect(response.headers.connection).toBe('close')
    expect((await connection.ended).error).toBeNull()
  })

  it('of a failure still marks the check down and notifies: 30 KB, as borgmatic sends by default', async () => {
    const body = longBody(30_000)
    await post('done')
    const { status, text } = await exchange(app.pingUrl, writePost(`${check.target}/fail`, body))
    expect({ status, text }).toEqual({ status: 413, text: CUT })
    expect((await app.client.get(`/checks/${check.id}`)).body.status).toBe('down')
    const { rows } = await app.database.query<{ type: string; text: Buffer }>(
      'select e.type, e.last_body as text from events e join checks c on c.key = e.check_key where c.public_id = $1',
      [check.publicId],
    )
    expect(rows).toEqual([{ type: 'check.down', text: body.subarray(-4_096) }])
  })

  it('may be sent again, as some clients do after any error: a failure is one flip and one event', async () => {
    for (let i = 0; i < 3; i += 1)
      expect((await exchange(app.pingUrl, writePost(`${check.target}/fail`, longBody(20_000)))).status).toBe(413)
    expect(await stored()).toHaveLength(3)
    expect((await app.client.get(`/checks/${check.id}/flips`)).body.flips.map(({ to }: { to: string }) => to)).toEqual([
      'down',
      'new',
    ])
    const { rows } = await app.database.query(
      'select from events e join checks c on c.key = e.check_key where c.public_id = $1',
      [check.publicId],
    )
    expect(rows).toHaveLength(1)
  })

  it('with a run id is stored once, and a repeat gets the same status', async () => {
    const rid = randomUUID()
    const send = (length: number) =>
      exchange(app.pingUrl, writePost(`${check.target}/fail?rid=${rid}`, longBody(length)))
    expect(await send(20_000)).toMatchObject({ status: 413, text: CUT })
    expect(await send(20_000)).toMatchObject({
      status: 413,
      text: 'body too large: 10240 bytes at most; the ping was recorded before',
    })
    expect((await send(100)).status).toBe(200)
    expect(await stored()).toHaveLength(1)
  })

  it('keeps its warnings', async () => {
    const { status, headers } = await exchange(
      app.pingUrl,
      writePost(`${check.target}?duration=soon`, longBody(20_000)),
    )
    expect({ status, warning: headers['ping-warning'] }).toEqual({
      status: 413,
      warning: 'duration ignored: not an integer from 0 to 604800000',
    })
  })

  it.each([
    ['of 20 KB', (path: string) => writePost(path, longBody(20_000))],
    ['above a megabyte', (path: string) => writeHead('POST', path, `Content-Length: ${MEGABYTE + 1}`)],
    ['that is compressed', (path: string) => writePost(path, 'x', 'Content-Encoding: gzip')],
  ])('%s to an unknown check gets 404', async (_, write) => {
    expect(await exchange(app.pingUrl, write(`/ping/${randomUUID()}`))).toMatchObject({
      status: 404,
      text: 'no such check',
    })
  })
})

describe('a compressed body', () => {
  it.each(['gzip', 'GZIP', 'br', 'deflate', 'zstd', 'gzip, identity'])(
    'is not read, and its ping counts: %s',
    async (encoding) => {
      const { status, text } = await exchange(
        app.pingUrl,
        writePost(`${check.target}/fail`, gzipSync('disk full'), `Content-Encoding: ${encoding}`),
      )
      expect({ status, text }).toEqual({
        status: 415,
        text: 'compressed bodies are not supported; the ping was recorded without it',
      })
      expect(await stored()).toMatchObject([{ type: 'fail', body: null, isBodyTruncated: true }])
      expect(await newest()).toMatchObject({ body: null, body_truncated: true })
      expect((await app.client.get(`/checks/${check.id}`)).body.status).toBe('down')
    },
  )

  it('is not read as a transfer coding', async () => {
    const head = writeHead('POST', check.target, 'Transfer-Encoding: gzip, chunked')
    expect((await exchange(app.pingUrl, head, writeChunk(gzipSync('x')), LAST_CHUNK)).status).toBe(415)
    expect(await stored()).toMatchObject([{ body: null, isBodyTruncated: true }])
  })

  it('with a run id that was recorded before', async () => {
    const path = `${check.target}?rid=${randomUUID()}`
    await exchange(app.pingUrl, writePost(path, 'done'))
    expect(await exchange(app.pingUrl, writePost(path, 'x', 'Content-Encoding: gzip'))).toMatchObject({
      status: 415,
      text: 'compressed bodies are not supported; the ping was recorded before',
    })
  })

  it.each(['identity', 'Identity', ''])('is not a body with Content-Encoding: %j', async (encoding) => {
    expect((await post('text', `Content-Encoding: ${encoding}`)).status).toBe(200)
    expect(await bodies()).toEqual([Buffer.from('text')])
  })

  it('does not matter when it is empty or not read', async () => {
    expect((await exchange(app.pingUrl, writeHead('POST', check.target, 'Content-Encoding: gzip'))).status).toBe(200)
    expect((await exchange(app.pingUrl, writeHead('GET', check.target, 'Content-Encoding: gzip'))).status).toBe(200)
    expect(await bodies()).toEqual([null, null])
  })
})
