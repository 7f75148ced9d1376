/** Bodies that are too many, or in too many pieces. No credential is needed for any of them. */

import { randomUUID } from 'node:crypto'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import {
  type Connection,
  exchange,
  LAST_CHUNK,
  openConnection,
  writeChunk,
  writeHead,
  writePost,
} from '../../support/http.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'

let publicId: string
const open: Connection[] = []

const app = use(startTestApp)
beforeAll(async () => {
  ;({ publicId } = await app.createCheck())
})
afterEach(async () => {
  for (const { socket } of open) socket.destroy()
  await Promise.all(open.splice(0).map(({ ended }) => ended))
})

const LOG_IN = '/api/v1/auth/login'
const JSON_TYPE = 'Content-Type: application/json'
const CHUNKED = 'Transfer-Encoding: chunked'
const chunks = (count: number, size: number) =>
  Buffer.concat(Array.from({ length: count }, () => writeChunk('x'.repeat(size))))
const newest = async () => (await app.storedPings(publicId)).at(-1)

describe('a body in short chunks', () => {
  it('of which there are 1,024 is taken whole', async () => {
    const { status } = await exchange(
      app.pingUrl,
      writeHead('POST', `/ping/${publicId}`, CHUNKED),
      chunks(1_024, 1),
      LAST_CHUNK,
    )
    expect(status).toBe(200)
    expect((await newest())?.body).toEqual(Buffer.from('x'.repeat(1_024)))
  })

  it('of 16 bytes is taken whole, however many there are', async () => {
    const { status, text } = await exchange(
      app.pingUrl,
      writeHead('POST', `/ping/${publicId}/fail`, CHUNKED),
      chunks(3_000, 16),
      LAST_CHUNK,
    )
    expect([status, text]).toEqual([413, expect.stringContaining('recorded with the last 10240')])
  })

  it('with one more is cut off: a ping is recorded without its text', async () => {
    const connection = openConnection(app.pingUrl)
    // The rest never comes.
    connection.send(writeHead('POST', `/ping/${publicId}/7`, CHUNKED), chunks(1_025, 15))
    const { status, text, headers } = await connection.receive('POST')
    expect([status, headers.connection]).toEqual([400, 'close'])
    expect(text).toBe('the body comes in more than 1024 chunks of less than 16 bytes; the ping was recorded without it')
    await connection.ended
    expect(await newest()).toMatchObject({ type: 'fail', exitCode: 7, body: null, isBodyTruncated: true })
  })

  it.each([
    ['a log-in', LOG_IN, JSON_TYPE],
    ['a form', '/login', 'Content-Type: application/x-www-form-urlencoded'],
    [
      'a call with an unknown key',
      '/api/v1/checks',
      `${JSON_TYPE}\r\nAuthorization: Bearer hbk_unknown0_${'a'.repeat(32)}`,
    ],
  ])('with one more is cut off: %s', async (_, path, header) => {
    const connection = openConnection(app.apiUrl)
    connection.send(writeHead('POST', path, header, 'Sec-Fetch-Site: same-origin', CHUNKED), chunks(1_025, 1))
    const { status, headers } = await connection.receive('POST')
    expect([400, 401]).toContain(status)
    expect(headers.connection).toBe('close')
    await connection.ended
  })
})

describe('bodies that are being read', () => {
  /** Each holds 64 KB: 512 of them hold all. */
  async function holdAll(): Promise<void> {
    const body = writeChunk('x'.repeat(65_536))
    for (let index = 0; index < 512; index += 1) {
      const connection = openConnection(app.apiUrl)
      open.push(connection)
      connection.send(writeHead('POST', LOG_IN, JSON_TYPE, CHUNKED), body)
    }
    await eventually('there is no room', async () => (await logIn()).status === 503)
  }
  const logIn = () => exchange(app.apiUrl, writePost(LOG_IN, '{}', JSON_TYPE))
  const fail = () => exchange(app.pingUrl, writePost(`/ping/${publicId}/fail`, 'what went wrong'))

  it('take 32 MiB in all: then 503, pings are recorded without text, and what ends makes room', async () => {
    await holdAll()
    const { status, text, headers } = await logIn()
    expect([status, headers['retry-after']]).toEqual([503, '5'])
    expect(JSON.parse(text)).toEqual({ error: 'too many bodies are being read at the moment', code: 'unavailable' })

    const lost = await fail()
    expect([lost.status, lost.headers['retry-after']]).toEqual([503, '5'])
    expect(lost.text).toBe('too many bodies are being read at the moment; the ping was recorded without it')
    expect(await newest()).toMatchObject({ type: 'fail', body: null, isBodyTruncated: true })
    expect((await exchange(app.pingUrl, writeHead('GET', `/ping/${publicId}`))).status).toBe(200)

    for (const { socket } of open) socket.destroy()
    await eventually('there is room', async () => (await logIn()).status === 400)
    expect((await fail()).status).toBe(200)
    expect((await newest())?.body).toEqual(Buffer.from('what went wrong'))
  })

  it('give their room back however they end', async () => {
    const large = `{"a":"${'x'.repeat(65_000)}"}`
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          if (index % 4 === 0) return exchange(app.apiUrl, writePost(LOG_IN, large, JSON_TYPE))
          if (index % 4 === 1) return exchange(app.apiUrl, writePost('/nowhere', large, JSON_TYPE))
          if (index % 4 === 2) return exchange(app.pingUrl, writePost(`/ping/${randomUUID()}`, large.slice(0, 10_000)))
          const connection = openConnection(app.apiUrl)
          // Behind a response that waits: Node closes none of these.
          connection.send(...Array.from({ length: 8 }, () => writePost(LOG_IN, large, JSON_TYPE)))
          await connection.receive('POST')
          connection.socket.resetAndDestroy()
          return connection.ended
        }),
      )
    }
    // 800 x 64 KB are more than there is room for.
    const statuses = await eventually('all is given back', async () => {
      const found = await Promise.all(
        Array.from({ length: 100 }, () => exchange(app.apiUrl, writePost(LOG_IN, large, JSON_TYPE))),
      )
      return found.every(({ status }) => status === 400) ? found : false
    })
    expect(statuses).toHaveLength(100)
  })
})
