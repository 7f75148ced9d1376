/**
 * A receiver for channels: an HTTP(S) server on loopback that records requests and responds as the test requires, also like a broken
 * or malicious server.
 */

import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Certified } from '../../tools/cluster/control-plane-certificates.ts'

export interface Received {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** 1 for the first connection that was accepted, and so on. */
  readonly connection: number
}

/**
 * `hang`: no answer. `reset`: none, and the socket is gone. `raw`: these bytes instead of an answer. `flood` and `trickle`: the
 * head, and a body without end, as fast as it is read or a few bytes at a time. `break`: the head, part of the body, and the
 * socket is gone.
 */
export type ReceiverAnswer =
  | 'hang'
  | 'reset'
  | { readonly raw: string }
  | {
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly text?: string
      readonly delayMs?: number
      readonly body?: 'flood' | 'trickle' | 'break'
    }

export interface Receiver extends AsyncDisposable {
  /** http://127.0.0.1:port, or https. */
  readonly url: string
  readonly port: number
  /** Oldest first. */
  readonly requests: readonly Received[]
  /** From now on; at first every answer is 204. */
  answer(how: ReceiverAnswer | ((request: Received) => ReceiverAnswer)): void
  /** Resolves with all requests as soon as there are so many of them. */
  waitFor(count: number): Promise<readonly Received[]>
  connections(): { readonly accepted: number; readonly open: number }
  close(): Promise<void>
}

export interface ReceiverOptions {
  /** Makes it an HTTPS server. */
  readonly certified?: Certified
  /** Default 127.0.0.1; any other address of loopback, too. */
  readonly host?: string
  /** Default: a free one. */
  readonly port?: number
}

const PATIENCE_MS = 45_000
const TRICKLE_MS = 50

export async function startReceiver({
  certified,
  host = '127.0.0.1',
  port = 0,
}: ReceiverOptions = {}): Promise<Receiver> {
  const requests: Received[] = []
  const numbers = new Map<Socket, number>()
  /** Those below TLS, also while they shake hands. */
  const sockets = new Set<Socket>()
  const waiting = new Set<() => void>()
  const timers = new Set<NodeJS.Timeout>()
  let accepted = 0
  let answerOf: (request: Received) => ReceiverAnswer = () => ({ status: 204 })

  const server: Server =
    certified === undefined ? createServer() : createTlsServer({ cert: certified.certificate, key: certified.key })
  server.on(certified === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    accepted += 1
    numbers.set(socket, accepted)
    socket.on('close', () => numbers.delete(socket))
    socket.on('error', () => {})
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  // A client that does not trust the certificate goes away in the middle of the handshake.
  server.on('tlsClientError', () => {})
  server.on('request', (incoming: IncomingMessage, response: ServerResponse) => {
    text(incoming).then(
      (body) => receive(incoming, body, response),
      () => {}, // The client went away before its request was whole.
    )
  })

  function receive(incoming: IncomingMessage, body: string, response: ServerResponse): void {
    const { method = '', url = '', headers, socket } = incoming
    const request = { method, path: url, headers, body, connection: numbers.get(socket) ?? 0 }
    requests.push(request)
    for (const wake of [...waiting]) wake()
    const how = answerOf(request)
    const delayMs = typeof how === 'object' && 'status' in how ? (how.delayMs ?? 0) : 0
    if (delayMs === 0) {
      give(how, response)
      return
    }
    const timer = setTimeout(() => {
      timers.delete(timer)
      give(how, response)
    }, delayMs)
    timers.add(timer)
  }

  function give(how: ReceiverAnswer, response: ServerResponse): void {
    const { socket } = response
    if (how === 'hang' || socket === null) return
    if (how === 'reset') return void socket.resetAndDestroy()
    if ('raw' in how) return void socket.end(how.raw)
    response.writeHead(how.status, how.headers)
    if (how.body === undefined) {
      response.end(how.text)
      return
    }
    response.write(how.text ?? 'so far')
    BODIES[how.body](response)
  }

  const BODIES = {
    flood(response: ServerResponse) {
      const pour = () => {
        while (!response.destroyed && response.write('flood '.repeat(1_000)));
      }
      response.on('drain', pour)
      pour()
    },
    trickle(response: ServerResponse) {
      const timer = setInterval(() => response.write('.'), TRICKLE_MS)
      timers.add(timer)
      response.on('close', () => {
        clearInterval(timer)
        timers.delete(timer)
      })
    },
    break(response: ServerResponse) {
      response.write(' and', () => response.socket?.destroy())
    },
  }

  async function waitFor(count: number): Promise<readonly Received[]> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const look = () => {
      if (requests.length >= count) resolve()
    }
    const giveUp = () => reject(new Error(`${requests.length} of ${count} requests within ${PATIENCE_MS} ms`))
    const timer = setTimeout(giveUp, PATIENCE_MS)
    waiting.add(look)
    look()
    try {
      await promise
      return requests
    } finally {
      clearTimeout(timer)
      waiting.delete(look)
    }
  }

  async function close(): Promise<void> {
    for (const timer of timers) clearTimeout(timer)
    for (const socket of sockets) socket.destroy()
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    await closed
  }

  server.listen(port, host)
  await once(server, 'listening')
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `${certified === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    requests,
    answer(how) {
      answerOf = typeof how === 'function' ? how : () => how
    },
    waitFor,
    connections: () => ({ accepted, open: numbers.size }),
    close,
    [Symbol.asyncDispose]: close,
  }
}
