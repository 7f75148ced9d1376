/**
 * Pings that are recorded some time after their arrival, because the database was unavailable (design, section 10). They count from their arrival.
 * Meanwhile another replica may have recorded newer ones, or the check may have flipped: what is newer decides, and the late ping is history.
 */

import type { CheckState, Instant } from './check.ts'
import { type CheckEvent, isCompleted, type Outcome } from './check-event.ts'
import { latest } from './instant.ts'

/** The arrival of a late ping; null for every other event. */
export function arrivalOf(event: CheckEvent): Instant | null {
  return 'arrivedAt' in event ? (event.arrivedAt ?? null) : null
}

/** Whether something newer decides: a later completion, a later pause, or a later resume. A deadline that was missed only because the ping was not known does not. */
export function isOvertaken({ status, since, reason, lastPingAt }: CheckState, arrivedAt: Instant): boolean {
  if (lastPingAt !== null && arrivedAt < lastPingAt) return true
  return arrivedAt < since && (status === 'paused' || reason === 'resumed')
}

/** Whether the start belongs to a run that was started again since. */
export function isRestarted({ runs }: CheckState, event: CheckEvent, arrivedAt: Instant): boolean {
  return event.kind === 'start' && runs.some((run) => run.id === event.runId && run.startedAt > arrivedAt)
}

/** The state with a ping that is only history. A completion ends its run all the same: nothing else would. */
export function addHistory(state: CheckState, event: CheckEvent, arrivedAt: Instant): CheckState {
  const counted = { ...state, pingsTotal: state.pingsTotal + 1 }
  if (event.kind === 'start') return { ...counted, lastStartAt: latest(state.lastStartAt, arrivedAt) }
  if (!isCompleted(event)) return counted
  const runs = state.runs.filter((run) => run.id !== event.runId || run.startedAt > arrivedAt)
  const lastSuccessAt = event.kind === 'fail' ? state.lastSuccessAt : latest(state.lastSuccessAt, arrivedAt)
  return { ...counted, runs, lastSuccessAt }
}

/** No flip is dated before the one before it: a ping that was not known may have come before a deadline that counted as missed. */
export function flipNotBefore(since: Instant, outcome: Outcome): Outcome {
  const { state, flip } = outcome
  if (flip === null || flip.at >= since) return outcome
  return { ...outcome, state: { ...state, since }, flip: { ...flip, at: since } }
}
