/**
 * A listening HTTP server. The app sees no request that is not valid HTTP, nor what is too much: a head (head.ts), a
 * body (body.ts), a connection or the requests on it (connections.ts). close() lets requests in progress finish, and
 * cuts the connections that are left when the grace period is over.
 */

import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { startTimer } from '../runtime/clock.ts'
import { limitChunks } from '../runtime/short-chunks.ts'
import { StartFault } from '../runtime/start-fault.ts'
import { type BodyLimits, beginBody, deferContinue, endBody, hasBody, respondAndDrain } from './body.ts'
import { createConnections, endAfter, isPending } from './connections.ts'
import { type Fault, findFault, type IsKnownHost, NOT_HTTP } from './head.ts'
import { HEAD_BYTES, HEAD_MS, REQUEST_MS } from './limits.ts'

export interface HttpServer {
  listen(): Promise<{ port: number }>
  close(graceMs: number): Promise<void>
}

export interface FaultText {
  readonly type: string
  readonly text: string
}

export interface HttpServerOptions {
  readonly name: string
  readonly handler: (request: IncomingMessage, response: ServerResponse) => unknown
  readonly bindAddress: string
  readonly port: number
  /** Above it, the connection goes that has been without a request for longest. Default: no limit. */
  readonly maxConnections?: number
  /** What counts as one client, which may hold a quarter of them; null: any number. Default: no client is limited. */
  readonly groupOf?: (address: string) => string | null
  readonly onConnectionDropped?: () => void
  /** Bodies are read from their first byte on. Default: when the handler asks for them. */
  readonly body?: BodyLimits
  /** Default, and null: a request may name any host. */
  readonly isKnownHost?: IsKnownHost | null
  /** The body of the response to a request that no handler sees. `request`: absent where its head is not known. */
  readonly errorText: (message: string, status: number, request?: IncomingMessage) => FaultText
  /** The longest time in which a request's head, and the whole request, must arrive; for tests. */
  readonly headersMs?: number
  readonly requestMs?: number
}

/** The address cannot be listened on; the message says why and what to do. */
export class ListenError extends StartFault {
  override readonly name = 'ListenError'
}

