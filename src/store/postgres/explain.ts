/**
 * Explains why the first connection failed, in one line for the person who set DATABASE_URL. Never shows the password.
 */

import { errorCode } from '../../runtime/error-code.ts'
import { POOLER, SchemaError } from './migrate.ts'
import { isOutage, sqlStateOf, UNDEFINED_DATABASE } from './sqlstate.ts'

const STARTING_UP = '57P03'
/** PgBouncer says so of a setting that it does not know. */
const isOfPooler = (error: unknown) =>
  error instanceof Error && error.message.startsWith('unsupported startup parameter')

/** Whether a later attempt may succeed. `isNameAwaited`: a Service may get the unknown host name later. */
export function mayPass(error: unknown, isNameAwaited: boolean): boolean {
  const cause = rootOf(error)
  if (errorCode(cause) === 'ENOTFOUND') return isNameAwaited
  return isOutage(cause) && sqlStateOf(cause) !== '25006' && !isOfPooler(cause)
}

/** Whether PostgreSQL or the connection to it failed. Any other error is a fault of this program. */
export function isDatabaseError(error: unknown): boolean {
  const cause = rootOf(error)
  return sqlStateOf(cause) !== undefined || isOutage(cause)
}

/** What is wrong with DATABASE_URL or its server, and what to do. */
export function explainDatabaseError(error: unknown, databaseUrl: string): string {
  const cause = rootOf(error)
  const { host, hostname, username, pathname } = new URL(databaseUrl)
  const database = decodeURIComponent(pathname.slice(1)) || 'postgres'
  if (cause instanceof SchemaError) return cause.message
  if (isOfPooler(cause)) return `${POOLER} (${(cause as Error).message})`
  switch (sqlStateOf(cause)) {
    case '28P01':
    case '28000':
      return `DATABASE_URL: ${host} refuses user ${username || '(none)'} or the password: correct them`
    case UNDEFINED_DATABASE:
      return `DATABASE_URL: there is no database ${database} on ${host}: create it, or name another`
    case '42501':
      return `DATABASE_URL: user ${username} lacks rights in database ${database} (${(cause as Error).message}): grant them, or use its owner`
    case '53300':
      return `DATABASE_URL: ${host} has no connection left: raise its max_connections, or end other clients`
    case '25006':
      return `DATABASE_URL: ${host} is read-only (a standby?): name the primary`
    case '55P03':
      return `DATABASE_URL: another session on ${host} keeps a table locked (a dump? a long query?): end it, then start again`
    case STARTING_UP:
      return `DATABASE_URL: PostgreSQL on ${host} is still starting up: try again when it is ready`
  }
  switch (errorCode(cause)) {
    case 'ECONNREFUSED':
      return `DATABASE_URL: nothing listens on ${host}: start PostgreSQL there, or correct the address`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `DATABASE_URL: there is no host ${hostname}: correct the name`
  }
  return `DATABASE_URL: cannot work with ${host}: ${cause instanceof Error ? cause.message : String(cause)}`
}

function rootOf(error: unknown): unknown {
  let root = error
  while (root instanceof Error && root.cause !== undefined) root = root.cause
  return root instanceof AggregateError ? root.errors[0] : root
}
