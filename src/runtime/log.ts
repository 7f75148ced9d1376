/** Structured lines with constant messages. Secrets and public ids never reach a line whole. */

import { type Logger, pino } from 'pino'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export interface LogOptions {
  readonly level: string
  readonly format: 'pretty' | 'json'
}

/** Keys whose values are dropped wherever they appear in a line, as a second line of defence behind not logging them. */
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
]

/** Lines go to standard error: standard output belongs to what `npm start` says to people and scripts. */
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
  if (format === 'json') return pino(options, pino.destination({ dest: 2, sync: true }))
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

/**
 * What we tell of an error: never its whole object. A PostgreSQL error carries the values of the row it failed on in
 * `detail` and `where`; a failed request its headers.
 */
export function describeError(error: unknown): DescribedError {
  if (!(error instanceof Error)) return { name: 'unknown', message: redactIds(String(error)) }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {}
  const stack = error.stack === undefined ? {} : { stack: redactIds(error.stack) }
  // "The database cannot be reached" is for callers; what it said itself is for whoever reads this.
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
const URL_PASSWORD = /(\b[a-z]+:\/\/[^:/@\s]+:)[^@\s]+@/gi

/** A public id is a random (version 4) UUID and the capability to ping; our other ids are version 7 and harmless. */
export function redactIds(text: string): string {
  return text.replace(UUID_V4, '$1-…').replace(API_KEY, 'hbk_$1_…').replace(URL_PASSWORD, '$1…@')
}
