/** How the API and resources change one check: find it, lock it, and apply events to it, in one transaction. */

import type { Tenant } from '../domain/access.ts'
import type { CheckState } from '../domain/check.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import type { CheckEvent } from '../domain/transition.ts'
import { saveChanges } from '../store/checks/change-sets.ts'
import { findCheck, findCheckKey, type StoredCheck } from '../store/checks/checks.ts'
import { type LockedCheck, lockStates } from '../store/checks/states.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { decideChanges } from './change.ts'

export interface LockedWork {
  readonly tx: Queryable
  /** As read under the lock. */
  readonly record: StoredCheck
  readonly locked: LockedCheck
}

/**
 * Runs `work` in a transaction that holds the lock of the check's state row; the check is read after that. Throws AppError `not_found` for a
 * check that is unknown, of another tenant, or removed meanwhile. `work` may run again when the transaction lost a race.
 */
export async function withLockedCheck<T>(
  { database }: Pick<Context, 'database'>,
  tenant: Tenant,
  id: string,
  work: (given: LockedWork) => Promise<T>,
): Promise<T> {
  if (!isUuid(id)) throw notFound('check')
  return database.transaction(async (tx) => {
    const key = await findCheckKey(tx, tenant, id)
    const [locked] = key === null ? [] : await lockStates(tx, [key])
    const record = locked === undefined ? null : await findCheck(tx, tenant, id)
    if (locked === undefined || record === null) throw notFound('check')
    return work({ tx, record, locked })
  })
}

/** Applies events in their order and saves them. Returns the new state. Throws AppError `conflict` when the stored schedule is invalid. */
export async function applyEvents(
  tx: Queryable,
  locked: LockedCheck,
  events: readonly CheckEvent[],
  { clock }: Pick<Context, 'clock'>,
): Promise<CheckState> {
  if (locked.spec === null) {
    throw new AppError(
      'conflict',
      'the stored schedule of this check cannot be read; update the check with a valid schedule first',
    )
  }
  // Read after the lock was acquired, since that may take long.
  const at = clock.now()
  const changes = events.map((event) => ({ key: locked.key, event, at }))
  const { decisions, changeSet } = decideChanges([locked], changes, 'first')
  for (const decision of decisions) if (decision.kind === 'failed') throw decision.error
  await saveChanges(tx, changeSet)
  return changeSet.states[0]?.state ?? locked.state
}

/** Throws AppError `conflict` for a check that a HeartbeatCheck manages: the next reconcile would undo the change. */
export function rejectIfManaged({ managedBy, kubernetes }: StoredCheck): void {
  if (managedBy === 'api') return
  throw new AppError('conflict', `check is managed by ${describeResource(kubernetes)}; change the resource instead`)
}

export function describeResource(kubernetes: StoredCheck['kubernetes']): string {
  if (kubernetes === null) return 'a HeartbeatCheck'
  const { cluster, namespace, name } = kubernetes
  return `HeartbeatCheck ${namespace}/${name} in cluster ${cluster}`
}
