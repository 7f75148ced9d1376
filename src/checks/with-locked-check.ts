/** How the API and resources change one check: find it, lock it, and apply events to it, in one transaction. */

import { type Audited, audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import type { Act, AuditAction, AuditDetail } from '../domain/audit.ts'
import type { CheckState } from '../domain/check.ts'
import type { CheckEvent } from '../domain/check-event.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { toStoredText } from '../domain/plain-text.ts'
import { saveChanges } from '../store/checks/change-sets.ts'
import { findCheck, type StoredCheck } from '../store/checks/checks.ts'
import { changedConfiguration } from '../store/checks/columns.ts'
import { findDependents } from '../store/checks/dependencies.ts'
import { type LockedCheck, lockStates } from '../store/checks/states.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { type Around, type Change, decideChanges, inCircumstances } from './change.ts'

export interface LockedWork {
  readonly tx: Queryable
  /** As read under the lock. */
  readonly record: StoredCheck
  readonly locked: LockedCheck
}

/** What a change of a check locks beside its state. */
export interface Locks {
  /** Before any row. */
  readonly first?: ((tx: Queryable) => Promise<void>) | undefined
  /** Also the states of checks that depend on it: up to 100. Default: false. */
  readonly withDependents?: boolean
}

/**
 * Runs `work` in a transaction that holds the lock of the check's state row; the check is read after that. Throws AppError `not_found` for a
 * check that is unknown, of another tenant, or removed meanwhile. `work` may run again when the transaction lost a race.
 */
export async function withLockedCheck<T>(
  context: Context,
  by: Principal,
  id: string,
  work: (given: LockedWork) => Promise<Audited<T>>,
  { first, withDependents }: Locks = {},
): Promise<T> {
  if (!isUuid(id)) throw notFound('check')
  return audited(context, by, async (tx) => {
    await first?.(tx)
    const found = await lockFound(tx, () => findCheck(tx, by, id), withDependents)
    if (found === null) throw notFound('check')
    return work(found)
  })
}

/** Takes the lock of the check that `find` finds, and reads it again. Null: there is none, or it was removed meanwhile. */
export async function lockFound(
  tx: Queryable,
  find: () => Promise<StoredCheck | null>,
  withDependents = false,
): Promise<LockedWork | null> {
  const found = await find()
  const others = found === null || !withDependents ? [] : await findDependents(tx, [found.key])
  const rows = found === null ? [] : await lockStates(tx, [found.key, ...others])
  const locked = rows.find(({ key }) => key === found?.key)
  const record = locked === undefined ? null : await find()
  return locked === undefined || record === null ? null : { tx, record, locked }
}

/** What was done to a check, for the audit log. */
export function actOn(
  { id, name, projectId }: Pick<StoredCheck, 'id' | 'name' | 'projectId'>,
  action: AuditAction,
  detail: AuditDetail = {},
): Act {
  return { action, target: { id, name }, projectId, detail }
}

/** None when both are configured alike. */
export function actsOfChange(before: StoredCheck, after: StoredCheck): Act[] {
  const changed = changedConfiguration(before, after)
  return changed.length === 0 ? [] : [actOn(after, 'check.changed', { changed })]
}

/** What the flips of these kinds of event say: why, in words, and the Job. */
export type Abouts = Partial<Record<CheckEvent['kind'], NonNullable<Change['about']>>>

/** Of a pause; null: it needs no explanation. */
export function aboutPause(detail: string | null | undefined): Abouts {
  return detail == null ? {} : { pause: { detail: toStoredText(detail) } }
}

/** Applies events in their order and saves them. Returns the new state. Throws AppError `conflict` when the stored schedule is invalid. */
export async function applyEvents(
  tx: Queryable,
  locked: LockedCheck,
  events: readonly CheckEvent[],
  { clock }: Pick<Context, 'clock'>,
  abouts: Abouts = {},
): Promise<CheckState> {
  if (locked.spec === null) throw new AppError('conflict', { why: 'schedule_unreadable' })
  // Read after the lock was acquired, since that may take long.
  const at = clock.now()
  const changes = events.map((event) => {
    const about = abouts[event.kind]
    return { key: locked.key, event, at, ...(about === undefined ? {} : { about }) }
  })
  const decide = (around: Around) => decideChanges([locked], changes, 'first', around)
  const { decisions, changeSet } = await inCircumstances(tx, [locked], at, decide)
  for (const decision of decisions) if (decision.kind === 'failed') throw decision.error
  await saveChanges(tx, changeSet)
  return changeSet.states[0]?.state ?? locked.state
}

/** Throws AppError `managed_by_kubernetes` for a declared check: the next reconcile would undo the change. */
export function rejectIfManaged({ managedBy, kubernetes }: StoredCheck): void {
  if (managedBy === 'kubernetes') throw new AppError('managed_by_kubernetes', { resource: kubernetes })
}
