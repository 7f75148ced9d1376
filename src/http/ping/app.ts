/**
 * The ping API (interface, section 4.2; design, section 3.3): the hot path. One middleware and no router: request.ts matches the path, which is
 * the whole specification, and cheaper. Errors are plain text, or JSON where the client accepts that.
 */

import Koa, { type Context } from 'koa'
import type { PingType } from '../../domain/check.ts'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import type { CheckName } from '../../domain/slug.ts'
import { type BodyLimits, hasBody, RequestAborted, readTail, respondAndDrain } from '../body.ts'
import {
  PING_WARNINGS,
  type PingMetadata,
  type PingPath,
  type PingWarning,
  parsePingMetadata,
  parsePingPath,
  parsePushMetadata,
  type UnusableSignal,
} from './request.ts'
import {
  type BodyLoss,
  bodyLost,
  CREATED_HEADERS,
  INVALID_SLUG,
  invalidExitCode,
  NO_CHECK,
  NO_TOKEN,
  notCreated,
  OK_HEADERS,
  PREFLIGHT_HEADERS,
  PUSHED,
  PUSHED_HEADERS,
  type Rejection,
  renderRejection,
  UNAVAILABLE,
  UNCONFIRMED,
  unknownSignal,
  WRONG_METHOD,
} from './responses.ts'

/** checks/ping/record.ts implements it. */
export type RecordPing = (
  ping: {
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
  },
  /** When it began to wait, by this process's clock. Default: now. */
  since?: number,
) => Promise<'stored' | 'run_refused' | 'duplicate' | 'spooled' | 'unknown' | 'unconfirmed' | 'unavailable'>

/** checks/ping/find-addressed.ts implements it. */
export interface FindAddressed {
  /** Null: no such key or slug. Throws AppError `too_many_requests` or `forbidden` where a check is not created. */
  byName(name: CheckName, isCreating: boolean): Promise<{ readonly publicId: string; readonly isNew: boolean } | null>
  /** A public id. Null: no such token. */
  byToken(token: string): Promise<string | null>
}

export interface PingAppOptions {
  readonly record: RecordPing
  /** Whether a check has this public id. Throws when the database cannot be asked, as the next one does. */
  readonly hasCheck: (publicId: string) => Promise<boolean>
  readonly find: FindAddressed
  /** The database's clock, for arrivals. */
  readonly now: () => number
  /** This process's clock, for what takes time: the database's clock may jump. */
  readonly processNow: () => number
  readonly isStopping?: () => boolean
  readonly onPing: (type: string, result: string) => void
  /** After each response. `route`: never the path, which holds the right to ping. */
  readonly onRequest: (method: string, status: number, seconds: number, route: string) => void
  readonly onWarning: (warning: PingWarning) => void
  /** A fault of this program. The client gets 503. */
  readonly onError: (error: unknown) => void
}

/** A PUT is a POST: `curl -T` sends one. */
const METHODS = new Set(['GET', 'POST', 'PUT', 'HEAD'])

const BY_ID = '/ping/{public_id}'
const BY_NAME = '/ping/{ping_key}/{slug}'
const BY_TOKEN = '/api/push/{token}'

/** A check that has to be looked up. */
type Find = () => Promise<{ readonly publicId: string; readonly isNew: boolean } | null>

interface Sent {
  readonly metadata: PingMetadata
  /** The public id where the path has it. */
  readonly check: string | Find
  readonly form: 'ping' | 'push'
}

