/** Each code of an error over HTTP: its status, its cause and its cure. docs/use/api.md and /openapi.json show them. */

import type { ErrorCode } from '../domain/errors.ts'

interface Meaning {
  /** The first one is that of a handler; the others are of requests that no handler sees (head.ts, server.ts). */
  readonly status: number | readonly [number, ...number[]]
  readonly cause: string
  readonly cure: string
}

export const MEANINGS = {
  invalid_request: {
    status: [400, 408, 421],
    cause:
      'The request is not valid: `error` names the first fault, `details` lists all of them. 408: the request took too long to arrive. 421: the service does not know the host name.',
    cure: 'Correct what `details` names.',
  },
  unauthenticated: {
    status: 401,
    cause: 'The credential is missing, unknown, expired or revoked: `error` says which.',
    cure: 'Send `Authorization: Bearer <API key or access token>` with a valid one.',
  },
  forbidden: {
    status: 403,
    cause: 'The scope of the credential does not suffice, or its kind is not allowed here.',
    cure: 'Use a credential with the scope that `error` names, or of the kind that it names.',
  },
  not_found: {
    status: 404,
    cause: 'The id is unknown, malformed, or belongs to another organization or project.',
    cure: 'Take the id from a list.',
  },
  method_not_allowed: {
    status: 405,
    cause: 'The path does not support the method.',
    cure: 'Use one of the methods in `Allow`.',
  },
  conflict: {
    status: 409,
    cause:
      'The stored data do not allow the change, for example an e-mail address that is in use or too many channels.',
    cure: 'Do what `error` says first.',
  },
  slug_taken: {
    status: 409,
    cause: 'Another check of the project, or another project, has the slug.',
    cure: 'Choose another slug.',
  },
  managed_by_kubernetes: {
    status: 409,
    cause:
      'A resource declares the check, the channel or the silence, or `spec.suspend` decides about the pause of the check.',
    cure: 'Change the resource that `error` names instead.',
  },
  last_admin: {
    status: 409,
    cause: 'The organization would have no admin left.',
    cure: 'Create another user, or another key that never expires, with the scope admin first.',
  },
  project_not_empty: { status: 409, cause: 'The project holds checks.', cure: 'Delete its checks first.' },
  channel_in_use: {
    status: 409,
    cause: 'Checks that chose the channel would notify it, or anyone, no longer.',
    cure: 'Let these checks choose other channels, or delete the channel with `?force=true`.',
  },
  muted: { status: 409, cause: 'The channel of the delivery is muted.', cure: 'Unmute the channel first.' },
  not_down: {
    status: 409,
    cause: 'The call is for a check that is down, and the check is not.',
    cure: 'Nothing is to be done: the incident has ended.',
  },
  too_large: {
    status: [413, 431],
    cause: 'The body has more than 65,536 bytes. 431: a header is too long, or all of them are: `error` names it.',
    cure: 'Send less.',
  },
  unsupported_media_type: {
    status: 415,
    cause: 'The body is not uncompressed JSON in UTF-8.',
    cure: 'Send `Content-Type: application/json`, and no `Content-Encoding`.',
  },
  too_many_requests: {
    status: 429,
    cause: 'There are too many calls, failed log-ins, tests of a channel, or wrong credentials from an address.',
    cure: 'Wait for the seconds in `Retry-After`.',
  },
  unavailable: {
    status: 503,
    cause:
      'The service cannot reach its database or the issuer of the token, or too many lists, bodies or log-ins wait.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  internal: {
    status: 500,
    cause: 'The service has a fault; its log has the details, under the id in `X-Request-Id`.',
    cure: 'Try again once, and report the fault.',
  },
} as const satisfies Record<ErrorCode, Meaning>

const CODES = Object.keys(MEANINGS) as ErrorCode[]

const statusesOf = (code: ErrorCode): readonly number[] => [MEANINGS[code].status].flat()

export const STATUS = Object.fromEntries(CODES.map((code) => [code, statusesOf(code)[0]])) as Record<ErrorCode, number>

/** The code of a response that no handler makes. */
export const codeOfStatus = (status: number): ErrorCode =>
  CODES.find((code) => statusesOf(code).includes(status)) ?? 'internal'
