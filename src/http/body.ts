/**
 * Request bodies: counted while they stream, rejected early, never held beyond their limit. When a socket with unread
 * bytes is closed, a reset can delete our response before the client has read it (RFC 9112, section 9.6).
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { AppError } from '../domain/errors.ts'
import { startTimer } from '../runtime/clock.ts'
import { isCutOff, MOST_SHORT_CHUNKS, SHORT_CHUNK_BYTES } from '../runtime/short-chunks.ts'
import { BODIES_BYTES, RETRY_SECONDS } from './limits.ts'
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
/** What a chunk counts at least while it is dropped: a chunk of one byte takes as long. */
const DRAIN_CHUNK_BYTES = 1_024
const NEARLY_READ_BYTES = 65_536

export interface BodyLimits {
  /** The last bytes of a body, which are kept. */
  readonly keepBytes: number
  readonly mostBytes: number
}

export interface BodyTail {
  /** The last bytes of the body; empty when the request has none. */
  readonly bytes: Buffer
  /** Whether the body is longer. */
  readonly isCut: boolean
}

/** A body is too large, comes in too many short chunks, or there are too many bodies at the moment. */
export type BodyFault = 'too_large' | 'too_fine' | 'no_room'

export const FAULT_TEXTS: Readonly<Record<Exclude<BodyFault, 'too_large'>, string>> = {
  too_fine: `the body comes in more than ${MOST_SHORT_CHUNKS} chunks of less than ${SHORT_CHUNK_BYTES} bytes`,
  no_room: 'too many bodies are being read at the moment',
}

/**
 * Empty when the request has no body. Throws RequestAborted, or AppError `too_large` (at once when Content-Length says
 * so), `invalid_request`, `unavailable`: then respond with `respondAndDrain`.
 */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const read = await readTail(request, { keepBytes: limitBytes, mostBytes: limitBytes })
  if (read === 'too_large') throw new AppError('too_large', `body too large: at most ${limitBytes} bytes are accepted`)
  if (read === 'too_fine') throw new AppError('invalid_request', `${FAULT_TEXTS.too_fine}: send it in longer ones`)
  if (read === 'no_room') throw new AppError('unavailable', FAULT_TEXTS.no_room, { retryAfterSeconds: RETRY_SECONDS })
  return read.bytes
}

/**
 * The last `keepBytes` of a body of up to `mostBytes`. A fault, with the rest unread, as soon as there is one: then
 * respond with `respondAndDrain`. Throws RequestAborted when the client closes the connection. The limits of
 * `beginBody` count, if the server has called it, and `too_fine` needs `limitChunks`.
 */
export function readTail(request: IncomingMessage, limits: BodyLimits): Promise<BodyTail | BodyFault> {
  if (!hasBody(request)) return Promise.resolve({ bytes: NOTHING, isCut: false })
  if (isDeclaredTooLarge(request, limits)) return Promise.resolve('too_large')
  const begun = readings.get(request)
  if (begun === undefined && request.destroyed) return Promise.reject(new RequestAborted())
  const reading = begun ?? startReading(request, limits, false)
  requestBody(request)
  return reading.outcome
}

/**
 * Reads the body from its first byte on: while a handler waits, Node would keep what comes in pieces, without a limit.
 * Call `endBody` when the request has its response or has lost its connection.
 */
export function beginBody(request: IncomingMessage, limits: BodyLimits): void {
  if (isDeclaredTooLarge(request, limits)) return
  const reading = startReading(request, limits, true)
  readings.set(request, reading)
  // The handler need not ask for the body.
  reading.outcome.catch(() => {})
}

/**
 * Gives the room of the body back. A handler that still waits for the body gets RequestAborted. A second call does
 * nothing.
 */
export function endBody(request: IncomingMessage): void {
  readings.get(request)?.end()
}

interface Reading {
  readonly outcome: Promise<BodyTail | BodyFault>
  /** Reads no further, and gives the room back: a body that is not complete is aborted. */
  readonly end: () => void
}

const readings = new WeakMap<IncomingMessage, Reading>()
let heldBytes = 0

/** `keepsRoom`: also after the body is read, until `stop`. */
function startReading(request: IncomingMessage, { keepBytes, mostBytes }: BodyLimits, keepsRoom: boolean): Reading {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<BodyTail | BodyFault>()
  const tail = new Tail(keepBytes)
  let length = 0
  let ownBytes = 0

  function take(chunk: Buffer): void {
    length += chunk.length
    const growth = tail.growth(chunk.length)
    const fault = findFault(growth)
    if (fault === null) {
      heldBytes += growth
      ownBytes += growth
      tail.add(chunk)
      return
    }
    // Until `respondAndDrain` takes over, what comes is dropped.
    stop()
    resolve(fault)
  }
  function findFault(growth: number): BodyFault | null {
    if (length > mostBytes) return 'too_large'
    if (isCutOff(request)) return 'too_fine'
    return heldBytes + growth > BODIES_BYTES ? 'no_room' : null
  }
  function finish(): void {
    if (keepsRoom) settle()
    else stop()
    resolve({ bytes: tail.bytes(), isCut: tail.isCut() })
  }
  function fail(): void {
    stop()
    reject(new RequestAborted())
  }
  function settle(): void {
    request.off('data', take).off('end', finish).off('error', fail).off('close', fail)
  }
  function stop(): void {
    settle()
    heldBytes -= ownBytes
    ownBytes = 0
  }

  request.on('data', take).on('end', finish).on('error', fail).on('close', fail)
  return { outcome, end: fail }
}

/** False without Content-Length: then the limit applies while the body streams. */
function isDeclaredTooLarge({ headers }: IncomingMessage, { mostBytes }: BodyLimits): boolean {
  return Number(headers['content-length']) > mostBytes
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
 * Sends the whole response while the body is still being sent, then reads and drops a limited part of the body, then
 * closes the connection. The caller sets status and headers, except Connection and Content-Length.
 */
export async function respondAndDrain(
  request: IncomingMessage,
  response: ServerResponse,
  text: string | Buffer,
): Promise<void> {
  if (response.destroyed) return
  // The client may close the connection; without a listener that error would end the process.
  response.on('error', () => {})
  response.setHeader('Connection', 'close')
  response.setHeader('Content-Length', Buffer.byteLength(text))
  response.flushHeaders()
  response.write(text)
  if (!awaited.has(request) && !isCutOff(request)) await drain(request)
  // Not before: after the end of the response Node closes the socket, although bytes are unread.
  response.end()
}

function drain(request: IncomingMessage): Promise<void> {
  endBody(request)
  if (request.destroyed || request.readableEnded) return Promise.resolve()
  return new Promise((resolve) => {
    let left = DRAIN_BYTES
    const drop = (chunk: Buffer) => {
      left -= Math.max(chunk.length, DRAIN_CHUNK_BYTES)
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

/** Asks for a body only in `readTail`, as a request may be rejected before (RFC 9110, section 10.1.1). */
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