export function createPingApp(options: PingAppOptions): Koa {
  const { record, hasCheck, find, now, processNow, onPing, onRequest, onWarning, onError } = options
  const { isStopping = () => false } = options
  const app = new Koa()
  app.silent = true
  app.use(async (ctx) => {
    const at = now()
    const startedAt = processNow()
    // From the start of the drain on: closing the port may cut an idle connection with a ping on its way.
    if (isStopping()) ctx.res.setHeader('Connection', 'close')
    const path = parsePingPath(ctx.path)
    await serve(ctx, at, path)
    onRequest(ctx.method, ctx.res.statusCode, (processNow() - startedAt) / 1_000, routeOf(path))
  })
  return app

  async function serve(ctx: Context, at: number, path: PingPath | null): Promise<void> {
    // Without Koa's own rendering, which costs more (docs/benchmarks.md, plain Koa).
    ctx.respond = false
    if (path === null) return reject(ctx, NO_CHECK, 'unknown')
    if (ctx.method === 'OPTIONS') return allow(ctx)
    // Uptime Kuma takes any method.
    if (path.kind === 'push') return storePush(ctx, at, path.token)
    if (!METHODS.has(ctx.method)) return reject(ctx, WRONG_METHOD, 'unknown')
    if (path.kind === 'invalid_exit_code' || path.kind === 'unknown_signal') return explainSignal(ctx, path)
    const metadata = parsePingMetadata(path.kind === 'ping' ? path.signal : null, durationHeader(ctx), ctx.querystring)
    if (path.kind === 'invalid_slug')
      return reject(ctx, metadata.isCreating ? INVALID_SLUG : NO_CHECK, metadata.signal.type)
    const { name } = path
    const check = name === undefined ? path.publicId : () => find.byName(name, metadata.isCreating)
    return storePing(ctx, at, { metadata, check, form: 'ping' })
  }

  async function storePush(ctx: Context, at: number, token: string | null): Promise<void> {
    const metadata = parsePushMetadata(ctx.querystring)
    if (token === null) return reject(ctx, NO_TOKEN, metadata.signal.type, 'push')
    const check = async () => {
      const publicId = await find.byToken(token)
      return publicId === null ? null : { publicId, isNew: false }
    }
    return storePing(ctx, at, { metadata, check, form: 'push' })
  }

  async function storePing(ctx: Context, at: number, { metadata, check, form }: Sent): Promise<void> {
    const { signal, durationMs, runId, warnings } = metadata
    const { type, exitCode } = signal
    const rejectAs = (rejection: Rejection) => reject(ctx, rejection, type, form)
    try {
      const sent = await readPingBody(ctx)
      const { loss } = sent
      const ping = { type, exitCode, durationMs, runId, ...textToStore(sent, metadata), at }
      const { result, isNew } =
        typeof check === 'string'
          ? { result: await record({ publicId: check, ...ping }), isNew: false }
          : await recordFound(check, ping)
      if (result === 'unknown') return rejectAs(form === 'push' ? NO_TOKEN : NO_CHECK)
      if (result === 'unavailable') return rejectAs(UNAVAILABLE)
      if (result === 'unconfirmed') return rejectAs(UNCONFIRMED)
      if (result === 'spooled') ctx.res.setHeader('Ping-Stored', 'spool')
      warn(ctx, result === 'run_refused' ? [...warnings, 'run_refused'] : warnings)
      if (loss !== null) return rejectAs(bodyLost(loss, result === 'duplicate'))
      onPing(type, result === 'run_refused' ? 'stored' : result)
      if (form === 'push') return respond(ctx, 200, PUSHED_HEADERS, PUSHED)
      return isNew ? respond(ctx, 201, CREATED_HEADERS, 'Created') : respond(ctx, 200, OK_HEADERS, 'OK')
    } catch (error) {
      if (error instanceof RequestAborted) return
      if (error instanceof AppError && ['too_many_requests', 'forbidden'].includes(error.code))
        return rejectAs(notCreated(error))
      if (!(error instanceof AppError)) onError(error)
      rejectAs(UNAVAILABLE)
    }
  }

  async function recordFound(check: Find, ping: Omit<Parameters<RecordPing>[0], 'publicId'>) {
    const since = processNow()
    let isNew = false
    for (let attempt = 1; ; attempt += 1) {
      const found = await check()
      if (found === null) return { result: 'unknown', isNew } as const
      isNew ||= found.isNew
      const result = await record({ publicId: found.publicId, ...ping }, since)
      // It was removed in between. Another one may have its slug now.
      if (result !== 'unknown' || attempt === 2) return { result, isNew }
    }
  }

  /** Only a check that exists gets the list of signals. That costs a read, as a ping of an unknown check does. */
  async function explainSignal(ctx: Context, path: UnusableSignal): Promise<void> {
    drop(ctx.req, NO_BODY)
    try {
      const { name } = path
      const isKnown = name === undefined ? await hasCheck(path.publicId) : (await find.byName(name, false)) !== null
      const explain = path.kind === 'unknown_signal' ? unknownSignal : invalidExitCode
      reject(ctx, isKnown ? explain(path.given) : NO_CHECK, 'unknown')
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

  function reject(ctx: Context, rejection: Rejection, pingType: string, form: Sent['form'] = 'ping'): void {
    onPing(pingType, rejection.result)
    const { req, res } = ctx
    const isJson = ctx.accepts('text/plain', 'application/json') === 'application/json'
    const { text, headers } = renderRejection(rejection, form === 'push' ? 'push' : isJson ? 'error' : 'text')
    res.statusCode = rejection.status
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
    // The rest of the body is still being sent.
    if (hasBody(req) && !req.readableEnded) return void respondAndDrain(req, res, text)
    res.setHeader('Content-Length', Buffer.byteLength(text))
    res.end(ctx.method === 'HEAD' ? undefined : text)
  }
}

function respond({ res, method }: Context, status: number, headers: Record<string, string>, text: string): void {
  res.writeHead(status, headers)
  res.end(method === 'HEAD' ? undefined : text)
}

function routeOf(path: PingPath | null): string {
  if (path === null) return BY_ID
  if (path.kind === 'push') return BY_TOKEN
  return path.name === undefined ? BY_ID : BY_NAME
}

/** A browser asks what it may send. That is no ping. */
function allow({ req, res }: Context): void {
  drop(req, NO_BODY)
  res.writeHead(204, PREFLIGHT_HEADERS)
  res.end()
}

interface PingBody {
  readonly bytes: Buffer | null
  /** Why `bytes` are not all that was sent; null when they are. */
  readonly loss: BodyLoss | null
}

/** What is read and kept of a body. */
const PING_BODY: BodyLimits = { keepBytes: LIMITS.pingBodyBytes, mostBytes: LIMITS.pingBodyReadBytes }

const EMPTY = Buffer.alloc(0)
const LF = 10

const NO_BODY: PingBody = { bytes: null, loss: null }

/** The body of a POST or PUT; null when empty. It is stored as bytes: the output of a job may not be valid text. */
async function readPingBody({ req, method }: Context): Promise<PingBody> {
  if (!hasBody(req)) return NO_BODY
  if (method !== 'POST' && method !== 'PUT') return drop(req, NO_BODY)
  if (isCompressed(req)) return drop(req, { bytes: null, loss: 'compressed' })
  const read = await readTail(req, PING_BODY)
  if (typeof read === 'string') return { bytes: null, loss: read }
  const { bytes, isCut } = read
  return { bytes: bytes.length === 0 ? null : bytes, loss: isCut ? 'cut' : null }
}

/** A body takes the place of `msg`. The unknown word is the reason of a failure: no cut reaches the last line. */
function textToStore({ bytes, loss }: PingBody, { text, unknown }: PingMetadata) {
  const words = bytes === null && loss === null ? text : unknown
  if (words === null) return { body: bytes, isBodyTruncated: loss !== null }
  const lines = bytes === null ? words : `${bytes.at(-1) === LF ? '' : '\n'}${words}`
  const whole = Buffer.concat([bytes ?? EMPTY, Buffer.from(lines)])
  const isBodyTruncated = loss !== null || whole.length > LIMITS.pingBodyBytes
  return { body: whole.subarray(-LIMITS.pingBodyBytes), isBodyTruncated }
}

/** Of a body that is not read, Node would keep what comes while the database is asked. */
function drop(request: Context['req'], instead: PingBody): PingBody {
  request.resume()
  return instead
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
