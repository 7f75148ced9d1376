/** Rules of callers that several verbs share. */

import type { Caller, Creator, Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { countAdmins } from '../store/tenancy/users.ts'

export function toCreator({ kind, id, name }: Caller): Creator {
  return { kind, id, name }
}

/** Throws AppError `forbidden` when the caller is bound to one project: what belongs to the organization is not its. */
export function assertNotBound({ projectId }: Tenant, asked: string): void {
  if (projectId !== null) throw new AppError('forbidden', { why: 'key_bound', asked })
}

/**
 * Throws AppError `last_admin` when an action has left no admin, neither a user nor a key that never expires. Its
 * transaction has locked the organization before, so of two admins who remove each other the second is the last.
 */
export async function assertAdminLeft(tx: Queryable, organizationId: string): Promise<void> {
  if ((await countAdmins(tx, organizationId)) > 0) return
  throw new AppError('last_admin', {})
}
