/** Structured log lines with constant messages. Secrets and public ids are redacted. */

import { type Logger, pino } from 'pino'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export interface LogOptions {
  readonly level: string
  readonly format: 'pretty' | 'json'
}

/** Values under these keys are redacted, in case a secret is logged by mistake. */
const SECRET_KEYS = [
  'password',
  'key',
  'secret',
  'token',
  'authorization',
  'cookie',
  'access_token',
  'refresh_token',
  'databaseUrl',
  'secretKey',
  'public_id',
  'publicId',
  'ping_key',
  'pingKey',
  'badge_key',
  'badgeKey',
]

/** Writes to standard error: standard output belongs to the texts of `npm start`. */
export function createLog({ level, format }: LogOptions): Log {
  const redact = { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]), censor: '[redacted]' }
  const options = {
    level,
    redact,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: describeError },
  }
  if (format === 'json') {
    const hooks = { streamWrite: escapeDirections }
    return pino({ ...options, hooks }, pino.destination({ dest: 2, sync: true }))
  }
  const transport = pino.transport({
    target: 'pino-pretty',
    options: {
      destination: 2,
      colorize: process.stderr.isTTY,
      ignore: 'pid,hostname',
      translateTime: 'SYS:HH:MM:ss.l',
    },
  })
  return pino({ ...options, formatters: {} }, transport)
}

/** Names of others may turn the text of a terminal round that shows the JSON log. A parser reads the same character. */
function escapeDirections(line: string): string {
  return line.replace(DIRECTION_CHANGES, (character) => `\\u${character.charCodeAt(0).toString(16)}`)
}

const DIRECTION_CHANGES = /[\u202a-\u202e\u2066-\u2069]/g

/**
 * The logged fields of an error, never the whole object: a PostgreSQL error has values of the failed row in `detail`
 * and `where`, a failed request has its headers.
 */
export function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { name: 'unknown', message: redactIds(String(error)) }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {}
  const stack = error.stack === undefined ? {} : { stack: redactIds(error.stack) }
  // The message is for callers; the cause has the details for the reader of the log.
  const cause = error.cause instanceof Error ? { cause: describeError(error.cause) } : {}
  return { name: error.name, message: redactIds(error.message), ...code, ...stack, ...cause }
}

export interface DescribedError {
  readonly name: string
  readonly message: string
  readonly code?: string
  readonly stack?: string
  readonly cause?: DescribedError
}

const UUID_V4 = /\b([0-9a-f]{8})-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/gi
const API_KEY = /\bhbk_([0-9a-zA-Z]+)_[0-9a-zA-Z_-]+/g
/** Text without white space, up to the first @: each character is looked at once, however many there are. */
const UP_TO_AT = /[^@\s]+@?/g
const URL_USER = /\b[a-z]+:\/\/[^:/@]+:(?!@)/i

/** Redacts public ids (UUID version 4), API keys and passwords in URLs. Other ids are UUIDs of version 7. */
export function redactIds(text: string): string {
  return text.replace(UUID_V4, '$1-…').replace(API_KEY, 'hbk_$1_…').replace(UP_TO_AT, hidePassword)
}

function hidePassword(piece: string): string {
  const user = piece.endsWith('@') ? URL_USER.exec(piece) : null
  return user === null ? piece : `${piece.slice(0, user.index + user[0].length)}…@`
}
