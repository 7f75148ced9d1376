/**
 * The ping API (interface, section 4.2; design, section 3.3): the hot path. One middleware and no router: request.ts matches the path, which is
 * the whole specification, and cheaper. Errors are plain text, or JSON where the client accepts that.
 */

import Koa, { type Context } from 'koa'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { hasBody, RequestAborted, readBody, respondAndDrain } from '../body.ts'
import { PING_WARNINGS, type PingTarget, type PingWarning, parsePingMetadata, parsePingPath } from './request.ts'

/** checks/ping/record.ts implements it. */
export type RecordPing = (
  ping: PingTarget & { durationMs: number | null; runId: string | null; body: Buffer | null; at: number },
) => Promise<'stored' | 'run_refused' | 'duplicate' | 'unknown' | 'unavailable'>

export interface PingAppOptions {
  readonly record: RecordPing
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

const HEADERS = {
  'Content-Type': 'text/plain; charset=utf-8',
  'Cache-Control': 'no-store',
  'Access-Control-Allow-Origin': '*',
  'Ping-Body-Limit': String(LIMITS.pingBodyBytes),
}
const OK_HEADERS = { ...HEADERS, 'Content-Length': '2' }
const RETRY_AFTER_SECONDS = 5

export function createPingApp(options: PingAppOptions): Koa {
  const { record, now, isStopping = () => false, onPing, onRequest, onWarning, onError } = options
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
    const target = parsePingPath(ctx.path)
    const rejection = typeof target === 'string' ? REJECTED_PATHS[target] : rejectMethod(ctx.method)
    if (typeof target === 'string' || rejection !== null) return reject(ctx, rejection!, 'unknown')
    try {
      const body = await readPingBody(ctx)
      const { durationMs, runId, warnings } = parsePingMetadata(target.type, durationHeader(ctx), ctx.querystring)
      const result = await record({ ...target, durationMs, runId, body, at })
      if (result === 'unknown') return reject(ctx, NOT_FOUND, target.type)
      if (result === 'unavailable') return reject(ctx, UNAVAILABLE, target.type)
      onPing(target.type, result === 'duplicate' ? 'duplicate' : 'stored')
      accept(ctx, result === 'run_refused' ? [...warnings, 'run_refused'] : warnings)
    } catch (error) {
      if (error instanceof RequestAborted) return
      if (!(error instanceof AppError)) onError(error)
      reject(ctx, error instanceof AppError ? toRejection(error) : UNAVAILABLE, target.type)
    }
  }

  function accept({ res, method }: Context, warnings: readonly PingWarning[]): void {
    if (warnings.length > 0) {
      for (const warning of warnings) onWarning(warning)
      res.setHeader('Ping-Warning', warnings.map((warning) => PING_WARNINGS[warning]).join('; '))
    }
    res.writeHead(200, OK_HEADERS)
    res.end(method === 'HEAD' ? undefined : 'OK')
  }

  function reject(ctx: Context, { status, message, result, headers }: Rejection, pingType: string): void {
    onPing(pingType, result)
    const { req, res } = ctx
    const isJson = ctx.accepts('text/plain', 'application/json') === 'application/json'
    const text = isJson ? JSON.stringify({ error: message }) : message
    res.statusCode = status
    const type = isJson ? { 'Content-Type': 'application/json; charset=utf-8' } : {}
    for (const [name, value] of Object.entries({ ...HEADERS, ...type, ...headers })) res.setHeader(name, value)
    // The rest of the body is still being sent.
    if (hasBody(req) && !req.readableEnded) return void respondAndDrain(req, res, text)
    res.setHeader('Content-Length', Buffer.byteLength(text))
    res.end(ctx.method === 'HEAD' ? undefined : text)
  }
}

interface Rejection {
  readonly status: number
  readonly message: string
  /** Label of the counter. */
  readonly result: string
  readonly headers?: Record<string, string>
}

const NOT_FOUND: Rejection = { status: 404, message: 'not found', result: 'not_found' }
const INVALID_EXIT_CODE: Rejection = { status: 400, message: 'invalid exit code', result: 'invalid_exit_code' }
const WRONG_METHOD: Rejection = {
  status: 405,
  message: 'method not allowed: use GET, HEAD or POST',
  result: 'wrong_method',
  headers: { Allow: 'GET, HEAD, POST' },
}
const UNAVAILABLE: Rejection = {
  status: 503,
  message: 'the ping could not be stored; try again',
  result: 'unavailable',
  headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
}

const REJECTED_PATHS = { not_found: NOT_FOUND, invalid_exit_code: INVALID_EXIT_CODE }

function rejectMethod(method: string): Rejection | null {
  return method === 'GET' || method === 'POST' || method === 'HEAD' ? null : WRONG_METHOD
}

function toRejection({ code, message }: AppError): Rejection {
  switch (code) {
    case 'too_large':
      return {
        status: 413,
        message: `body too large: at most ${LIMITS.pingBodyBytes} bytes; the ping was not recorded`,
        result: 'body_too_large',
      }
    case 'unsupported_media_type':
      return { status: 415, message, result: 'body_compressed' }
    default:
      return UNAVAILABLE
  }
}

/** The body of a POST; null when empty. It is stored as bytes: the output of a job may not be valid text. */
async function readPingBody({ req, method }: Context): Promise<Buffer | null> {
  if (method !== 'POST' || !hasBody(req)) return null
  if (isCompressed(req)) {
    throw new AppError('unsupported_media_type', 'compressed bodies are not supported; the ping was not recorded')
  }
  const body = await readBody(req, LIMITS.pingBodyBytes)
  return body.length === 0 ? null : body
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
