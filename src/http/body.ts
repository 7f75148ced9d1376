/**
 * Request bodies, for both APIs: counted while they stream, refused as early as possible, and never held beyond their limit.
 * Refusing a body that is still being sent takes care: closing a socket with unread bytes makes the kernel send a reset, which
 * can wipe our answer out of the client's buffer before the client has read it (RFC 9112, section 9.6).
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { AppError } from '../domain/errors.ts'
import { startTimer } from '../runtime/clock.ts'

/** The client went away before its request was complete: nobody is left to answer. */
export class RequestAborted extends Error {
  constructor() {
    super('the client closed the connection before its request was complete')
    this.name = 'RequestAborted'
  }
}

const NOTHING = Buffer.alloc(0)
/** How much of an unwanted body is read and dropped, and for how long, so that its sender sees our answer. */
const DRAIN_BYTES = 1_048_576
const DRAIN_MS = 1_000
const NEARLY_READ_BYTES = 65_536

/**
 * The whole body; empty when the request has none. Throws AppError `too_large` above `limitBytes` (at once when Content-Length
 * says so), after which the answer must go out through `answerAndDrain`; throws RequestAborted when the client goes away.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  if (!hasBody(request)) return Promise.resolve(NOTHING)
  // Without Content-Length this is NaN: the limit is then met while streaming.
  if (Number(request.headers['content-length']) > limitBytes) return Promise.reject(tooLarge(limitBytes))
  if (request.destroyed) return Promise.reject(new RequestAborted())
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const take = (chunk: Buffer) => {
      length += chunk.length
      chunks.push(chunk)
      if (length <= limitBytes) return
      settle()
      request.pause()
      reject(tooLarge(limitBytes))
    }
    const finish = () => {
      settle()
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length))
    }
    const fail = () => {
      settle()
      reject(new RequestAborted())
    }
    const settle = () => {
      request.off('data', take).off('end', finish).off('error', fail).off('close', fail)
    }
    request.on('data', take).on('end', finish).on('error', fail).on('close', fail)
    letSend(request)
  })
}

/** Whether so little of the body is still to come, if any, that reading on costs less than a new connection. */
export function isNearlyRead({ complete, headers }: IncomingMessage): boolean {
  return complete || Number(headers['content-length']) <= NEARLY_READ_BYTES
}

/** Whether the request's head announces a body (RFC 9112, section 6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] !== undefined : Number(length) !== 0
}

function tooLarge(limitBytes: number): AppError {
  return new AppError('too_large', `body too large: at most ${limitBytes} bytes are accepted`)
}

/**
 * Answers a request whose body is still on its way: the whole answer goes out first, then a bounded part of the body is read
 * and dropped, then the connection closes. The caller has set the status and the headers, except for the two of framing.
 */
export async function answerAndDrain(request: IncomingMessage, response: ServerResponse, text: string): Promise<void> {
  if (response.destroyed) return
  // The client may leave while we write; that is its right, and an error without a listener would end the process.
  response.on('error', () => {})
  response.setHeader('Connection', 'close')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.flushHeaders()
  response.write(text)
  if (!waiting.has(request)) await drain(request)
  // Only now: after the end of the last answer node closes the socket, whatever is unread.
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

interface Waiting {
  readonly response: ServerResponse
  readonly shouldKeepAlive: boolean
}

/** Requests whose sender waits for our word before it sends the body. */
const waiting = new WeakMap<IncomingMessage, Waiting>()

/**
 * Makes `Expect: 100-continue` worth sending (RFC 9110, section 10.1.1): node would ask for the body at once; with this, it
 * is `readBody` that asks, so a request refused before (401, 404, 413 ...) never sends it. Call once for each server.
 */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, { response, shouldKeepAlive: response.shouldKeepAlive })
    // A client that was not asked may send its body all the same or not at all; only a new connection is unambiguous.
    response.shouldKeepAlive = false
    server.emit('request', request, response)
  })
}

function letSend(request: IncomingMessage): void {
  const found = waiting.get(request)
  if (found === undefined) return
  waiting.delete(request)
  found.response.shouldKeepAlive = found.shouldKeepAlive
  found.response.writeContinue()
}