/** Longer than the usual 60 s of load balancers, which would else reuse a connection at the moment when we close it. */
const KEEP_ALIVE_MS = 75_000
/** How long we drop data before we cut a broken connection: a reset would erase our response. */
const LINGER_MS = 1_000

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { name, handler, bindAddress, port, errorText, body, isKnownHost = null } = options
  const { maxConnections = Number.POSITIVE_INFINITY, groupOf = () => null, onConnectionDropped = () => {} } = options
  const { headersMs = HEAD_MS, requestMs = REQUEST_MS } = options
  let isClosing = false
  const connections = createConnections(maxConnections, groupOf, onConnectionDropped)
  const rejected = new WeakSet<Socket>()
  const server = createServer({
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEAD_BYTES,
    connectionsCheckingInterval: Math.min(1_000, headersMs, requestMs),
    // Node's own response would have no text; findFault checks it.
    requireHostHeader: false,
  })
  // A client that has closed its sending side (`printf ... | nc`) still waits for its response. Not in @types/node.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', (socket: Socket) => {
    connections.open(socket)
    // The parser reports a client that leaves in the middle of its request, except when the request asks for an
    // upgrade.
    socket.once('end', () => {
      if (connections.latest(socket)?.req.complete === false) rejectConnection(socket, ...NOT_HTTP)
    })
  })
  server.on('request', (request, response) => {
    // Node parses the body of a request that is refused or left alone, too, and would keep it.
    limitChunks(request, connections.end)
    if (!connections.take(request.socket, response)) return void request.resume()
    if (isClosing) endAfter(request.socket, response)
    const fault = findFault(request, isKnownHost)
    if (fault !== null) return reject(response, fault)
    if (body !== undefined && hasBody(request)) {
      beginBody(request, body)
      response.once('close', () => endBody(request))
    }
    handler(request, response)
  })
  deferContinue(server)
  // An unknown expectation is no reason to lose a heartbeat (RFC 9110, section 10.1.1 allows to ignore it).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const isBroken = error.code?.startsWith('HPE_') || error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    if (isBroken) rejectConnection(socket, ...(CLIENT_ERRORS[error.code ?? ''] ?? NOT_HTTP))
    else socket.destroy()
  })

  /** Ends a connection that cannot be parsed any further. The requests before get their responses, in their order. */
  function rejectConnection(socket: Socket, status: number, message: string): void {
    // What a rejected client still sends causes the same error again.
    if (rejected.has(socket)) return
    rejected.add(socket)
    rejectInTurn(socket, status, message)
  }

  function rejectInTurn(socket: Socket, status: number, message: string): void {
    const again = () => rejectInTurn(socket, status, message)
    const response = connections.latest(socket)
    if (response !== undefined && isPending(response)) {
      // A pipelined response gets its socket when the responses before it are written.
      if (response.socket === null) return void response.once('socket', again)
      if (response.req.complete) return void response.once('close', again)
    }
    // The broken request may have its response already: it was rejected before all of it had arrived.
    if (response !== undefined && !response.req.complete && response.headersSent) return void endConnection(socket, '')
    const broken = response?.req.complete === false ? response.req : undefined
    const { type, text } = errorText(message, status, broken)
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: ${type}\r\n`
    endConnection(socket, `${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  }

  function reject(response: ServerResponse, [status, message]: Fault): void {
    const { type, text } = errorText(message, status, response.req)
    response.statusCode = status
    response.setHeader('Content-Type', type)
    void respondAndDrain(response.req, response, text)
  }

  return {
    listen: () =>
      new Promise((resolve, reject) => {
        const listenOn = (address: string, onError: (error: NodeJS.ErrnoException) => void) =>
          server.once('error', onError).listen(port, address)
        const fail = (error: NodeJS.ErrnoException) =>
          reject(new ListenError(explainListenError(name, bindAddress, port, error)))
        server.once('listening', () => resolve({ port: (server.address() as AddressInfo).port }))
        // The image listens on `::`, and some nodes have no IPv6.
        listenOn(bindAddress, (error) =>
          bindAddress === '::' && NO_IPV6.has(error.code) ? listenOn('0.0.0.0', fail) : fail(error),
        )
      }),
    close: (graceMs) =>
      new Promise((resolve) => {
        isClosing = true
        if (!server.listening) return resolve()
        const stopTimer = startTimer(graceMs, () => server.closeAllConnections())
        for (const socket of connections.sockets()) {
          const response = connections.latest(socket)
          if (response === undefined || !isPending(response)) {
            // Node stops its request timeouts once it closes, and counts a connection with half a request as busy.
            socket.destroy()
            continue
          }
          endAfter(socket, response)
        }
        server.close(() => {
          stopTimer()
          resolve()
        })
      }),
  }
}

const NO_IPV6: ReadonlySet<string | undefined> = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL'])

const CLIENT_ERRORS: Record<string, Fault> = {
  HPE_HEADER_OVERFLOW: [431, `the request's headers are larger than ${HEAD_BYTES} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long to arrive'],
}

function endConnection(socket: Socket, text: string): void {
  if (!socket.writable) return void socket.destroy()
  socket.end(text)
  const stopTimer = startTimer(LINGER_MS, () => socket.destroy())
  socket.once('close', stopTimer)
}

function explainListenError(name: string, address: string, port: number, error: NodeJS.ErrnoException): string {
  const { code, message } = error
  const variable = `${name.toUpperCase()}_PORT`
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${address} is in use: stop what uses it, or set ${variable} to another port (0 takes a free one)`
    case 'EACCES':
      return `port ${port} on ${address} needs rights that this process lacks: set ${variable} to a port above 1023`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${address} is not an address of this machine: set BIND_ADDRESS to one that is, for example 127.0.0.1 or 0.0.0.0`
    default:
      return `cannot listen on ${address}:${port}: ${message}`
  }
}

/** The URL of a listening server. For an address that listens everywhere it names the loopback address. */
export function addressOf(bindAddress: string, { port }: { port: number }): string {
  const host = ['0.0.0.0', '::'].includes(bindAddress) ? '127.0.0.1' : bindAddress
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
