/**
 * A loopback proxy between a client and a server, with the faults of a network on request. It passes bytes on as they
 * are, so that TLS goes through it from end to end.
 */

import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { pickPort } from '../../tools/cluster/control-plane-ports.ts'

export interface ProxyConnection {
  /** 1 for the first one that was accepted, and so on. */
  readonly number: number
  /** Bytes from the client, and to it. */
  readonly sent: number
  readonly received: number
  /** Resets both sides. */
  reset(): void
  /** No byte passes either way until `resume`; both sides stay open. */
  stall(): void
  resume(): void
}

export type Select = (connection: ProxyConnection) => boolean

export interface TcpProxy extends AsyncDisposable {
  readonly port: number
  /** https://127.0.0.1:port */
  readonly url: string
  /** Those open now, oldest first. A side that goes away while its connection is stalled is noticed after `resume`. */
  connections(): readonly ProxyConnection[]
  /** `accepted` since the start. */
  count(): { readonly accepted: number; readonly open: number }
  /** Resets (RST) the selected open connections, default all; new ones are let in. Returns how many. */
  reset(select?: Select): number
  /**
   * Holds every byte of the selected open connections. Without `select` of all, and of those to come, which are accepted
   * and then hear nothing, as behind a firewall that drops.
   */
  stall(select?: Select): void
  /** Lets everything pass again; what was held arrives. */
  resume(): void
  /** Stops listening, so that new connections are refused from now on; open ones go on. */
  refuse(): void
  /** Listens again on the same port. */
  accept(): Promise<void>
  /** Resets all connections and stops. */
  close(): Promise<void>
}

/**
 * Listens on a free loopback port and connects to `targetPort` of loopback, for each connection when it comes. Without a
 * listener there, the client's connection is reset. A function: where the target is now.
 */
export async function startTcpProxy(targetPort: number | (() => number)): Promise<TcpProxy> {
  const open = new Set<ProxyConnection>()
  let accepted = 0
  let areAllStalled = false

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    accepted += 1
    const upstream = createConnection({
      host: '127.0.0.1',
      port: typeof targetPort === 'number' ? targetPort : targetPort(),
      allowHalfOpen: true,
      noDelay: true,
    })
    const pair: ProxyConnection = join(accepted, client, upstream, () => open.delete(pair))
    open.add(pair)
    if (areAllStalled) pair.stall()
  })
  const port = await pickPort()
  const listen = async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen()

  const refuse = () => {
    if (server.listening) server.close()
  }
  const select = (wanted: Select = () => true) => [...open].filter(wanted)
  const reset = (wanted?: Select) => {
    const pairs = select(wanted)
    for (const pair of pairs) pair.reset()
    return pairs.length
  }
  const close = async () => {
    refuse()
    reset()
  }
  return {
    port,
    url: `https://127.0.0.1:${port}`,
    connections: () => select(),
    count: () => ({ accepted, open: open.size }),
    reset,
    stall(wanted) {
      areAllStalled ||= wanted === undefined
      for (const pair of select(wanted)) pair.stall()
    },
    resume() {
      areAllStalled = false
      for (const pair of open) pair.resume()
    },
    refuse,
    async accept() {
      if (!server.listening) await listen()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Passes bytes both ways, a half-closed side too, until one side breaks or both have ended. */
function join(number: number, client: Socket, upstream: Socket, onEnd: () => void): ProxyConnection {
  const sockets = [client, upstream] as const
  let isStalled = false
  let isOver = false
  const bytes = { sent: 0, received: 0 }

  function reset(): void {
    if (isOver) return
    isOver = true
    for (const socket of sockets) socket.resetAndDestroy()
    onEnd()
  }

  function pass(from: Socket, to: Socket, count: 'sent' | 'received'): void {
    from.on('data', (chunk: Buffer) => {
      bytes[count] += chunk.length
      if (!to.write(chunk)) from.pause()
    })
    to.on('drain', () => {
      if (!isStalled) from.resume()
    })
    from.once('end', () => to.end())
    // A side that was reset, or cannot be reached, takes the other one with it.
    from.once('error', reset)
    from.once('close', () => {
      if (!client.destroyed || !upstream.destroyed || isOver) return
      isOver = true
      onEnd()
    })
  }
  pass(client, upstream, 'sent')
  pass(upstream, client, 'received')

  return {
    number,
    get sent() {
      return bytes.sent
    },
    get received() {
      return bytes.received
    },
    reset,
    stall() {
      isStalled = true
      for (const socket of sockets) socket.pause()
    },
    resume() {
      isStalled = false
      for (const socket of sockets) socket.resume()
    },
  }
}
