/**
 * Request bodies of both APIs: counted while they stream, rejected as early as possible, and never held beyond their limit. When a socket with
 * unread bytes is closed, the kernel sends a reset, which can delete our response from the client's buffer before the client has read it
 * (RFC 9112, section 9.6).
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { AppError } from '../domain/errors.ts'
import { startTimer } from '../runtime/clock.ts'
import { Tail } from './tail.ts'

/** The client closed the connection before its request was complete: a response would reach nothing. */
export class RequestAborted extends Error {
  constructor() {
    super('the client closed the connection before its request was complete')
    this.name = 'RequestAborted'
  }
}

const NOTHING = Buffer.alloc(0)
/** How much of a rejected body is read and dropped, and for how long, so that its sender can read our response. */
const DRAIN_BYTES = 8_388_608
const DRAIN_MS = 1_000
const NEARLY_READ_BYTES = 65_536

/**
 * Empty when the request has no body. Throws RequestAborted when the client closes the connection, AppError `too_large` above `limitBytes` (at
 * once when Content-Length says so): then respond with `respondAndDrain`.
 */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const tail = await readTail(request, { keepBytes: limitBytes, mostBytes: limitBytes })
  if (tail === null) throw new AppError('too_large', `body too large: at most ${limitBytes} bytes are accepted`)
  return tail.bytes
}

export interface BodyTail {
  /** The last bytes of the body; empty when the request has none. */
  readonly bytes: Buffer
  /** Whether the body is longer. */
  readonly isCut: boolean
}

/**
 * The last `keepBytes` of a body of up to `mostBytes`, with no more than that in memory. Null, with the rest unread, as soon as the body is larger
 * (at once when Content-Length says so): then respond with `respondAndDrain`. Throws RequestAborted when the client closes the connection.
 */
export function readTail(
  request: IncomingMessage,
  { keepBytes, mostBytes }: { readonly keepBytes: number; readonly mostBytes: number },
): Promise<BodyTail | null> {
  if (!hasBody(request)) return Promise.resolve({ bytes: NOTHING, isCut: false })
  // NaN without Content-Length: then the limit applies while the body streams.
  if (Number(request.headers['content-length']) > mostBytes) return Promise.resolve(null)
  if (request.destroyed) return Promise.reject(new RequestAborted())
  return new Promise((resolve, reject) => {
    const tail = new Tail(keepBytes)
    let length = 0
    const take = (chunk: Buffer) => {
      length += chunk.length
      if (length <= mostBytes) return tail.add(chunk)
      settle()
      request.pause()
      resolve(null)
    }
    const finish = () => {
      settle()
      resolve({ bytes: tail.bytes(), isCut: tail.isCut() })
    }
    const fail = () => {
      settle()
      reject(new RequestAborted())
    }
    const settle = () => {
      request.off('data', take).off('end', finish).off('error', fail).off('close', fail)
    }
    request.on('data', take).on('end', finish).on('error', fail).on('close', fail)
    requestBody(request)
  })
}

/** Whether reading the rest of the body costs less than a new connection. */
export function isNearlyRead({ complete, headers }: IncomingMessage): boolean {
  return complete || Number(headers['content-length']) <= NEARLY_READ_BYTES
}

/** Whether the request has a body, by its head (RFC 9112, section 6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : Number(length) !== 0
}

/**
 * Responds to a request whose body is still being sent: sends the whole response, then reads and drops a limited part of the body, then closes
 * the connection. The caller sets the status and the headers, except for Connection and Content-Length.
 */
export async function respondAndDrain(request: IncomingMessage, response: ServerResponse, text: string): Promise<void> {
  if (response.destroyed) return
  // The client may close the connection; without a listener that error would end the process.
  response.on('error', () => {})
  response.setHeader('Connection', 'close')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.flushHeaders()
  response.write(text)
  if (!awaited.has(request)) await drain(request)
  // Not before: after the end of the response Node closes the socket, although bytes are unread.
  response.end()
}

function drain(request: IncomingMessage): Promise<void> {
  if (request.destroyed || request.readableEnded) return Promise.resolve()
  return new Promise((resolve) => {
    let left = DRAIN_BYTES
    const drop = (chunk: Buffer) => {
      left -= chunk.length
      if (left <= 0) finish()
    }
    const finish = () => {
      stopTimer()
      request.off('data', drop).off('end', finish).off('error', finish).off('close', finish)
      resolve()
    }
    const stopTimer = startTimer(DRAIN_MS, finish)
    request.on('data', drop).on('end', finish).on('error', finish).on('close', finish)
    request.resume()
  })
}

interface AwaitedBody {
  readonly response: ServerResponse
  readonly shouldKeepAlive: boolean
}

/** Requests with `Expect: 100-continue` whose body was not asked for yet. */
const awaited = new WeakMap<IncomingMessage, AwaitedBody>()

/**
 * Responds to `Expect: 100-continue` (RFC 9110, section 10.1.1) only in `readTail`, so that the body of a request that is rejected before (401, 404,
 * 413 ...) is never sent. Node alone would ask for each body at once. Call once for each server.
 */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (request, response) => {
    awaited.set(request, { response, shouldKeepAlive: response.shouldKeepAlive })
    // A client that was not asked may send its body or not: only a new connection is unambiguous.
    response.shouldKeepAlive = false
    server.emit('request', request, response)
  })
}

function requestBody(request: IncomingMessage): void {
  const found = awaited.get(request)
  if (found === undefined) return
  awaited.delete(request)
  found.response.shouldKeepAlive = found.shouldKeepAlive
  found.response.writeContinue()
}
