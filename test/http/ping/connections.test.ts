/** Connections: slow, broken, pipelined, kept alive. */

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { exchange, openConnection, writeHead, writePost } from '../../support/http.ts'
import { eventually } from '../../support/until.ts'
import { usePings } from './fixture.ts'

const { app, check, stored } = usePings()
const get = () => writeHead('GET', check.target)

async function expectWell(): Promise<void> {
  expect((await fetch(`${app.opsUrl}/livez`)).status).toBe(200)
  const before = (await stored()).length
  expect((await exchange(app.pingUrl, get())).status).toBe(200)
  expect((await stored()).length).toBe(before + 1)
}

describe('a slow client', () => {
  it('may send its head and its body byte by byte', async () => {
    const connection = openConnection(app.pingUrl)
    for (const byte of writePost(check.target, 'slow but sure')) {
      connection.send(Buffer.of(byte))
      await wait(2)
    }
    expect((await connection.receive()).status).toBe(200)
    connection.socket.destroy()
    expect(await stored()).toMatchObject([{ body: Buffer.from('slow but sure') }])
  })

  it('that closes its side still gets its response', async () => {
    const connection = openConnection(app.pingUrl, { allowHalfOpen: true })
    connection.socket.end(get())
    expect((await connection.receive()).status).toBe(200)
    expect(await stored()).toHaveLength(1)
  })
})

describe('a request that breaks off', () => {
  it.each([
    ['in its head', () => 'POST /ping/'],
    ['before its body', () => writeHead('POST', check.target, 'Content-Length: 10')],
    ['in its body', () => `${writeHead('POST', check.target, 'Content-Length: 10')}half`],
    ['in its chunks', () => `${writeHead('POST', check.target, 'Transfer-Encoding: chunked')}5\r\nhal`],
    ['before its last chunk', () => `${writeHead('POST', check.target, 'Transfer-Encoding: chunked')}4\r\nhalf\r\n`],
  ])('%s is not recorded, and affects no other', async (_, write) => {
    for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const) {
      const connection = openConnection(app.pingUrl)
      await new Promise<void>((resolve) => connection.socket.write(write(), () => resolve()))
      connection.socket[leave]()
      await connection.ended
    }
    expect(await stored()).toEqual([])
    await expectWell()
  })

  it.each([
    ['', []],
    [', even if it asked for an upgrade', ['Connection: Upgrade', 'Upgrade: websocket']],
  ])('gets 400 when its client still reads%s', async (_, headers) => {
    const connection = openConnection(app.pingUrl, { allowHalfOpen: true })
    connection.socket.end(`${writeHead('POST', check.target, ...headers, 'Content-Length: 10')}half`)
    expect((await connection.receive()).status).toBe(400)
    connection.socket.destroy()
    expect(await stored()).toEqual([])
  })

  it('after it was sent whole is recorded, whether or not its response is read', async () => {
    const connection = openConnection(app.pingUrl)
    await new Promise<void>((resolve) => connection.socket.write(get(), () => resolve()))
    connection.socket.destroy()
    await eventually('the ping is stored', async () => (await stored()).length > 0)
    expect(await stored()).toHaveLength(1)
  })
})

it('MAX_CONNECTIONS of a port may be open; one more closes the oldest that is idle, which is counted, and a closed one makes room', async () => {
  await using own = await startTestApp({ environment: { MAX_CONNECTIONS: '2' } })
  for (const [server, url] of [
    ['ping', own.pingUrl],
    ['api', new URL(own.apiUrl).origin],
    ['ops', own.opsUrl],
  ] as const) {
    const open = [openConnection(url), openConnection(url)]
    for (const connection of open) {
      connection.send(writeHead('GET', '/nowhere'))
      expect([401, 404]).toContain((await connection.receive()).status)
    }
    const more = openConnection(url)
    more.send(writeHead('GET', '/nowhere'))
    expect([401, 404]).toContain((await more.receive()).status)
    expect((await open.shift()!.ended).rest).toBe('')
    open.push(more)
    for (const { socket, ended } of open) {
      socket.destroy()
      await ended
    }
    await eventually('there is room', async () => (await exchange(url, writeHead('GET', '/'))).status > 0)
    const metrics = await eventually('there is room to scrape', async () =>
      (await fetch(`${own.opsUrl}/metrics`, { headers: { connection: 'close' } })).text(),
    )
    expect(metrics).toMatch(new RegExp(`^heartbeat_connections_dropped_total\\{server="${server}"\\} [1-9]`, 'm'))
  }
})

