/** The closed list of errors that callers see. Each edge translates a code into its own language (http/middleware/errors.ts, operator/status/stalled.ts). */

export const ERROR_CODES = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'not_found',
  'method_not_allowed',
  'conflict',
  'too_large',
  'unsupported_media_type',
  'too_many_requests',
  'internal',
  'unavailable',
] as const
export type ErrorCode = (typeof ERROR_CODES)[number]

export type ErrorWord = 'channel_in_use'

export interface FieldFault {
  /** Where in the request, for example `body.period_seconds` or `query.limit`. */
  readonly path: string
  readonly message: string
}

export interface AppErrorOptions {
  /** The field at fault, by its name in our types. An edge words it (`describeError`). */
  readonly field?: string
  /** Tells this error from others of its code, for programs. */
  readonly word?: ErrorWord
  /** Faults that an edge has worded already. */
  readonly details?: readonly FieldFault[]
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** An error that the caller sees, in words for the caller. Any other error is a fault of ours, and callers never see its message. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly field: string | undefined
  readonly word: ErrorWord | undefined
  readonly details: readonly FieldFault[] | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.field = options.field
    this.word = options.word
    this.details = options.details
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/**
 * A field with a wrong value. `message` says what would be right, in words that follow the field's name: `must be ...`. Other fields
 * stand in it as `{periodSeconds}`, `{schedule}` or `{timeZone}`.
 */
export function invalidField(field: string, message: string): AppError {
  return new AppError('invalid', message, { field })
}

/** In the words of an edge, which names our fields by `nameOf`. `text` names the field at fault, `rule` does not. */
export function describeError({ code, field, message }: AppError, nameOf: (field: string) => string) {
  const rule = message.replace(/\{(periodSeconds|schedule|timeZone)\}/g, (_, other: string) => nameOf(other))
  return { rule, text: code === 'invalid' && field !== undefined ? `${nameOf(field)} ${rule}` : rule }
}

/** The database does not respond now; the same request may succeed in a moment. */
export function unavailable(cause?: unknown): AppError {
  return new AppError('unavailable', 'the service cannot reach its database at the moment; try again shortly', {
    retryAfterSeconds: 5,
    cause,
  })
}

/** `what` names the things among which slugs are unique. */
export function slugTaken(what: 'project' | 'check of the project', slug: string): AppError {
  return new AppError('conflict', `another ${what} has the slug "${slug}": choose another`, { field: 'slug' })
}

export function notFound(what: string): AppError {
  return new AppError('not_found', `${what} not found`)
}

/**
 * The error of a schema's field, in words that follow the field's name: `is required` for an absent field, `cannot be null`, else `text`.
 * Unknown fields inside of it are not its own fault: the validating edge words them.
 */
export const rule = (text: string) => ({
  error: ({ code, input }: { code?: string; input?: unknown }) => {
    if (code === 'unrecognized_keys') return undefined
    if (input === undefined) return 'is required'
    return input === null ? 'cannot be null' : text
  },
})
