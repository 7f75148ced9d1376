/**
 * The ping API (interface, section 4.2; design, section 3.3): the hot path, without a framework or a router. Errors are
 * plain text, or JSON where the client accepts JSON.
 */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import accepts from 'accepts'
import type { FindAddressed } from '../../checks/ping/find-addressed.ts'
import type { Ping, PingResult } from '../../checks/ping/ping.ts'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { type BodyLimits, hasBody, RequestAborted, readTail, respondAndDrain } from '../body.ts'
import { CLIENT_LEFT } from '../middleware/errors.ts'
import * as requests from './request.ts'
import * as responses from './responses.ts'

/** `since`: when the ping began to wait, by this process's clock. Default: now. */
export type RecordPing = (ping: Ping, since?: number) => Promise<PingResult>

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
  readonly onWarning: (warning: requests.PingWarning) => void
  /** A fault of this program. The client gets 503. */
  readonly onError: (error: unknown) => void
}

/** A PUT is a POST: `curl -T` sends one. */
const METHODS = new Set(['GET', 'POST', 'PUT', 'HEAD'])

type Find = () => ReturnType<FindAddressed['byName']>

interface Sent {
  readonly metadata: requests.PingMetadata
  /** The public id where the path has it. */
  readonly check: string | Find
  readonly form: 'ping' | 'push'
}

