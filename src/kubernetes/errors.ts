/** The errors of the client. Of a body they hold only the API server's message for people: bodies may be Secrets. */

import { STATUS_CODES } from 'node:http'
import type { StatusDetails } from './objects.ts'

/** The API server rejected the request. `message` is the server's: it names the field and the reason. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** `patch configmaps shop/prices`. */
  readonly request: string
  readonly status: number
  /** metav1.StatusReason. Distinguishes the two meanings of 409: `Conflict` (also of a quota) and `AlreadyExists`. */
  readonly reason: string
  readonly details: StatusDetails | null
  readonly retryAfterSeconds: number | null

  constructor(
    rejection: Pick<ApiError, 'request' | 'status' | 'reason' | 'message' | 'details' | 'retryAfterSeconds'>,
  ) {
    super(rejection.message)
    this.request = rejection.request
    this.status = rejection.status
    this.reason = rejection.reason
    this.details = rejection.details
    this.retryAfterSeconds = rejection.retryAfterSeconds
  }
}

/**
 * No response, or an unreadable one: connection refused, reset, timed out, cut off. The request may have taken effect
 * or not.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError'
}

export function hasStatus(error: unknown, ...statuses: readonly number[]): error is ApiError {
  return error instanceof ApiError && statuses.includes(error.status)
}

/**
 * A retry would repeat it: a missing right, a used up quota, an admission rule, an immutable object. A person has to
 * change that.
 */
export function isRejected(error: unknown): error is ApiError {
  return hasStatus(error, 400, 403, 405, 413, 422) && !isNamespaceGoing(error)
}

/** The namespace is being deleted: nothing can be created in it, and each of its objects gets its own deletion. */
export function isNamespaceGoing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  return error.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false
}

/** The request names a namespace that does not exist, perhaps no longer. */
export function isNamespaceGone(error: unknown): boolean {
  return hasStatus(error, 404) && error.details?.kind === 'namespaces'
}

interface Status {
  readonly kind: 'Status'
  readonly message?: string
  readonly reason?: string
  readonly code?: number
  readonly details?: StatusDetails
}

const isStatus = (body: unknown): body is Status =>
  typeof body === 'object' && body !== null && (body as { kind?: unknown }).kind === 'Status'

/** Reads a response with an error status. `retryAfter` is the header's text: seconds, as API servers send it. */
export function readRejection(request: string, status: number, text: string, retryAfter: string | undefined): ApiError {
  const body = parse(text)
  return fromStatus(request, isStatus(body) ? body : { kind: 'Status' }, status, readSeconds(retryAfter))
}

/** Reads the object of a watch's ERROR event: a metav1.Status inside a response with status 200. */
export function readErrorEvent(request: string, object: unknown): ApiError {
  const status: Status = isStatus(object)
    ? object
    : { kind: 'Status', message: `${request}: an ERROR event without a reason` }
  return fromStatus(request, status, status.code ?? 500, null)
}

function fromStatus(request: string, body: Status, status: number, retryAfterSeconds: number | null): ApiError {
  const details = body.details ?? null
  return new ApiError({
    request,
    status,
    // A proxy sends none.
    reason: body.reason || (STATUS_CODES[status] ?? 'Unknown').replaceAll(' ', ''),
    message: hideAddresses(request, body.message ?? '') || `the server responded ${status} to: ${request}`,
    details,
    retryAfterSeconds: retryAfterSeconds ?? details?.retryAfterSeconds ?? null,
  })
}

const OF_VALUES = /^\w+ (?:secrets|configmaps)\b/
/** Brackets belong to it around an IPv6 address only. */
const WORD = /(?:\[[0-9a-f:.]{2,45}\]|[^\s"'`,;(){}<>[\]])+/gi
/** As it is, or in base64. */
const ADDRESS = /https?:\/\/|aHR0c/
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/i

/** An admission rule may quote what it rejects. In a Secret or ConfigMap that is an address whose id is a secret. */
function hideAddresses(request: string, message: string): string {
  if (!OF_VALUES.test(request)) return message
  return message.replace(WORD, (word) => {
    const address = ADDRESS.exec(word)
    if (address === null || (address[0] !== 'aHR0c' && !ID.test(word))) return word
    return `${word.slice(0, address.index)}***`
  })
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A proxy's page, or `404 page not found`: the status code says enough.
    return null
  }
}

function readSeconds(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,6}$/.test(text.trim()) ? Number(text) : null
}
