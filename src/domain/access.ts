/** Who may do what. Facts in, yes or no out. */

export const SCOPES = ['read', 'write', 'admin'] as const
/** Each includes the ones before it. */
export type Scope = (typeof SCOPES)[number]

/** Whose data a call may see and change: one organization's, or with a bound key one project's. Every read and write is limited to it. */
export interface Tenant {
  readonly organizationId: string
  /** Set when the caller is bound to one project; everything else is then unknown to it. */
  readonly projectId: string | null
}

/** Somebody who has proven who they are. */
export interface Caller extends Tenant {
  readonly kind: 'user' | 'api_key'
  /** Of the user or of the key. */
  readonly id: string
  readonly scope: Scope
}

export function includesScope(held: Scope, needed: Scope): boolean {
  return SCOPES.indexOf(held) >= SCOPES.indexOf(needed)
}
