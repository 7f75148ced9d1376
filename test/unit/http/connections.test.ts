/** Which connection goes when there are too many. On sockets of a server, so that Node's own bookkeeping takes part. */

import { EventEmitter } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { createConnectionGroups } from '../../../src/http/client-address.ts'
import { createConnections } from '../../../src/http/connections.ts'
import { exchange, openConnection, writeHead } from '../../support/http.ts'
import { serve } from '../../support/servers.ts'
import { eventually } from '../../support/until.ts'

let server: Awaited<ReturnType<typeof serve>>
let url = ''
let dropped = 0
/** Of requests for /wait, in their order. */
let waiting: (() => void)[] = []
let handled = 0
const opened: Socket[] = []

afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy()
  await server.close(0)
})

async function start(options: { maxConnections?: number; trustedProxies?: readonly string[] } = {}): Promise<void> {
  ;[dropped, waiting, handled] = [0, [], 0]
  const { maxConnections, trustedProxies } = options
  server = await serve({
    ...(maxConnections === undefined ? {} : { maxConnections }),
    ...(trustedProxies === undefined ? {} : { groupOf: createConnectionGroups(trustedProxies) }),
    onConnectionDropped: () => {
      dropped += 1
    },
    handler(request, response) {
      handled += 1
      if (request.url === '/wait') waiting.push(() => response.end('done'))
      else response.end('ok')
    },
  })
  url = server.url
}

/** From an address of its own; with one response, so that the server knows the connection. */
async function open(from = '127.0.0.1', target = '/') {
  const connection = openConnection(url, { localAddress: from })
  opened.push(connection.socket)
  const ask = async () => {
    connection.send(writeHead('GET', target))
    return (await connection.receive()).status
  }
  if (target === '/') expect(await ask()).toBe(200)
  return { ...connection, ask }
}

describe('at the limit of connections', () => {
  it('the one goes that has been without a request for longest; all others and the new one stay', async () => {
    await start({ maxConnections: 3 })
    const [first, second, third] = [await open(), await open(), await open()]
    expect(await first.ask()).toBe(200)
    const fourth = await open()
    await second.ended
    expect(dropped).toBe(1)
    for (const connection of [first, third, fourth]) expect(await connection.ask()).toBe(200)
    await open()
    await first.ended
    expect(dropped).toBe(2)
  })

  it('one that has never sent a request counts from its opening', async () => {
    await start({ maxConnections: 2 })
    const silent = connect(Number(new URL(url).port), '127.0.0.1')
    opened.push(silent)
    await new Promise((resolve) => silent.once('connect', resolve))
    await open()
    const gone = new Promise((resolve) =>
      silent
        .once('close', resolve)
        .on('error', () => {})
        .resume(),
    )
    await open()
    await gone
  })

  it('none goes that has a request in progress: the new one is closed', async () => {
    await start({ maxConnections: 2 })
    const busy = [openConnection(url), openConnection(url)]
    for (const { send, socket } of busy) {
      opened.push(socket)
      send(writeHead('GET', '/wait'))
    }
    await eventually('two requests wait', () => waiting.length === 2)
    expect((await openConnection(url).ended).rest).toBe('')
    expect(dropped).toBe(1)
    for (const go of waiting) go()
    for (const { receive } of busy) expect((await receive()).status).toBe(200)
    await open()
  })

  it('a closed one makes room', async () => {
    await start({ maxConnections: 2 })
    const [first, second] = [await open(), await open()]
    first.send(writeHead('GET', '/', 'Connection: close'))
    await first.ended
    expect((await exchange(url, writeHead('GET', '/'))).status).toBe(200)
    expect(await second.ask()).toBe(200)
    expect(dropped).toBe(0)
  })
})