describe('a connection', () => {
  it('carries pipelined pings; responses and history keep their order', async () => {
    const connection = openConnection(app.pingUrl)
    const rests = ['/start', '/log', '/7', '', '/start', '/255', '/log', '/0']
    connection.send(...rests.map((rest) => writeHead('GET', check.target + rest)))
    for (const _ of rests) expect((await connection.receive()).status).toBe(200)
    connection.socket.destroy()
    expect((await stored()).map(({ type, exitCode }) => `${type} ${exitCode}`)).toEqual([
      'start null',
      'log null',
      'fail 7',
      'success 0',
      'start null',
      'fail 255',
      'log null',
      'success 0',
    ])
  })

  it('carries pipelined requests of all kinds; responses keep their order', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(
      writePost(`${check.target}/log`, 'half way'),
      writeHead('GET', '/nowhere'),
      writePost(`${check.target}/7`, 'failed'),
      writeHead('HEAD', check.target),
      writeHead('GET', `${check.target}/256`),
      writeHead('DELETE', check.target),
    )
    const statuses: number[] = []
    for (const method of ['POST', 'GET', 'POST', 'HEAD', 'GET', 'DELETE']) {
      statuses.push((await connection.receive(method)).status)
    }
    connection.socket.destroy()
    expect(statuses).toEqual([200, 404, 200, 200, 400, 405])
    expect(await stored()).toHaveLength(3)
  })

  it.each([
    ['404', () => writeHead('GET', '/nowhere')],
    ['404 for an unknown check, body read', () => writePost(`/ping/${randomUUID()}`, 'x'.repeat(10_240))],
    ['400', () => writeHead('GET', `${check.target}/256`)],
    ['405', () => writeHead('DELETE', check.target)],
    ['413 for a body that was read', () => writePost(check.target, 'x'.repeat(10_241))],
    ['204', () => writeHead('OPTIONS', check.target)],
  ])('goes on after a %s', async (_, write) => {
    const connection = openConnection(app.pingUrl)
    connection.send(write())
    expect((await connection.receive()).headers.connection).toBe('keep-alive')
    connection.send(get())
    expect((await connection.receive()).status).toBe(200)
    connection.socket.destroy()
  })

  it.each([
    ['413 for a body that was not read', () => writeHead('POST', check.target, 'Content-Length: 1048577')],
    ['415', () => writePost(check.target, 'x', 'Content-Encoding: gzip')],
    ['404 with a large body', () => writePost('/nowhere', 'x'.repeat(20_000))],
  ])('is closed after a %s, with Connection: close and without a reset', async (_, write) => {
    const connection = openConnection(app.pingUrl)
    connection.send(write())
    expect((await connection.receive()).headers.connection).toBe('close')
    expect(await connection.ended).toEqual({ rest: '', error: null })
    await expectWell()
  })

  it('ends when the client asks for it', async () => {
    const connection = openConnection(app.pingUrl)
    connection.send(writeHead('GET', check.target, 'Connection: close'))
    expect((await connection.receive()).status).toBe(200)
    expect(await connection.ended).toEqual({ rest: '', error: null })
  })

  it('may speak HTTP/1.0, without a Host', async () => {
    const { status, headers } = await exchange(app.pingUrl, `GET ${check.target} HTTP/1.0\r\n\r\n`)
    expect({ status, connection: headers.connection }).toEqual({ status: 200, connection: 'close' })
    expect(await stored()).toHaveLength(1)
  })

  it('that asks for an upgrade gets plain HTTP/1.1', async () => {
    const upgrade = writeHead(
      'GET',
      check.target,
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: x',
    )
    expect((await exchange(app.pingUrl, upgrade)).status).toBe(200)
  })
})
