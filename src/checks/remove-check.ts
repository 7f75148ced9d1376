import type { Tenant } from '../domain/access.ts'
import { deleteCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { deleteFlips } from '../store/history/flips.ts'
import { deletePings } from '../store/history/pings.ts'
import { makeAlertsDue } from '../store/outbox/alerts.ts'
import { refuseIfManaged, withLockedCheck } from './with-locked-check.ts'

/**
 * Of each kind of history that goes with the check. Pruning keeps far fewer pings; of a check with more (its history was not
 * pruned yet, or more is kept) the rest has no check any more and is collected by pruning, so that a removal stays quick.
 */
const HISTORY_AT_ONCE = 10_000

/**
 * Removes a check, its state and its history; events stay, for they are still to be delivered. The state row is locked
 * first, so a ping in flight is either stored and then removed, or finds no check. Throws AppError `not_found`, and
 * `conflict` for a check that is managed by Kubernetes.
 */
export function removeCheck(context: Context, tenant: Tenant, id: string): Promise<void> {
  return withLockedCheck(context, tenant, id, async ({ tx, record }) => {
    refuseIfManaged(record)
    await deleteCheck(tx, record.key)
    await makeAlertsDue(tx, record.key)
    await deletePings(tx, record.key, HISTORY_AT_ONCE)
    await deleteFlips(tx, record.key, HISTORY_AT_ONCE)
  })
}
