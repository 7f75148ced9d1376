/** A server with short timeouts: slow clients do not hold it up, and its close loses no response. */

import { afterEach, describe, expect, it } from 'vitest'
import type { RecordPing } from '../../../src/http/ping/app.ts'
import { openConnection, writeHead, writePost } from '../../support/http.ts'
import { aPingApp, serve } from '../../support/servers.ts'
import { settle } from '../../support/until.ts'

const TARGET = '/ping/0b9f7c52-6f0c-4f6e-9d0e-0a4b4c3d2e1f'
const TOO_SLOW = { status: 408, text: 'the request took too long to arrive' }

let server: Awaited<ReturnType<typeof serve>>
afterEach(() => server.close(0))

interface Limits {
  readonly headersMs: number
  readonly requestMs: number
}

/** They run out while nothing comes. */
const SHORT: Limits = { headersMs: 100, requestMs: 200 }
/** For requests that come whole: on a busy machine, they may take longer than the short ones from the connection on. */
const LONG: Limits = { headersMs: 30_000, requestMs: 30_000 }
/** More than a busy machine takes for what does not wait, and less than the grace periods. */
const SOON_MS = 8_000

async function startServer(limits: Limits, record: RecordPing = async () => 'stored') {
  const recorded: unknown[] = []
  const handler = aPingApp({
    record: (ping) => {
      recorded.push(ping)
      return record(ping)
    },
  })
  server = await serve({ handler, ...limits })
  return { url: server.url, recorded }
}

describe('a request that is never complete', () => {
  it.each([
    ['nothing at all', ''],
    ['half a head', 'GET /ping/'],
    ['half a body', `${writeHead('POST', TARGET, 'Content-Length: 10')}half`],
    ['half its chunks', `${writeHead('POST', TARGET, 'Transfer-Encoding: chunked')}4\r\nhalf\r\n`],
    ['no body, after 100 Continue', writeHead('POST', TARGET, 'Content-Length: 10', 'Expect: 100-continue')],
  ])('gets 408 and is not recorded: %s', async (_, bytes) => {
    const { url, recorded } = await startServer(SHORT)
    const connection = openConnection(url)
    const startedAt = performance.now()
    connection.send(bytes)
    let response = await connection.receive('POST')
    if (response.status === 100) response = await connection.receive('POST')
    expect(response).toMatchObject(TOO_SLOW)
    expect(response.headers.connection).toBe('close')
    expect(await connection.ended).toEqual({ rest: '', error: null })
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
    expect(recorded).toEqual([])
  })

  it('gets 408 even if it sends a byte every 10 ms', async () => {
    const { url, recorded } = await startServer(SHORT)
    const connection = openConnection(url)
    connection.send(writeHead('POST', TARGET, 'Content-Length: 10000'))
    const dripping = setInterval(() => connection.socket.write('x'), 10)
    expect(await connection.receive('POST')).toMatchObject(TOO_SLOW)
    clearInterval(dripping)
    await connection.ended
    expect(recorded).toEqual([])
  })

  it('behind a ping on the same connection does not lose the response to that ping', async () => {
    const { url, recorded } = await startServer({ headersMs: 1_000, requestMs: 1_000 })
    const connection = openConnection(url)
    connection.send(writeHead('GET', TARGET), writeHead('POST', TARGET, 'Content-Length: 10'))
    expect((await connection.receive()).status).toBe(200)
    expect(await connection.receive('POST')).toMatchObject(TOO_SLOW)
    expect(recorded).toHaveLength(1)
  })
})

describe('close', () => {
  /** A ping that is being recorded until `go` is called. */
  async function startSlowPing() {
    const begun = Promise.withResolvers<void>()
    const going = Promise.withResolvers<void>()
    const { url } = await startServer(LONG, async () => {
      begun.resolve()
      await going.promise
      return 'stored'
    })
    const connection = openConnection(url)
    connection.send(writePost(TARGET, 'body'))
    await begun.promise
    return { connection, go: going.resolve }
  }

  it('lets a ping in progress finish, and does not wait for its connection', async () => {
    const { connection, go } = await startSlowPing()
    const closed = server.close(20_000)
    const startedAt = performance.now()
    go()
    const { status, headers } = await connection.receive('POST')
    expect({ status, connection: headers.connection }).toEqual({ status: 200, connection: 'close' })
    await closed
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
  })

  /** Pings sent at once on one connection, all of them being recorded; `go` says of one of them that it is. */
  async function startPipelinedPings(count: number) {
    const goings: PromiseWithResolvers<'stored' | 'unknown'>[] = []
    const allBegun = Promise.withResolvers<void>()
    const { url } = await startServer(LONG, () => {
      const going = Promise.withResolvers<'stored' | 'unknown'>()
      if (goings.push(going) === count) allBegun.resolve()
      return going.promise
    })
    const connection = openConnection(url)
    connection.send(Array.from({ length: count }, () => writeHead('GET', TARGET)).join(''))
    await allBegun.promise
    return { connection, go: (index: number, result: 'stored' | 'unknown') => goings[index]!.resolve(result) }
  }

  it.each([
    ['in their order', [0, 1, 2]],
    ['the other way round', [2, 1, 0]],
    ['the last one early', [0, 2, 1]],
    ['the middle one first', [1, 0, 2]],
  ])('lets all pings of one connection finish, and closes it with the last: recorded %s', async (_, order) => {
    const { connection, go } = await startPipelinedPings(3)
    const startedAt = performance.now()
    const closed = server.close(20_000)
    for (const index of order) {
      go(index, index === 1 ? 'unknown' : 'stored')
      // Each response is written before the next result is known.
      await settle()
    }
    const responses = [await connection.receive(), await connection.receive(), await connection.receive()]
    expect(responses.map(({ status, headers }) => [status, headers.connection])).toEqual([
      [200, 'keep-alive'],
      [404, 'keep-alive'],
      [200, 'close'],
    ])
    expect(await connection.ended).toEqual({ rest: '', error: null })
    await closed
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
  })

  it('does not wait for a connection whose last ping was recorded before, and gets its response after', async () => {
    const { connection, go } = await startPipelinedPings(3)
    go(2, 'stored')
    await settle()
    const startedAt = performance.now()
    const closed = server.close(20_000)
    go(1, 'unknown')
    go(0, 'stored')
    const statuses = [await connection.receive(), await connection.receive(), await connection.receive()]
    expect(statuses.map(({ status }) => status)).toEqual([200, 404, 200])
    expect(await connection.ended).toEqual({ rest: '', error: null })
    await closed
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
  })

  it('cuts what has not finished when the grace period is over', async () => {
    const { connection } = await startSlowPing()
    await server.close(100)
    expect((await connection.ended).rest).toBe('')
  })

  it('does not wait for a client that was rejected and keeps its connection', async () => {
    const { url } = await startServer(LONG)
    const connection = openConnection(url, { allowHalfOpen: true })
    connection.send('nonsense\r\n\r\n')
    expect((await connection.receive()).status).toBe(400)
    const startedAt = performance.now()
    await server.close(20_000)
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
    connection.socket.destroy()
  })
})
