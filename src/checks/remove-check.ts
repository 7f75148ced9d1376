import type { Principal } from '../domain/access.ts'
import { deleteCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { deleteFlips } from '../store/history/flips.ts'
import { deletePings } from '../store/history/pings.ts'
import { makeAlertsDue } from '../store/outbox/alerts.ts'
import { actOn, rejectIfManaged, withLockedCheck } from './with-locked-check.ts'

/** Entries of each kind of history that go with the check: a removal stays quick. Pruning deletes the rest. */
const HISTORY_AT_ONCE = 10_000

/**
 * Removes a check, its state and its history; its events may still have to be delivered. The state row is locked first:
 * a ping in flight is stored and then removed, or finds no check. Throws AppError `not_found`, and `conflict` for a
 * check that is managed by Kubernetes.
 */
export function removeCheck(context: Context, by: Principal, id: string): Promise<void> {
  return withLockedCheck(context, by, id, async ({ tx, record }) => {
    rejectIfManaged(record)
    await deleteCheck(tx, record.key)
    await makeAlertsDue(tx, record.key)
    await deletePings(tx, record.key, HISTORY_AT_ONCE)
    await deleteFlips(tx, record.key, HISTORY_AT_ONCE)
    return { result: undefined, acts: [actOn(record, 'check.removed')] }
  })
}