describe('one address', () => {
  it('has a quarter at most: its own oldest one goes, and others have room', async () => {
    await start({ maxConnections: 8, trustedProxies: [] })
    const other = await open('127.0.0.2')
    const [first, second] = [await open(), await open()]
    const third = await open()
    await first.ended
    expect(dropped).toBe(1)
    for (const connection of [other, second, third]) expect(await connection.ask()).toBe(200)
    for (const address of ['127.0.0.3', '127.0.0.4', '127.0.0.5']) await open(address)
    expect(dropped).toBe(1)
  })

  it('finds its own oldest one, however many older ones others have', () => {
    let closed: string[] = []
    const connections = createConnections(
      8_000,
      (address) => address,
      () => {},
    )
    const openFrom = (remoteAddress: string, name: string) => {
      const socket = Object.assign(new EventEmitter(), { remoteAddress, destroy: () => closed.push(name) })
      connections.open(socket as unknown as Socket)
    }
    for (let count = 0; count < 1_500; count += 1) openFrom('192.0.2.1', 'other')
    for (let count = 0; count < 2_000; count += 1) openFrom('192.0.2.2', `own ${count}`)
    expect(closed).toEqual([])
    openFrom('192.0.2.2', 'new')
    openFrom('192.0.2.2', 'newer')
    expect(closed).toEqual(['own 0', 'own 1'])
    closed = []
    for (let count = 0; count < 501; count += 1) openFrom('192.0.2.1', `late ${count}`)
    expect(closed).toEqual(['other'])
  })

  it('that is a trusted proxy may have all', async () => {
    await start({ maxConnections: 8, trustedProxies: ['127.0.0.1'] })
    const all = []
    for (let count = 0; count < 8; count += 1) all.push(await open())
    expect(dropped).toBe(0)
    for (const connection of all) expect(await connection.ask()).toBe(200)
  })

  it('may have all where there are fewer than four', async () => {
    await start({ maxConnections: 3, trustedProxies: [] })
    const all = [await open(), await open(), await open()]
    for (const connection of all) expect(await connection.ask()).toBe(200)
    expect(dropped).toBe(0)
  })

  it('of IPv6 is its first 64 bits; a proxy that is trusted is none', () => {
    const groupOf = createConnectionGroups(['10.0.0.0/8', '2001:db8:9::/48'])
    expect(groupOf('2001:db8::1')).toBe(groupOf('2001:db8::2'))
    expect(groupOf('2001:db8::1')).not.toBe(groupOf('2001:db8:0:1::1'))
    expect(groupOf('::ffff:192.0.2.1')).toBe(groupOf('192.0.2.1'))
    for (const proxy of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8:9::1']) expect(groupOf(proxy)).toBeNull()
  })
})

describe('unanswered requests of a connection', () => {
  const heads = (count: number, target: string) => writeHead('GET', target).repeat(count)

  it('are sixteen at most: they get their responses, then the connection ends', async () => {
    await start()
    const connection = openConnection(url)
    connection.send(heads(100, '/wait'))
    await eventually('sixteen requests wait', () => waiting.length === 16)
    for (const go of waiting) go()
    const last = []
    for (let count = 0; count < 16; count += 1) last.push((await connection.receive()).headers.connection)
    expect(last).toEqual([...Array.from({ length: 15 }, () => 'keep-alive'), 'close'])
    expect((await connection.ended).rest).toBe('')
    expect(handled).toBe(16)
  })

  it('of which thousands come end the connection at once', async () => {
    await start()
    const connection = openConnection(url)
    connection.send(heads(100_000, '/wait'))
    expect((await connection.ended).rest).toBe('')
    expect(handled).toBe(16)
  })

  it('that come in one piece and are answered at once count too', async () => {
    await start()
    const connection = openConnection(url)
    connection.send(heads(17, '/'))
    for (let count = 0; count < 16; count += 1) expect((await connection.receive()).status).toBe(200)
    await connection.ended
    expect(handled).toBe(16)
  })

  it('are no limit of a connection: sixteen, again and again', async () => {
    await start()
    const connection = openConnection(url)
    for (let round = 0; round < 5; round += 1) {
      connection.send(heads(16, '/'))
      for (let count = 0; count < 16; count += 1) expect((await connection.receive()).status).toBe(200)
    }
    connection.socket.destroy()
    expect(handled).toBe(80)
  })
})
