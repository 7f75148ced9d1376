/**
 * The ping API (interface, section 4.2; design, section 3.3): the hot path. One middleware and no router: request.ts matches the path, which is
 * the whole specification, and cheaper. Errors are plain text, or JSON where the client accepts that.
 */

import Koa, { type Context } from 'koa'
import type { PingType } from '../../domain/check.ts'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { hasBody, RequestAborted, readTail, respondAndDrain } from '../body.ts'
import { PING_WARNINGS, type PingPath, type PingWarning, parsePingMetadata, parsePingPath } from './request.ts'
import {
  type BodyLoss,
  bodyLost,
  invalidExitCode,
  NO_CHECK,
  OK_HEADERS,
  PREFLIGHT_HEADERS,
  REJECTION_HEADERS,
  type Rejection,
  UNAVAILABLE,
  unknownSignal,
  WRONG_METHOD,
} from './responses.ts'

/** checks/ping/record.ts implements it. */
export type RecordPing = (ping: {
  /** Lower case. */
  readonly publicId: string
  readonly type: PingType
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly runId: string | null
  readonly body: Buffer | null
  /** Whether the client sent more than `body`. */
  readonly isBodyTruncated: boolean
  /** Arrival, by the database's clock. */
  readonly at: number
}) => Promise<'stored' | 'run_refused' | 'duplicate' | 'unknown' | 'unavailable'>

export interface PingAppOptions {
  readonly record: RecordPing
  /** Whether a check has this public id. Throws when the database cannot be asked. */
  readonly hasCheck: (publicId: string) => Promise<boolean>
  /** By the database's clock. */
  readonly now: () => number
  readonly isStopping?: () => boolean
  readonly onPing: (type: string, result: string) => void
  /** After each response. */
  readonly onRequest: (method: string, status: number, seconds: number) => void
  readonly onWarning: (warning: PingWarning) => void
  /** A fault of this program. The client gets 503. */
  readonly onError: (error: unknown) => void
}

const METHODS = new Set(['GET', 'POST', 'HEAD'])

