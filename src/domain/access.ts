/** What callers may do. */

export const SCOPES = ['read', 'write', 'admin'] as const
/** Each includes those before it in SCOPES. */
export type Scope = (typeof SCOPES)[number]

/** The data that a call may read and change: that of an organization, or of one project for a bound key. */
export interface Tenant {
  readonly organizationId: string
  /** Set for a caller that is bound to one project: it finds nothing else. */
  readonly projectId: string | null
}

/** An authenticated caller. */
export interface Caller extends Tenant {
  readonly kind: 'user' | 'api_key'
  /** The id of the user or of the key. */
  readonly id: string
  readonly scope: Scope
}

export function includesScope(held: Scope, needed: Scope): boolean {
  return SCOPES.indexOf(held) >= SCOPES.indexOf(needed)
}
