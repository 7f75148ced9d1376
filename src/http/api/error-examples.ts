/** The examples of errors for /openapi.json, by the name of the response. */

import type { ConflictCode, ErrorCode, FieldFault } from '../../domain/errors.ts'

/** The conflicts share a status, so they share a response. */
export type ResponseName = Exclude<ErrorCode, ConflictCode> | 'conflict'

export interface ErrorExample {
  readonly error: string
  /** Default: the name of the response. */
  readonly code?: ErrorCode
  readonly details?: readonly FieldFault[]
}

const SLUG_TAKEN = 'another check of the project has the slug "shop-backup": choose another'

export const ERROR_EXAMPLES: Readonly<Record<ResponseName, ErrorExample>> = {
  invalid_request: { error: 'name is required', details: [{ path: 'body.name', message: 'is required' }] },
  unauthenticated: {
    error: 'no credential was received: send the header "Authorization: Bearer <API key or access token>"',
  },
  forbidden: { error: 'this call needs the scope write; the given credential has read' },
  not_found: { error: 'check not found' },
  method_not_allowed: { error: 'POST is not allowed here; DELETE, GET, PATCH, PUT are' },
  conflict: { error: SLUG_TAKEN, code: 'slug_taken', details: [{ path: 'body.slug', message: SLUG_TAKEN }] },
  too_large: { error: 'body too large: at most 65536 bytes are accepted' },
  unsupported_media_type: { error: 'the body must be JSON; send Content-Type: application/json' },
  too_many_requests: { error: 'more than 1000 calls in a minute for this organization; try again in 12 s' },
  internal: { error: 'internal error' },
  unavailable: { error: 'the service cannot reach its database at the moment; try again shortly' },
}
