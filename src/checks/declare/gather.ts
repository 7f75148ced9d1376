/** Reads what a declaration depends on, under the locks that keep it true until the transaction ends. */

import { isUuid } from '../../domain/ids.ts'
import type { Resource } from '../../store/checks/checks.ts'
import { findAnyCheck, findDeclaredCheck, lockResource } from '../../store/checks/declared-checks.ts'
import { findRetention } from '../../store/checks/retained-checks.ts'
import type { LockedCheck } from '../../store/checks/states.ts'
import { findTombstone } from '../../store/checks/tombstones.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { inOrder } from '../../store/postgres/in-order.ts'
import { hasProject } from '../../store/tenancy/projects.ts'
import { type LockedWork, lockFound } from '../with-locked-check.ts'
import { type Declaration, type Facts, isChoice, NOTHING_THERE, soughtId } from './plan.ts'

export interface Gathered extends Facts {
  /** The locked row of `check`, else of `retained` or `adoptee`. */
  readonly locked: LockedCheck | null
}

export async function gather(tx: Queryable, wanted: Declaration): Promise<Gathered> {
  const { resource, projectId } = wanted
  const id = soughtId(wanted)
  const found = await lockDeclared(tx, resource)
  if (found !== null) {
    const { record: check, locked } = found
    const isKept = check.projectId === projectId || (await hasProject(tx, null, projectId, 'keep'))
    return { ...NOTHING_THERE, check, hasProject: isKept, locked }
  }
  // PostgreSQL takes no text with a NUL, which an annotation can hold.
  const isIdPossible = id === null || isUuid(id)
  const [isKept, tombstone, retention] = await inOrder([
    // First, in the order in which the removal of a project takes these locks: its tombstones go with it.
    hasProject(tx, null, projectId, 'keep'),
    isIdPossible ? findTombstone(tx, resource, id) : null,
    isChoice(wanted) ? null : findRetention(tx, resource),
  ])
  const none: Gathered = { ...NOTHING_THERE, tombstone, hasProject: isKept, locked: null }
  if (!isKept) return none
  if (retention !== null && (id === null || id === retention.id)) {
    const found = await lockFound(tx, () => findAnyCheck(tx, retention.id))
    // Another resource may have adopted it meanwhile.
    if (found?.record.managedBy === 'api')
      return { ...none, retained: { check: found.record, retention }, locked: found.locked }
  }
  const isAdopting = tombstone === null && id !== null && isIdPossible
  const adopted = isAdopting ? await lockFound(tx, () => findAnyCheck(tx, id)) : null
  return { ...none, adoptee: adopted?.record ?? null, locked: adopted?.locked ?? null }
}

/** Locks the resource, then its check, as `lockFound` does. Null when the resource has no check. */
export async function lockDeclared(
  tx: Queryable,
  resource: Resource,
  withDependents = false,
): Promise<LockedWork | null> {
  // In one round trip: the second statement sees what was committed while the first one waited.
  const find = () => findDeclaredCheck(tx, resource)
  const [, found] = await inOrder([lockResource(tx, resource), lockFound(tx, find, withDependents)])
  return found
}
