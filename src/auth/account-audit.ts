/** What happens to accounts, for the audit log. */

import type { By } from '../audit/audited.ts'
import { SYSTEM } from '../domain/access.ts'
import type { Act, AuditAction } from '../domain/audit.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { takeFromSlidingWindow } from '../store/tenancy/rate-windows.ts'
import type { KnownUser } from '../store/tenancy/users.ts'

/** The user of the account; the system if there is none. */
export function actorOf(user: Pick<KnownUser, 'id' | 'email' | 'organizationId'> | null, address: string): By {
  if (user === null) return { ...SYSTEM, address }
  return { kind: 'user', id: user.id, name: user.email, organizationId: user.organizationId, address }
}

export function actOnAccount(user: Pick<KnownUser, 'id' | 'email'> | null, action: AuditAction): Act {
  return { action, target: user === null ? null : { id: user.id, name: user.email }, projectId: null }
}

/** Anyone can send log-ins of accounts that do not exist, from any number of addresses. */
const UNKNOWN_PER_DAY = { bucket: 'audit:login.failed', limit: 1_000, seconds: 86_400 }

/** `locks`: the limits allow no failure after this one. For unknown accounts, a bounded number a day is stored. */
export async function actsOfFailure(tx: Queryable, user: KnownUser | null, locks: boolean): Promise<Act[]> {
  const isStored = user !== null || (await takeFromSlidingWindow(tx, UNKNOWN_PER_DAY)).isAllowed
  const actions = ['login.failed', ...(locks ? ['login.locked'] : [])] as AuditAction[]
  return actions.map((action) => ({ ...actOnAccount(user, action), ...(isStored ? {} : { isLogOnly: true }) }))
}
