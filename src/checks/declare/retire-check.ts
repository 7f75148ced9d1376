import { deleteCheck, type Resource } from '../../store/checks/checks.ts'
import { detachFromResource } from '../../store/checks/declared-checks.ts'
import { insertTombstone } from '../../store/checks/tombstones.ts'
import type { Context } from '../../store/context.ts'
import { makeAlertsDue } from '../../store/outbox/alerts.ts'
import { lockDeclared } from './gather.ts'

/**
 * Detaches or deletes the check of a resource that is deleted (design, section 6). `Delete`: its pings are unknown at once; a tombstone
 * keeps what a re-created resource gets back, until pruning deletes it and the history after seven days. `Retain`: from now on the
 * check belongs to the API. Returns `absent` when the resource has no check.
 */
export function retireCheck(
  context: Context,
  resource: Resource,
  policy: 'Delete' | 'Retain',
): Promise<'removed' | 'released' | 'absent'> {
  return context.database.transaction(async (tx) => {
    const found = await lockDeclared(tx, resource)
    if (found === null) return 'absent'
    const { record, locked } = found
    await makeAlertsDue(tx, record.key)
    if (policy === 'Retain') {
      await detachFromResource(tx, record.key)
      return 'released'
    }
    const tombstone = { ...record, ...locked.state, stampedAt: locked.stampedAt }
    await insertTombstone(tx, resource, tombstone, context.clock.now())
    await deleteCheck(tx, record.key)
    return 'removed'
  })
}
