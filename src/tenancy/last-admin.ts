import { AppError } from '../domain/errors.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { countAdmins } from '../store/tenancy/users.ts'

/**
 * After an action, in its transaction: throws AppError `last_admin` when the organization has no admin left, neither a
 * user nor a key that never expires. The transaction has locked the organization before it acted, so of two admins who
 * remove each other the second one is the last.
 */
export async function assertAdminLeft(tx: Queryable, organizationId: string): Promise<void> {
  if ((await countAdmins(tx, organizationId)) > 0) return
  throw new AppError('last_admin', {})
}
