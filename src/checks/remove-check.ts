import type { Principal } from '../domain/access.ts'
import { deleteCheck } from '../store/checks/checks.ts'
import { leaveLists } from '../store/checks/dependencies.ts'
import type { Context } from '../store/context.ts'
import { deleteFlips } from '../store/history/flips.ts'
import { deletePings } from '../store/history/pings.ts'
import { makeAlertsDue } from '../store/outbox/alerts.ts'
import { actOn, type LockedWork, rejectIfManaged, withLockedCheck } from './with-locked-check.ts'

/** Entries of each kind of history that go with the check: a removal stays quick. Pruning deletes the rest. */
const HISTORY_AT_ONCE = 10_000

/**
 * Removes a check, its state and its history; its events may still have to be delivered. The state row is locked first:
 * a ping in flight is stored and then removed, or finds no check. No check depends on it any more. Throws AppError
 * `not_found`, and `conflict` for a check that is managed by Kubernetes.
 */
export async function removeCheck(context: Context, by: Principal, id: string): Promise<void> {
  while (!(await removeIfUnneeded(context, by, id)));
}

/** False while checks are left that depend on it. */
function removeIfUnneeded(context: Context, by: Principal, id: string): Promise<boolean> {
  const work = async ({ tx, record }: LockedWork) => {
    rejectIfManaged(record)
    if (!(await leaveLists(tx, record))) return { result: false, acts: [] }
    await deleteCheck(tx, record.key)
    await makeAlertsDue(tx, record.key)
    await deletePings(tx, record.key, HISTORY_AT_ONCE)
    await deleteFlips(tx, record.key, HISTORY_AT_ONCE)
    return { result: true, acts: [actOn(record, 'check.removed')] }
  }
  return withLockedCheck(context, by, id, work, { withDependents: true })
}
