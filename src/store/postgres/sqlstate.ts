/** Names for the SQLSTATE codes that decide something. Source: PostgreSQL manual, appendix A. */

export const LOCK_NOT_AVAILABLE = '55P03'
export const UNDEFINED_DATABASE = '3D000'
export const FEATURE_NOT_SUPPORTED = '0A000'

const RETRIABLE = new Set(['40001' /* serialization_failure */, '40P01' /* deadlock_detected */])
const READ_ONLY_TRANSACTION = '25006'

/** 08 connection, 53 out of resources (connections, disk, memory), 55 not in that state (locks), 57 operator (shutdown, cancel), 58 system (I/O). */
const PASSING_CLASSES = new Set(['08', '53', '55', '57', '58'])

export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined
}

export function constraintOf(error: unknown): string | undefined {
  return error instanceof Error && 'constraint' in error && typeof error.constraint === 'string'
    ? error.constraint
    : undefined
}

/** Whether the transaction lost a race, and may be run again. */
export function isRetriable(error: unknown): boolean {
  return RETRIABLE.has(sqlStateOf(error) ?? '')
}

/** Whether the server cannot run statements now, and the statement is valid. An error without an SQLSTATE is not from the server: it counts if it is the connection's. */
export function isOutage(error: unknown): boolean {
  const state = sqlStateOf(error)
  if (state === undefined) return isConnectionError(error)
  return (
    PASSING_CLASSES.has(state.slice(0, 2)) ||
    state === READ_ONLY_TRANSACTION ||
    RETRIABLE.has(state) ||
    LAST_STATES.has(state)
  )
}

const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EMFILE',
])
const SOCKET_CALLS = new Set(['connect', 'read', 'write', 'getaddrinfo'])

/** The rollback failed too, so the state of the connection is unknown. `cause` is the first error. */
export class RollbackFailed extends Error {}

/** The connection broke after a commit was sent: whether it took place is unknown. `cause` is what broke the connection. */
export class CommitUnknown extends Error {
  constructor(cause: unknown) {
    super('the connection broke during a commit', { cause })
  }
}

/** pg throws these as plain errors without a code. */
const PG_MESSAGES =
  /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|The server does not support|Client was closed|Cannot use a pool after)/

/** The server closes the connection with them: shutdown, crash, timeouts of sessions and transactions. */
const LAST_STATES = new Set(['57P01', '57P02', '57P05', '25P03', '25P04'])

/** Whether the error leaves the connection closed, or in an unknown state. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof RollbackFailed || error instanceof CommitUnknown) return true
  if (LAST_STATES.has(sqlStateOf(error) ?? '')) return true
  if ('syscall' in error && SOCKET_CALLS.has(String(error.syscall))) return true
  if ('code' in error && typeof error.code === 'string' && SOCKET_CODES.has(error.code)) return true
  if (error instanceof AggregateError) return error.errors.some(isConnectionError)
  return PG_MESSAGES.test(error.message)
}
