import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { waitFor } from '../support/cluster-client.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

/** Sends back what it gets, and ends when the other side has ended. */
async function startEcho() {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).pipe(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return { port: (server.address() as AddressInfo).port, sockets, stop, [Symbol.asyncDispose]: stop }
}

async function connectTo(port: number) {
  const socket = createConnection({ host: '127.0.0.1', port, noDelay: true })
  const heard = { text: '', error: '', isOver: false }
  socket.setEncoding('utf8').on('data', (text: string) => {
    heard.text += text
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    heard.error = error.code ?? ''
  })
  socket.on('end', () => {
    heard.isOver = true
  })
  await once(socket, 'connect')
  const say = async (text: string) => {
    socket.write(text)
    await waitFor(`${text} comes back`, () => heard.text.endsWith(text), 2000)
  }
  return { socket, heard, say, [Symbol.dispose]: () => void socket.destroy() }
}

/** Long enough for a byte on loopback, and to see that none comes. */
const SILENCE_MS = 150
const silence = () => new Promise((resolve) => setTimeout(resolve, SILENCE_MS))

it('passes bytes both ways and counts connections', async () => {
  await using echo = await startEcho()
  await using proxy = await startTcpProxy(echo.port)
  using one = await connectTo(proxy.port)
  using other = await connectTo(proxy.port)
  await one.say('hello')
  await other.say('x'.repeat(3_000_000))
  expect(proxy.count()).toEqual({ accepted: 2, open: 2 })
  expect(proxy.connections().map(({ number, sent, received }) => [number, sent, received])).toEqual([
    [1, 5, 5],
    [2, 3_000_000, 3_000_000],
  ])
  one.socket.end()
  await waitFor('the end is passed on, and back', () => one.heard.isOver)
  await waitFor('it is over', () => proxy.count().open === 1)
  expect(one.heard.error).toBe('')
})

it('resets the connections that were selected, and lets new ones in', async () => {
  await using echo = await startEcho()
  await using proxy = await startTcpProxy(echo.port)
  using one = await connectTo(proxy.port)
  using other = await connectTo(proxy.port)
  await one.say('a')
  await other.say('b')
  expect(proxy.reset(({ number }) => number === 1)).toBe(1)
  await waitFor('the client sees a reset', () => one.heard.error === 'ECONNRESET')
  await other.say('c')
  expect(proxy.reset()).toBe(1)
  await waitFor('the other one too', () => other.heard.error === 'ECONNRESET')
  using third = await connectTo(proxy.port)
  await third.say('d')
  expect(proxy.count()).toEqual({ accepted: 3, open: 1 })
})

it('stalls all connections, those to come too, and then delivers what it held', async () => {
  await using echo = await startEcho()
  await using proxy = await startTcpProxy(echo.port)
  using one = await connectTo(proxy.port)
  await one.say('a')
  proxy.stall()
  using late = await connectTo(proxy.port)
  one.socket.write('b')
  late.socket.write('c')
  await silence()
  expect([one.heard, late.heard]).toEqual([
    { text: 'a', error: '', isOver: false },
    { text: '', error: '', isOver: false },
  ])
  expect(proxy.count()).toEqual({ accepted: 2, open: 2 })
  proxy.resume()
  await waitFor('the first hears', () => one.heard.text === 'ab')
  await waitFor('the second hears', () => late.heard.text === 'c')
})

it('stalls one connection and not the others', async () => {
  await using echo = await startEcho()
  await using proxy = await startTcpProxy(echo.port)
  using one = await connectTo(proxy.port)
  using other = await connectTo(proxy.port)
  await one.say('a')
  await other.say('b')
  proxy.stall(({ number }) => number === 1)
  one.socket.write('c')
  await other.say('d')
  using third = await connectTo(proxy.port)
  await third.say('e')
  await silence()
  expect(one.heard.text).toBe('a')
  proxy.connections()[0]?.resume()
  await waitFor('it hears', () => one.heard.text === 'ac')
})

it('refuses new connections while open ones go on, and listens again on the same port', async () => {
  await using echo = await startEcho()
  await using proxy = await startTcpProxy(echo.port)
  using one = await connectTo(proxy.port)
  await one.say('a')
  proxy.refuse()
  await expect(connectTo(proxy.port)).rejects.toThrow('ECONNREFUSED')
  await one.say('b')
  await proxy.accept()
  using late = await connectTo(proxy.port)
  await late.say('c')
  await one.say('d')
})

it('resets the client when the server breaks or is not there', async () => {
  await using echo = await startEcho()
  await using proxy = await startTcpProxy(echo.port)
  using one = await connectTo(proxy.port)
  await one.say('a')
  for (const socket of echo.sockets) socket.resetAndDestroy()
  await waitFor('the client sees it', () => one.heard.error === 'ECONNRESET')
  await echo.stop()
  using late = await connectTo(proxy.port)
  await waitFor('it is reset', () => late.heard.error === 'ECONNRESET')
  await waitFor('nothing is left', () => proxy.count().open === 0)
})

it('closes with connections open and stalled', async () => {
  await using echo = await startEcho()
  const proxy = await startTcpProxy(echo.port)
  using one = await connectTo(proxy.port)
  await one.say('a')
  proxy.stall()
  await proxy.close()
  await waitFor('the client sees it', () => one.heard.error === 'ECONNRESET')
  await expect(connectTo(proxy.port)).rejects.toThrow('ECONNREFUSED')
})
