/** What callers may do. */

import type { Instant } from './check.ts'
import type { Doer } from './doer.ts'

export const SCOPES = ['read', 'write', 'admin'] as const
/** Each includes those before it in SCOPES. */
export type Scope = (typeof SCOPES)[number]

/** The data that a call may read and change: that of an organization, or of one project for a bound key. */
export interface Tenant {
  readonly organizationId: string
  /** Set for a caller that is bound to one project: it finds nothing else. */
  readonly projectId: string | null
}

/**
 * `controller`: the operator, for a resource of a cluster. `link`: who pressed a button behind the link of a message.
 * `system`: the service itself, and log-ins without an account.
 */
export const ACTOR_KINDS = ['user', 'api_key', 'controller', 'link', 'system'] as const
export type ActorKind = (typeof ACTOR_KINDS)[number]

/** Who acts: what the audit log records of it. */
export interface Actor {
  readonly kind: ActorKind
  /** The id of the user or of the key. */
  readonly id: string | null
  /** The e-mail address of the user, or the name of the key or of the controller's cluster. */
  readonly name: string | null
  /** The network address, without a port. Null for those that do not call over the network. */
  readonly address: string | null
}

/** Who acts on whose data. Use cases that change something take one, and so have what their audit entries need. */
export interface Principal extends Tenant, Actor {}

/** What people see of a caller, or of the operator. */
export function doerOf({ kind, id, name }: Actor): Doer {
  if (kind === 'user' || kind === 'api_key' || kind === 'link') return { kind, id, name }
  return { kind: 'kubernetes', id: null, name }
}

/** An authenticated caller. */
export interface Caller extends Principal {
  readonly kind: 'user' | 'api_key'
  readonly id: string
  /** The user's e-mail address, or the key's name. */
  readonly name: string
  readonly scope: Scope
  /** Of a key: when it expires; what it creates must not outlive it. Null: never. */
  readonly expiresAt: Instant | null
  /** Of a user: the session of the access token. Null for a token of an issuer. */
  readonly sessionId: string | null
  /** The network address that the call came from, without a port. */
  readonly address: string
}

/** Who created a user or a key, by the name of that moment. */
export interface Creator {
  readonly kind: Caller['kind']
  readonly id: string
  readonly name: string
}

export const SYSTEM: Actor = { kind: 'system', id: null, name: null, address: null }

export function controllerOf(cluster: string): Actor {
  return { kind: 'controller', id: null, name: cluster, address: null }
}

export function includesScope(held: Scope, needed: Scope): boolean {
  return SCOPES.indexOf(held) >= SCOPES.indexOf(needed)
}
