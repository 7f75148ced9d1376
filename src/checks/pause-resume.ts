/** Pausing and resuming a check, which differ in the event alone. */

import type { Principal } from '../domain/access.ts'
import { NEXT } from '../domain/check-event.ts'
import { AppError } from '../domain/errors.ts'
import type { CheckRecord, StoredCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { actOn, applyEvents, withLockedCheck } from './with-locked-check.ts'

/**
 * From now on nothing is expected of the job, and nothing alerts; pings are still stored. A paused check stays as it is. Throws
 * AppError `not_found`, and `managed_by_kubernetes` while the check's resource sets spec.suspend (design, section 3.2).
 */
export function pauseCheck(context: Context, by: Principal, id: string): Promise<CheckRecord> {
  return apply('pause', context, by, id)
}

/** The check is new again, and a completion is expected from now on. One that is not paused stays as it is. */
export function resumeCheck(context: Context, by: Principal, id: string): Promise<CheckRecord> {
  return apply('resume', context, by, id)
}

function apply(kind: 'pause' | 'resume', context: Context, by: Principal, id: string): Promise<CheckRecord> {
  return withLockedCheck(context, by, id, async ({ tx, record, locked }) => {
    rejectIfSuspendIsSet(record, kind)
    const { status } = record.state
    if (NEXT[status][kind] === status) return { result: record, acts: [] }
    // The detail was that of the status before.
    const result = { ...record, statusDetail: undefined, state: await applyEvents(tx, locked, [{ kind }], context) }
    return { result, acts: [actOn(record, TURNED[kind])] }
  })
}

export const TURNED = { pause: 'check.paused', resume: 'check.resumed' } as const

function rejectIfSuspendIsSet(check: StoredCheck, kind: 'pause' | 'resume') {
  const { managedBy, kubernetes, kubernetesSuspend, cronJob } = check
  if (managedBy === 'api' || kubernetesSuspend === null) return
  const suspend = { asked: kind, is: kubernetesSuspend, cronJob: cronJob?.name }
  throw new AppError('managed_by_kubernetes', { resource: kubernetes, suspend })
}
