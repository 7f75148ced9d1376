/** Pausing and resuming, which differ in the event alone. */

import type { Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import { NEXT } from '../domain/transition.ts'
import type { CheckRecord, StoredCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { applyEvents, describeResource, withLockedCheck } from './with-locked-check.ts'

/** Throws AppError `not_found`, and `conflict` while the check's resource says whether it is suspended (design, section 3.2). */
export function turnCheck(
  context: Context,
  tenant: Tenant,
  id: string,
  kind: 'pause' | 'resume',
): Promise<CheckRecord> {
  return withLockedCheck(context, tenant, id, async ({ tx, record, locked }) => {
    refuseIfSuspendIsSet(record, kind)
    const { status } = record.state
    if (NEXT[status][kind] === status) return record
    return { ...record, state: await applyEvents(tx, locked, [{ kind }], context) }
  })
}

function refuseIfSuspendIsSet(
  { managedBy, kubernetes, kubernetesSuspend }: StoredCheck,
  kind: 'pause' | 'resume',
): void {
  if (managedBy === 'api' || kubernetesSuspend === null) return
  throw new AppError(
    'conflict',
    `${describeResource(kubernetes)} sets spec.suspend to ${kubernetesSuspend}; change or remove it there to ${kind} the check`,
  )
}
