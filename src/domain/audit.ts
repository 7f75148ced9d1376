/** The audit log (design, section 3.6): which actions it records, and what an entry holds. No entry holds a secret, a public id or the path of a URL. */

import { isDeepStrictEqual } from 'node:util'
import type { Actor } from './access.ts'
import type { Instant } from './check.ts'
import { toSnakeCase } from './field-names.ts'

/** The closed list. `http/api/routes.ts` names those of each operation. */
export const AUDIT_ACTIONS = [
  'login.succeeded',
  'login.failed',
  'login.locked',
  'refresh.replayed',
  'logout',
  'password.changed',
  'session.ended',
  'user.created',
  'user.changed',
  'user.removed',
  'api_key.created',
  'api_key.changed',
  'api_key.removed',
  'project.created',
  'project.changed',
  'project.removed',
  'channel.created',
  'channel.changed',
  'channel.removed',
  'channel.secret_rotated',
  'check.created',
  'check.changed',
  'check.removed',
  'check.paused',
  'check.resumed',
  'check.acknowledged',
  'check.unacknowledged',
  'silence.created',
  'silence.changed',
  'silence.removed',
] as const
export type AuditAction = (typeof AUDIT_ACTIONS)[number]

/** What was done, as a use case reports it. */
export interface Act {
  readonly action: AuditAction
  /** Null for a log-in without an account. */
  readonly target: { readonly id: string; readonly name: string | null } | null
  /** The project that it concerns; null: the organization. Callers that are bound to a project see the entries of that project only. */
  readonly projectId: string | null
  readonly detail?: AuditDetail
  /** The log has it, the database does not. */
  readonly isLogOnly?: true
}

/** Names of fields and values from closed lists, never the text of a request: that may hold secrets. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

export interface AuditEntry {
  readonly id: string
  readonly at: Instant
  readonly actor: Pick<Actor, 'kind' | 'id' | 'name'>
  readonly action: AuditAction
  readonly target: { readonly kind: string; readonly id: string; readonly name: string | null } | null
  readonly address: string | null
  readonly detail: AuditDetail
}

/** These are signs of an attack: their log lines are warnings. */
export const ALARMING: readonly AuditAction[] = ['login.failed', 'login.locked', 'refresh.replayed']

/** Their target is the user whose account it is. */
const OF_ACCOUNTS = /^(?:login\..*|logout|refresh\.replayed|password\.changed)$/

/** What an action is done to: the part before the dot, or the user. */
export function targetKindOf(action: AuditAction): string {
  return OF_ACCOUNTS.test(action) ? 'user' : action.slice(0, action.indexOf('.'))
}

/** The names of the fields that differ, as the API calls them. `fields`: those to compare. */
export function changedFields<T extends object>(before: T, after: T, fields: readonly (keyof T & string)[]): string[] {
  return fields.filter((field) => !isDeepStrictEqual(before[field], after[field])).map(toSnakeCase)
}