export function createPingApp(options: PingAppOptions): Koa {
  const { record, hasCheck, now, isStopping = () => false, onPing, onRequest, onWarning, onError } = options
  const app = new Koa()
  app.silent = true
  app.use(async (ctx) => {
    const at = now()
    // From the start of the drain on: closing the port may cut an idle connection with a ping on its way.
    if (isStopping()) ctx.res.setHeader('Connection', 'close')
    await serve(ctx, at)
    onRequest(ctx.method, ctx.res.statusCode, (now() - at) / 1_000)
  })
  return app

  async function serve(ctx: Context, at: number): Promise<void> {
    // Without Koa's own rendering, which costs more (docs/benchmarks.md, plain Koa).
    ctx.respond = false
    const path = parsePingPath(ctx.path)
    if (path === null) return reject(ctx, NO_CHECK, 'unknown')
    if (ctx.method === 'OPTIONS') return allow(ctx)
    if (!METHODS.has(ctx.method)) return reject(ctx, WRONG_METHOD, 'unknown')
    if (path.kind === 'invalid_exit_code') return reject(ctx, invalidExitCode(path.given), 'unknown')
    return path.kind === 'ping' ? storePing(ctx, at, path) : explainSignal(ctx, path)
  }

  async function storePing(ctx: Context, at: number, path: PingPath & { kind: 'ping' }): Promise<void> {
    const { signal, durationMs, runId, text, warnings } = parsePingMetadata(
      path.signal,
      durationHeader(ctx),
      ctx.querystring,
    )
    const { type, exitCode } = signal
    try {
      const { bytes, loss } = await readPingBody(ctx)
      const body = bytes ?? (text === null || loss !== null ? null : Buffer.from(text).subarray(-LIMITS.pingBodyBytes))
      const isBodyTruncated = loss !== null
      const result = await record({
        publicId: path.publicId,
        type,
        exitCode,
        durationMs,
        runId,
        body,
        isBodyTruncated,
        at,
      })
      if (result === 'unknown') return reject(ctx, NO_CHECK, type)
      if (result === 'unavailable') return reject(ctx, UNAVAILABLE, type)
      warn(ctx, result === 'run_refused' ? [...warnings, 'run_refused'] : warnings)
      if (loss !== null) return reject(ctx, bodyLost(loss, result === 'duplicate'), type)
      onPing(type, result === 'duplicate' ? 'duplicate' : 'stored')
      ctx.res.writeHead(200, OK_HEADERS)
      ctx.res.end(ctx.method === 'HEAD' ? undefined : 'OK')
    } catch (error) {
      if (error instanceof RequestAborted) return
      onError(error)
      reject(ctx, UNAVAILABLE, type)
    }
  }

  /** Only a check that exists gets the list of signals. That costs a read, as a ping of an unknown check does. */
  async function explainSignal(ctx: Context, path: PingPath & { kind: 'unknown_signal' }): Promise<void> {
    try {
      const isKnown = await hasCheck(path.publicId)
      reject(ctx, isKnown ? unknownSignal(path.given) : NO_CHECK, 'unknown')
    } catch (error) {
      if (!(error instanceof AppError)) onError(error)
      reject(ctx, UNAVAILABLE, 'unknown')
    }
  }

  function warn({ res }: Context, warnings: readonly PingWarning[]): void {
    if (warnings.length === 0) return
    for (const warning of warnings) onWarning(warning)
    res.setHeader('Ping-Warning', warnings.map((warning) => PING_WARNINGS[warning]).join('; '))
  }

  function reject(ctx: Context, { status, message, result, headers }: Rejection, pingType: string): void {
    onPing(pingType, result)
    const { req, res } = ctx
    const isJson = ctx.accepts('text/plain', 'application/json') === 'application/json'
    const text = isJson ? JSON.stringify({ error: message }) : message
    res.statusCode = status
    const type = isJson ? { 'Content-Type': 'application/json; charset=utf-8' } : {}
    for (const [name, value] of Object.entries({ ...REJECTION_HEADERS, ...type, ...headers }))
      res.setHeader(name, value)
    // The rest of the body is still being sent.
    if (hasBody(req) && !req.readableEnded) return void respondAndDrain(req, res, text)
    res.setHeader('Content-Length', Buffer.byteLength(text))
    res.end(ctx.method === 'HEAD' ? undefined : text)
  }
}

/** A browser asks what it may send. That is no ping. */
function allow({ res }: Context): void {
  res.writeHead(204, PREFLIGHT_HEADERS)
  res.end()
}

interface PingBody {
  readonly bytes: Buffer | null
  /** Why `bytes` are not all that was sent; null when they are. */
  readonly loss: BodyLoss | null
}

const NO_BODY: PingBody = { bytes: null, loss: null }

/** The body of a POST; null when empty. It is stored as bytes: the output of a job may not be valid text. */
async function readPingBody({ req, method }: Context): Promise<PingBody> {
  if (method !== 'POST' || !hasBody(req)) return NO_BODY
  if (isCompressed(req)) return { bytes: null, loss: 'compressed' }
  const tail = await readTail(req, { keepBytes: LIMITS.pingBodyBytes, mostBytes: LIMITS.pingBodyReadBytes })
  if (tail === null) return { bytes: null, loss: 'too_large' }
  const { bytes, isCut } = tail
  return { bytes: bytes.length === 0 ? null : bytes, loss: isCut ? 'cut' : null }
}

/** Transfer codings other than `chunked` also compress; Node does not decode them. */
function isCompressed({ headers }: Context['req']): boolean {
  const content = headers['content-encoding']?.toLowerCase() || 'identity'
  const transfer = headers['transfer-encoding']?.toLowerCase() ?? 'chunked'
  return content !== 'identity' || transfer !== 'chunked'
}

function durationHeader({ req }: Context): string | undefined {
  const value = req.headers['x-service-duration']
  return Array.isArray(value) ? value.join(',') : value
}
