/** The closed list of refusals. Edges translate a code into their own language (http/middleware/errors.ts); nobody else knows a status. */

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

export interface FieldFault {
  /** Where in the request, for example `body.period_seconds` or `query.limit`. */
  readonly path: string
  readonly message: string
}

export interface AppErrorOptions {
  readonly details?: readonly FieldFault[]
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** Something that a caller is told, in words fit for the caller. Whatever is not an AppError is a fault of ours and is never shown. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly details: readonly FieldFault[] | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.details = options.details
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

/** The store cannot answer now; the same request may succeed in a moment. */
export function unavailable(cause?: unknown): AppError {
  return new AppError('unavailable', 'the service cannot reach its database at the moment; try again shortly', {
    retryAfterSeconds: 5,
    cause,
  })
}

/** `what` names the things among which slugs are unique. */
export function slugTaken(what: 'project' | 'check of the project', slug: string): AppError {
  const message = `another ${what} has the slug "${slug}": choose another`
  return new AppError('conflict', message, { details: [{ path: 'body.slug', message }] })
}

export function notFound(what: string): AppError {
  return new AppError('not_found', `${what} not found`)
}
