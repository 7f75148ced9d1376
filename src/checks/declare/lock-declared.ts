import type { Resource } from '../../store/checks/checks.ts'
import { findDeclaredCheck, lockResource } from '../../store/checks/declared-checks.ts'
import { lockStates } from '../../store/checks/states.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import type { LockedWork } from '../with-locked-check.ts'

/**
 * Takes the resource's lock, and then that of its check; null when it has none, and then nobody else can give it one before
 * the transaction ends, but a first declaration (insertFirstCheck).
 */
export async function lockDeclared(tx: Queryable, resource: Resource): Promise<LockedWork | null> {
  // In one round trip; the second statement sees what was committed while the first one waited.
  const [, found] = await Promise.all([lockResource(tx, resource), findDeclaredCheck(tx, resource)])
  if (found === null) return null
  const [locked] = await lockStates(tx, [found.key])
  // Pings and people change it without the resource's lock: what counts is how it is under its own.
  const record = locked === undefined ? null : await findDeclaredCheck(tx, resource)
  return locked === undefined || record === null ? null : { tx, record, locked }
}