export function createPingApp(options: PingAppOptions): RequestListener {
  const { record, hasCheck, find, now, processNow, onPing, onRequest, onWarning, onError } = options
  const { isStopping = () => false } = options
  return async (req, res) => {
    const at = now()
    const startedAt = processNow()
    // From the start of the drain on: closing the port may cut an idle connection with a ping on its way.
    if (isStopping()) res.setHeader('Connection', 'close')
    const { path, query } = splitTarget(req.url!)
    const ping = requests.parsePingPath(path)
    await serve(res, at, ping, query).catch((error) => fail(res, error))
    onRequest(req.method!, res.statusCode, (processNow() - startedAt) / 1_000, routeOf(ping))
  }

  async function serve(res: ServerResponse, at: number, path: requests.PingPath | null, query: string): Promise<void> {
    const { req } = res
    if (path === null) return reject(res, responses.NO_CHECK, 'unknown')
    if (req.method === 'OPTIONS') return allow(res)
    // Uptime Kuma takes any method.
    if (path.kind === 'push') return storePush(res, at, path.token, query)
    if (!METHODS.has(req.method!)) return reject(res, responses.WRONG_METHOD, 'unknown')
    if (path.kind === 'invalid_exit_code' || path.kind === 'unknown_signal') return explainSignal(res, path)
    const metadata = requests.parsePingMetadata(path.kind === 'ping' ? path.signal : null, durationHeader(req), query)
    if (path.kind === 'invalid_slug')
      return reject(res, metadata.isCreating ? responses.INVALID_SLUG : responses.NO_CHECK, metadata.signal.type)
    const { name } = path
    const check = name === undefined ? path.publicId : () => find.byName(name, metadata.isCreating)
    return storePing(res, at, { metadata, check, form: 'ping' })
  }

  async function storePush(res: ServerResponse, at: number, token: string | null, query: string): Promise<void> {
    const metadata = requests.parsePushMetadata(query)
    if (token === null) return reject(res, responses.NO_TOKEN, metadata.signal.type, 'push')
    const check = async () => {
      const publicId = await find.byToken(token)
      return publicId === null ? null : { publicId, isNew: false }
    }
    return storePing(res, at, { metadata, check, form: 'push' })
  }

  async function storePing(res: ServerResponse, at: number, { metadata, check, form }: Sent): Promise<void> {
    const { signal, durationMs, runId, warnings } = metadata
    const { type, exitCode } = signal
    const rejectAs = (rejection: responses.Rejection) => reject(res, rejection, type, form)
    try {
      const sent = await readPingBody(res.req)
      const { loss } = sent
      const ping = { type, exitCode, durationMs, runId, ...textToStore(sent, metadata), at }
      const { result, isNew } =
        typeof check === 'string'
          ? { result: await record({ publicId: check, ...ping }), isNew: false }
          : await recordFound(check, ping)
      if (result === 'unknown') return rejectAs(form === 'push' ? responses.NO_TOKEN : responses.NO_CHECK)
      if (result === 'unavailable') return rejectAs(responses.UNAVAILABLE)
      if (result === 'unconfirmed') return rejectAs(responses.UNCONFIRMED)
      if (result === 'spooled') res.setHeader('Ping-Stored', 'spool')
      warn(res, result === 'run_refused' ? [...warnings, 'run_refused'] : warnings)
      if (loss !== null) return rejectAs(responses.bodyLost(loss, result === 'duplicate'))
      onPing(type, result === 'run_refused' ? 'stored' : result)
      if (form === 'push') return respond(res, 200, responses.PUSHED_HEADERS, responses.PUSHED)
      return isNew
        ? respond(res, 201, responses.CREATED_HEADERS, 'Created')
        : respond(res, 200, responses.OK_HEADERS, 'OK')
    } catch (error) {
      if (error instanceof RequestAborted) res.statusCode = CLIENT_LEFT
      else if (error instanceof AppError && ['too_many_requests', 'forbidden'].includes(error.code))
        rejectAs(responses.notCreated(error))
      else fail(res, error, type, form)
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
  async function explainSignal(res: ServerResponse, path: requests.UnusableSignal): Promise<void> {
    res.req.resume()
    const { name } = path
    const isKnown = name === undefined ? await hasCheck(path.publicId) : (await find.byName(name, false)) !== null
    const explain = path.kind === 'unknown_signal' ? responses.unknownSignal : responses.invalidExitCode
    reject(res, isKnown ? explain(path.given) : responses.NO_CHECK, 'unknown')
  }

  function fail(res: ServerResponse, error: unknown, pingType = 'unknown', form: Sent['form'] = 'ping'): void {
    if (!(error instanceof AppError)) onError(error)
    if (res.headersSent) res.destroy()
    else reject(res, responses.UNAVAILABLE, pingType, form)
  }

  function warn(res: ServerResponse, warnings: readonly requests.PingWarning[]): void {
    if (warnings.length === 0) return
    for (const warning of warnings) onWarning(warning)
    res.setHeader('Ping-Warning', warnings.map((warning) => requests.PING_WARNINGS[warning]).join('; '))
  }

  function reject(
    res: ServerResponse,
    rejection: responses.Rejection,
    pingType: string,
    form: Sent['form'] = 'ping',
  ): void {
    onPing(pingType, rejection.result)
    const { req } = res
    const isJson = accepts(req).type(['text/plain', 'application/json']) === 'application/json'
    const { text, headers } = responses.renderRejection(rejection, form === 'push' ? 'push' : isJson ? 'error' : 'text')
    res.statusCode = rejection.status
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
    // The rest of the body is still being sent.
    if (hasBody(req) && !req.readableEnded) return void respondAndDrain(req, res, text)
    res.setHeader('Content-Length', Buffer.byteLength(text))
    res.end(req.method === 'HEAD' ? undefined : text)
  }
}

/** A target in origin form. The server leaves no other form but `*` (http/head.ts). */
function splitTarget(target: string): { path: string; query: string } {
  const [withoutFragment = ''] = target.split('#', 1)
  const mark = withoutFragment.indexOf('?')
  if (mark === -1) return { path: withoutFragment, query: '' }
  return { path: withoutFragment.slice(0, mark), query: withoutFragment.slice(mark + 1) }
}

function respond(res: ServerResponse, status: number, headers: Record<string, string>, text: string): void {
  res.writeHead(status, headers)
  res.end(res.req.method === 'HEAD' ? undefined : text)
}

function routeOf(path: requests.PingPath | null): string {
  if (path?.kind === 'push') return '/api/push/{token}'
  return path?.name === undefined ? '/ping/{public_id}' : '/ping/{ping_key}/{slug}'
}

/** A browser asks what it may send. That is no ping. */
function allow(res: ServerResponse): void {
  res.req.resume()
  res.writeHead(204, responses.PREFLIGHT_HEADERS)
  res.end()
}

interface PingBody {
  readonly bytes: Buffer | null
  /** Why `bytes` are not all that was sent; null when they are. */
  readonly loss: responses.BodyLoss | null
}

const PING_BODY: BodyLimits = { keepBytes: LIMITS.pingBodyBytes, mostBytes: LIMITS.pingBodyReadBytes }

const EMPTY = Buffer.alloc(0)
const LF = 10

const NO_BODY: PingBody = { bytes: null, loss: null }

/**
 * The body of a POST or PUT; null when empty. It is stored as bytes: the output of a job may not be valid text. Of a
 * body that is not read, Node would keep what comes while the database is asked: it is dropped.
 */
async function readPingBody(req: IncomingMessage): Promise<PingBody> {
  if (!hasBody(req)) return NO_BODY
  const isMeant = req.method === 'POST' || req.method === 'PUT'
  if (!isMeant || isCompressed(req)) {
    req.resume()
    return isMeant ? { bytes: null, loss: 'compressed' } : NO_BODY
  }
  const read = await readTail(req, PING_BODY)
  if (typeof read === 'string') return { bytes: null, loss: read }
  const { bytes, isCut } = read
  return { bytes: bytes.length === 0 ? null : bytes, loss: isCut ? 'cut' : null }
}

/** A body takes the place of `msg`. The unknown word is the reason of a failure: no cut reaches the last line. */
function textToStore({ bytes, loss }: PingBody, { text, unknown }: requests.PingMetadata) {
  const words = bytes === null && loss === null ? text : unknown
  if (words === null) return { body: bytes, isBodyTruncated: loss !== null }
  const lines = bytes === null ? words : `${bytes.at(-1) === LF ? '' : '\n'}${words}`
  const whole = Buffer.concat([bytes ?? EMPTY, Buffer.from(lines)])
  const isBodyTruncated = loss !== null || whole.length > LIMITS.pingBodyBytes
  return { body: whole.subarray(-LIMITS.pingBodyBytes), isBodyTruncated }
}

/** Transfer codings other than `chunked` also compress; Node does not decode them. */
function isCompressed({ headers }: IncomingMessage): boolean {
  const content = headers['content-encoding']?.toLowerCase() || 'identity'
  const transfer = headers['transfer-encoding']?.toLowerCase() ?? 'chunked'
  return content !== 'identity' || transfer !== 'chunked'
}

function durationHeader({ headers }: IncomingMessage): string | undefined {
  const value = headers['x-service-duration']
  return Array.isArray(value) ? value.join(',') : value
}
