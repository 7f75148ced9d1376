/**
 * The closed list of errors that callers see. Each edge translates a code into its own language
 * (http/error-codes.ts, operator/status/stalled.ts).
 */

import { type CodeParams, type Reason, textOfCode, textOfReason } from './error-texts.ts'

/** What the present state does not allow. */
export const CONFLICT_CODES = [
  'conflict',
  'slug_taken',
  'managed_by_kubernetes',
  'last_admin',
  'project_not_empty',
  'channel_in_use',
  'muted',
  'not_down',
] as const

export const ERROR_CODES = [
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'not_found',
  'method_not_allowed',
  ...CONFLICT_CODES,
  'too_large',
  'unsupported_media_type',
  'too_many_requests',
  'unavailable',
  'internal',
] as const
export type ErrorCode = (typeof ERROR_CODES)[number]

export type ConflictCode = (typeof CONFLICT_CODES)[number]
export const isConflict = (code: ErrorCode): code is ConflictCode =>
  (CONFLICT_CODES as readonly ErrorCode[]).includes(code)

export interface FieldFault {
  /** Where in the request, for example `body.period_seconds` or `query.limit`. */
  readonly path: string
  readonly message: string
}

export interface AppErrorOptions {
  /** The field at fault, by its name in our types. An edge words it (`describeError`). */
  readonly field?: string
  /** Faults that an edge has worded already. */
  readonly details?: readonly FieldFault[]
  readonly retryAfterSeconds?: number
  readonly cause?: unknown
}

/** Codes that do not say all: the error has a reason of error-texts.ts, or a text of the edge that it comes from. */
export type SaidCode = Exclude<ErrorCode, keyof CodeParams>

type Given =
  | [code: SaidCode, said: string | Reason, options?: AppErrorOptions]
  | { [Code in keyof CodeParams]: [code: Code, params: CodeParams[Code], options?: AppErrorOptions] }[keyof CodeParams]

/** An error that the caller sees, in words for the caller. Any other error is a fault of ours, and callers never see its message. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly field: string | undefined
  readonly details: readonly FieldFault[] | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(...[code, said, options = {}]: Given) {
    super(textOf(code, said), { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.field = options.field
    this.details = options.details
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

function textOf(code: ErrorCode, said: Given[1]): string {
  if (typeof said === 'string') return said
  return 'why' in said ? textOfReason(said) : textOfCode(code as keyof CodeParams, said as never)
}

/**
 * A field with a wrong value. `message` says what would be right, in words that follow the field's name: `must be ...`. Other fields
 * stand in it as `{periodSeconds}`, `{schedule}` or `{timeZone}`.
 */
export function invalidField(field: string, message: string): AppError {
  return new AppError('invalid_request', message, { field })
}

/** In the words of an edge, which names our fields by `nameOf`. `text` names the field at fault, `rule` does not. */
export function describeError({ code, field, message }: AppError, nameOf: (field: string) => string) {
  const rule = message.replace(/\{(periodSeconds|schedule|timeZone)\}/g, (_, other: string) => nameOf(other))
  return { rule, text: code === 'invalid_request' && field !== undefined ? `${nameOf(field)} ${rule}` : rule }
}

/** The database does not respond now; the same request may succeed in a moment. */
export function unavailable(cause?: unknown): AppError {
  return new AppError('unavailable', 'the service cannot reach its database at the moment; try again shortly', {
    retryAfterSeconds: 5,
    cause,
  })
}

export function slugTaken(of: CodeParams['slug_taken']['of'], slug: string): AppError {
  return new AppError('slug_taken', { of, slug }, { field: 'slug' })
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
