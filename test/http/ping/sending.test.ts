/** Clients that ask before they send, and clients that do not read while they send: both get their response. */

import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Connection, exchange, openConnection, writeChunk, writeHead, writePost } from '../../support/http.ts'
import { usePings } from './fixture.ts'

const LIMIT = 10_240
/** A longer body is not read. */
const READ_LIMIT = 1_048_576
const CHUNKED = 'Transfer-Encoding: chunked'

const { app, check, stored } = usePings()

async function expectTooLarge({ status }: { status: number }): Promise<void> {
  expect(status).toBe(413)
  expect(await stored()).toMatchObject([{ isBodyTruncated: true }])
}

describe('Expect: 100-continue', () => {
  const expecting = (length: number, path = check.target) =>
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
      expect((await stored())[0]!.body).toHaveLength(LIMIT)
    }))

  it('gets its 100 for a body that is read and not kept whole, and then its 413', () =>
    withConnection(async (connection) => {
      connection.send(expecting(LIMIT + 1))
      expect((await connection.receive()).status).toBe(100)
      connection.send('x'.repeat(LIMIT + 1))
      const response = await connection.receive()
      await expectTooLarge(response)
      expect(response.headers.connection).toBe('keep-alive')
    }))

  it('is rejected without a 100 when the body is not read', () =>
    withConnection(async (connection) => {
      connection.send(expecting(READ_LIMIT + 1))
      await expectTooLarge(await connection.receive())
      expect(await connection.ended).toEqual({ rest: '', error: null })
    }))

  it('is rejected without a 100 when the path is unknown', () =>
    withConnection(async (connection) => {
      connection.send(expecting(5, '/nowhere'))
      expect((await connection.receive()).status).toBe(404)
    }))

  it('of a GET gets its 200 at once', () =>
    withConnection(async (connection) => {
      connection.send(writeHead('GET', check.target, 'Content-Length: 5', 'Expect: 100-continue'))
      expect((await connection.receive()).status).toBe(200)
    }))

  it('other expectations are ignored', async () => {
    expect((await exchange(app.pingUrl, writePost(check.target, 'x', 'Expect: a-miracle'))).status).toBe(200)
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
      // The server is in this process: let it work while we are still sending.
      await wait(1)
    }
    connection.socket.resume()
    return { response: await connection.receive(), ended: await connection.ended }
  }

  it('gets the 413 and no reset, by Content-Length', async () => {
    const head = writeHead('POST', check.target, `Content-Length: ${64 * 32_768}`)
    const { response, ended } = await sendThenRead(head, Buffer.alloc(32_768, 'x'), 64)
    await expectTooLarge(response)
    expect(response.headers.connection).toBe('close')
    expect(ended).toEqual({ rest: '', error: null })
  })

  it('gets the 413 and no reset, in chunks without end', async () => {
    const { response, ended } = await sendThenRead(
      writeHead('POST', check.target, CHUNKED),
      writeChunk(Buffer.alloc(32_768, 'x')),
      64,
    )
    await expectTooLarge(response)
    expect(ended).toEqual({ rest: '', error: null })
  })

  it.each(['/nowhere', '/ping/{id}/256'])('gets the rejection of %s and no reset', async (path) => {
    const head = writeHead('POST', path.replace('{id}', check.publicId), `Content-Length: ${64 * 8_192}`)
    const { response, ended } = await sendThenRead(head, Buffer.alloc(8_192, 'x'), 64)
    expect([400, 404]).toContain(response.status)
    expect(ended).toEqual({ rest: '', error: null })
  })
})
