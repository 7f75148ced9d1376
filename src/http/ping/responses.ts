/** What the ping API returns besides OK (design, section 3.3): statuses, texts, headers. */

import type { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { SLUG_RULE } from '../../domain/slug.ts'
import { type BodyFault, FAULT_TEXTS } from '../body.ts'

/** Of each response. A page of any origin may ping: the public id is the capability. */
export const HEADERS = {
  'Content-Type': 'text/plain; charset=utf-8',
  'Cache-Control': 'no-store',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'Ping-Warning, Ping-Body-Limit, Ping-Stored',
  'Ping-Body-Limit': String(LIMITS.pingBodyBytes),
}
export const OK_HEADERS = { ...HEADERS, 'Content-Length': '2' }
export const CREATED_HEADERS = { ...HEADERS, 'Content-Length': '7' }

const JSON_TYPE = 'application/json; charset=utf-8'

/** What Uptime Kuma returns for a push. */
export const PUSHED = '{"ok":true}'
export const PUSHED_HEADERS = { ...HEADERS, 'Content-Type': JSON_TYPE, 'Content-Length': String(PUSHED.length) }

/** Of the response to OPTIONS, with which a browser asks before it sends a header or a type of its own. */
export const PREFLIGHT_HEADERS = {
  Allow: 'GET, HEAD, POST, PUT, OPTIONS',
  'Cache-Control': 'no-store',
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT',
  'Access-Control-Allow-Headers': 'Content-Type, X-Service-Duration',
  'Access-Control-Max-Age': '86400',
}

/** Of each rejection, as its text may repeat a part of the path. */
const REJECTION_HEADERS = { ...HEADERS, 'X-Content-Type-Options': 'nosniff' }

export interface Rejection {
  readonly status: number
  readonly message: string
  readonly result: string
  readonly headers?: Record<string, string>
}

/** `form`: plain text, `{"error": ...}`, or `{"ok": false, "msg": ...}` as Uptime Kuma does. */
export function renderRejection({ message, headers }: Rejection, form: 'text' | 'error' | 'push') {
  const text =
    form === 'text' ? message : JSON.stringify(form === 'error' ? { error: message } : { ok: false, msg: message })
  const type = form === 'text' ? {} : { 'Content-Type': JSON_TYPE }
  return { text, headers: { ...REJECTION_HEADERS, ...type, ...headers } }
}

export const NO_CHECK: Rejection = { status: 404, message: 'no such check', result: 'not_found' }

export const WRONG_METHOD: Rejection = {
  status: 405,
  message: 'method not allowed: use GET, HEAD, POST, PUT or OPTIONS',
  result: 'wrong_method',
  headers: { Allow: PREFLIGHT_HEADERS.Allow },
}

const RETRY_AFTER_SECONDS = 5
export const UNAVAILABLE: Rejection = {
  status: 503,
  message: 'the ping could not be stored; try again',
  result: 'unavailable',
  headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
}

/** The same for the client, and no ping that is known to be lost: perhaps no check has this id. */
export const UNCONFIRMED: Rejection = { ...UNAVAILABLE, result: 'unconfirmed' }

/** The response does not say whether a monitor that is not active has this token. */
export const NO_TOKEN: Rejection = { ...NO_CHECK, message: 'no monitor has this push token' }

export const INVALID_SLUG: Rejection = {
  status: 400,
  message: `the check was not created: its slug ${SLUG_RULE}`,
  result: 'invalid_slug',
}

/** Of AppError `too_many_requests`, and of `forbidden`, where it does not help to try again. */
export function notCreated({ code, message, retryAfterSeconds = RETRY_AFTER_SECONDS }: AppError): Rejection {
  if (code === 'forbidden') return { status: 403, message, result: 'not_created' }
  return { status: 429, message, result: 'not_created', headers: { 'Retry-After': String(retryAfterSeconds) } }
}

export function unknownSignal(given: string): Rejection {
  const message = `unknown signal "${echo(given)}": use start, fail, log or an exit code from 0 to ${LIMITS.exitCode}`
  return { status: 404, message, result: 'unknown_signal' }
}

export function invalidExitCode(given: string): Rejection {
  const message = `invalid exit code ${echo(given)}: 0 to ${LIMITS.exitCode}`
  return { status: 400, message, result: 'invalid_exit_code' }
}

const ECHO_LENGTH = 40

/** A short text of the request: only characters that mean nothing to a terminal or a browser. */
function echo(given: string): string {
  const text = given.slice(0, ECHO_LENGTH).replace(/[^\w.~%/+-]/g, '?')
  return given.length > ECHO_LENGTH ? `${text}...` : text
}

/** What became of the text of a ping whose body is not stored as it was sent. */
export type BodyLoss = BodyFault | 'cut' | 'compressed'

const TOO_LARGE = `body too large: ${LIMITS.pingBodyBytes} bytes at most`
const WITHOUT = 'recorded without it'
const LOSSES: Record<BodyLoss, Pick<Rejection, 'status' | 'result' | 'headers'> & { fault: string; became: string }> = {
  cut: {
    status: 413,
    result: 'body_too_large',
    fault: TOO_LARGE,
    became: `recorded with the last ${LIMITS.pingBodyBytes}`,
  },
  too_large: { status: 413, result: 'body_too_large', fault: TOO_LARGE, became: WITHOUT },
  compressed: {
    status: 415,
    result: 'body_compressed',
    // No handler reads the body, and its bytes must not reach the next request.
    headers: { Connection: 'close' },
    fault: 'compressed bodies are not supported',
    became: WITHOUT,
  },
  too_fine: { status: 400, result: 'body_too_fine', fault: FAULT_TEXTS.too_fine, became: WITHOUT },
  // A client that tries again brings the text. The signal counts already.
  no_room: {
    status: 503,
    result: 'body_no_room',
    headers: UNAVAILABLE.headers!,
    fault: FAULT_TEXTS.no_room,
    became: WITHOUT,
  },
}

/** The ping counts, its body does not, or not whole. `isRepeat`: the same ping was recorded before. */
export function bodyLost(loss: BodyLoss, isRepeat: boolean): Rejection {
  const { fault, became, ...rejection } = LOSSES[loss]
  return { ...rejection, message: `${fault}; the ping was ${isRepeat ? 'recorded before' : became}` }
}
