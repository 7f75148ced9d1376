/** Pausing and resuming a check. */

import { isDeepStrictEqual } from 'node:util'
import { doerOf, type Principal } from '../domain/access.ts'
import type { Act } from '../domain/audit.ts'
import type { Instant, Pause } from '../domain/check.ts'
import { NEXT } from '../domain/check-event.ts'
import { AppError, invalidField } from '../domain/errors.ts'
import { toIso } from '../domain/instant.ts'
import { LIMITS } from '../domain/limits.ts'
import type { CheckRecord, StoredCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { actOn, applyEvents, withLockedCheck } from './with-locked-check.ts'

/** At most one end. Without one the pause lasts until a call or the resource resumes the check. */
export interface PauseInput {
  readonly until?: Instant | undefined
  readonly forSeconds?: number | undefined
  readonly comment?: string | null | undefined
}

/**
 * From now on nothing is expected of the job, and nothing alerts; pings are still stored. The pause of a paused check
 * is replaced. Throws AppError `not_found`, `invalid_request` for an end that is not within a year from now, and
 * `managed_by_kubernetes` while the check's resource sets spec.suspend (design, section 3.2).
 */
export function pauseCheck(
  context: Context,
  by: Principal,
  id: string,
  { comment = null, ...end }: PauseInput = {},
): Promise<CheckRecord> {
  return withLockedCheck(context, by, id, async ({ tx, record, locked }) => {
    rejectIfSuspendIsSet(record, 'pause')
    const until = readEnd(end, context.clock.now())
    const pause: Pause = { by: doerOf(by), until, comment }
    if (isDeepStrictEqual(record.state.pause, pause)) return { result: record, acts: [] }
    const state = await applyEvents(tx, locked, [{ kind: 'pause', pause }], context)
    // The detail was that of the status before.
    return { result: { ...record, statusDetail: undefined, state }, acts: [actOfPause(record, pause)] }
  })
}

/** The check is new again, and a completion is expected from now on. One that is not paused stays as it is. */
export function resumeCheck(context: Context, by: Principal, id: string): Promise<CheckRecord> {
  return withLockedCheck(context, by, id, async ({ tx, record, locked }) => {
    rejectIfSuspendIsSet(record, 'resume')
    const { status } = record.state
    if (NEXT[status].resume === status) return { result: record, acts: [] }
    const state = await applyEvents(tx, locked, [{ kind: 'resume' }], context)
    return { result: { ...record, statusDetail: undefined, state }, acts: [actOn(record, 'check.resumed')] }
  })
}

export function actOfPause(check: Parameters<typeof actOn>[0], pause: Pause | undefined): Act {
  const until = pause?.until ?? null
  return actOn(check, 'check.paused', until === null ? {} : { until: toIso(until) })
}

function readEnd({ until, forSeconds }: PauseInput, now: Instant): Instant | null {
  if (until !== undefined && forSeconds !== undefined) throw invalidField('until', 'cannot be given beside for_seconds')
  if (forSeconds !== undefined) return now + forSeconds * 1_000
  if (until === undefined) return null
  if (until > now && until <= now + LIMITS.pauseSeconds.max * 1_000) return until
  throw invalidField('until', `must be a time within ${LIMITS.pauseSeconds.max} seconds from now`)
}

function rejectIfSuspendIsSet(check: StoredCheck, kind: 'pause' | 'resume') {
  const { managedBy, kubernetes, kubernetesSuspend, cronJob, state } = check
  if (managedBy === 'api' || kubernetesSuspend === null) return
  const isUntil = kubernetesSuspend && state.status === 'paused' && state.pause?.until != null
  const suspend = { asked: kind, is: kubernetesSuspend, isUntil, cronJob: cronJob?.name }
  throw new AppError('managed_by_kubernetes', { resource: kubernetes, suspend })
}
