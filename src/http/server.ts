/**
 * A listening HTTP server around an app. close() takes no new connection, lets requests in progress finish, and cuts what is
 * left when the grace period is over.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { startTimer } from '../runtime/clock.ts'
import { deferContinue } from './body.ts'

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

export function createHttpServer({ name, handler, bindAddress, port, errorText }: HttpServerOptions): HttpServer {
  let isClosing = false
  const server = createServer({
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MOST_HEADER_BYTES,
    connectionsCheckingInterval: 1_000,
  })
  server.on('request', (request, response) => {
    // Clients of a stopping replica go on with another one.
    if (isClosing) response.setHeader('Connection', 'close')
    handler(request, response)
  })
  deferContinue(server)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuseConnection(error, socket))

  function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    const [status, message] = CLIENT_ERRORS[error.code ?? ''] ?? ['400 Bad Request', 'the request is not valid HTTP']
    const { type, text } = errorText(message)
    socket.end(
      `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    )
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
        server.close(() => {
          stopTimer()
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}

const CLIENT_ERRORS: Record<string, [status: string, message: string]> = {
  HPE_HEADER_OVERFLOW: [
    '431 Request Header Fields Too Large',
    `the request's headers are larger than ${MOST_HEADER_BYTES} bytes`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request took too long to arrive'],
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
