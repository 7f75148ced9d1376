/**
 * A listening HTTP server around an app. What is no valid request is answered here, after the answers that its connection
 * still owes, and never reaches the app. close() takes no new connection, lets requests in progress finish, and cuts what is
 * left when the grace period is over.
 */

import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { startTimer } from '../runtime/clock.ts'
import { deferContinue, respondAndDrain } from './body.ts'

export interface HttpServer {
  listen(): Promise<{ port: number }>
  close(graceMs: number): Promise<void>
}

export interface HttpServerOptions {
  readonly name: string
  readonly handler: (request: IncomingMessage, response: ServerResponse) => unknown
  readonly bindAddress: string
  readonly port: number
  /** The body of an answer to something that is not HTTP, or too slow: there is no request to tell its wish. */
  readonly errorText: (message: string) => { type: string; text: string }
  /** How long a request's head, and all of it, may take to arrive; for tests. */
  readonly headersMs?: number
  readonly requestMs?: number
}

/** The address cannot be listened on; the message says why and what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
}

const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
/** Longer than the usual 60 s of load balancers, or they would reuse a connection at the moment we close it. */
const KEEP_ALIVE_MS = 75_000
const MOST_HEADER_BYTES = 16_384
/** How long what still arrives is dropped before the connection of a broken request is cut: a reset would wipe out our answer. */
const LINGER_MS = 1_000

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { name, handler, bindAddress, port, errorText, headersMs = HEADERS_MS, requestMs = REQUEST_MS } = options
  let isClosing = false
  const sockets = new Set<Socket>()
  /** The answer to the latest request of each connection. */
  const latest = new WeakMap<Socket, ServerResponse>()
  const refused = new WeakSet<Socket>()
  const server = createServer({
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MOST_HEADER_BYTES,
    connectionsCheckingInterval: Math.min(1_000, headersMs, requestMs),
    // Node would answer without a text; see below.
    requireHostHeader: false,
  })
  // A client that says it will send no more (`printf ... | nc`) still waits for its answer. Not in @types/node.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const isOwedAnAnswer = (socket: Socket) => latest.get(socket)?.writableFinished === false
  server.on('request', (request, response) => {
    latest.set(request.socket, response)
    if (isClosing) sayGoodbye(response)
    const fault = findFault(request)
    if (fault === null) handler(request, response)
    else refuse(response, fault)
  })
  deferContinue(server)
  // Expectations that nobody knows are no reason to lose a heartbeat (RFC 9110, section 10.1.1 allows either).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const isBroken = error.code?.startsWith('HPE_') || error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    if (isBroken) giveUp(socket, ...(CLIENT_ERRORS[error.code ?? ''] ?? NOT_HTTP))
    else socket.destroy()
  })
  // The parser notices when a client leaves in the middle of its request, except for one that asks for an upgrade.
  server.on('connection', (socket: Socket) => {
    socket.once('end', () => {
      if (latest.get(socket)?.req.complete === false) giveUp(socket, ...NOT_HTTP)
    })
  })

  function giveUp(socket: Socket, status: number, message: string): void {
    // Whatever a refused client still sends is broken again.
    if (refused.has(socket)) return
    refused.add(socket)
    refuseRest(socket, status, message)
  }

  /** Ends a connection that the parser gave up on. The requests before keep their answers, in their order. */
  function refuseRest(socket: Socket, status: number, message: string): void {
    const again = () => refuseRest(socket, status, message)
    const response = latest.get(socket)
    const isOwed = response !== undefined && !response.writableFinished
    // Emitted when it is this answer's turn.
    if (isOwed && response.socket === null) return void response.once('socket', again)
    if (isOwed && response.req.complete) return void response.once('close', again)
    // The broken request may have its answer already: it was refused while it was still coming in.
    const isAnswered = response !== undefined && !response.req.complete && response.headersSent
    if (isAnswered) return void endConnection(socket, '')
    const { type, text } = errorText(message)
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: ${type}\r\n`
    endConnection(socket, `${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  }

  function refuse(response: ServerResponse, message: string): void {
    const { type, text } = errorText(message)
    response.statusCode = 400
    response.setHeader('Content-Type', type)
    void respondAndDrain(response.req, response, text)
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        server.once('error', (error: NodeJS.ErrnoException) =>
          reject(new ListenError(explainListenError(name, bindAddress, port, error))),
        )
        server.listen(port, bindAddress, () => resolve({ port: (server.address() as AddressInfo).port }))
      }),
    close: (graceMs) =>
      new Promise((resolve) => {
        isClosing = true
        if (!server.listening) return resolve()
        const stopTimer = startTimer(graceMs, () => server.closeAllConnections())
        // Of those that wait on one connection the last: the others come before it.
        for (const socket of sockets) {
          if (!isOwedAnAnswer(socket)) continue
          const last = latest.get(socket)!
          sayGoodbye(last)
          // Written already, and behind others: it cannot say it any more.
          if (last.headersSent) last.once('finish', () => socket.destroySoon())
        }
        // Node stops timing requests out once it closes, and takes a connection with half a request for a busy one.
        for (const socket of sockets) if (!isOwedAnAnswer(socket)) socket.destroy()
        server.close(() => {
          stopTimer()
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}

type Fault = [status: number, message: string]
const NOT_HTTP: Fault = [400, 'the request is not valid HTTP']
const CLIENT_ERRORS: Record<string, Fault> = {
  HPE_HEADER_OVERFLOW: [431, `the request's headers are larger than ${MOST_HEADER_BYTES} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long to arrive'],
}

/** Its client goes on with another replica; it would hold us up for as long as it keeps its connection. */
function sayGoodbye(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close')
}

/** After it the socket only loses what still comes. */
function endConnection(socket: Socket, text: string): void {
  if (!socket.writable) return void socket.destroy()
  socket.end(text)
  const stopTimer = startTimer(LINGER_MS, () => socket.destroy())
  socket.once('close', stopTimer)
}

const SLASH = 47

/**
 * What is wrong with a head that the parser let pass; null for nothing. A target in absolute form (RFC 9112, section 3.2.2)
 * becomes its path and query: what apps parse URLs with throws for addresses that make no sense.
 */
function findFault(request: IncomingMessage): string | null {
  if (request.headers.host === undefined && request.httpVersion === '1.1') return 'the request has no Host header'
  const target = request.url!
  if (target.charCodeAt(0) === SLASH || target === '*') return null
  const url = URL.parse(target)
  if (url === null) return "the request's target is not a valid address"
  request.url = `${url.pathname}${url.search}`
  return null
}

function explainListenError(
  name: string,
  address: string,
  port: number,
  { code, message }: NodeJS.ErrnoException,
): string {
  const variable = `${name.toUpperCase()}_PORT`
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${address} is in use: stop what uses it, or set ${variable} to another port (0 takes a free one)`
    case 'EACCES':
      return `port ${port} on ${address} needs rights that this process lacks: set ${variable} to a port above 1023`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${address} is no address of this machine: set BIND_ADDRESS to one that is, for example 127.0.0.1 or 0.0.0.0`
    default:
      return `cannot listen on ${address}:${port}: ${message}`
  }
}

/** The URL of a listening server. An address that listens everywhere is reached at the loopback address too. */
export function addressOf(bindAddress: string, { port }: { port: number }): string {
  const host = ['0.0.0.0', '::'].includes(bindAddress) ? '127.0.0.1' : bindAddress
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
