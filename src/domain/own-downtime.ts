/** What our own downtime excuses (design, section 4, "Own downtime"). */

import type { CheckSpec, CheckState, Gap } from './check.ts'
import { HIDING_GAP_MS } from './limits.ts'
import { type Expectation, expectAfterExcuse, toleranceAt } from './schedule.ts'

/** Clients retry for about this long after a downtime, whatever the grace time. */
const RETRY_MS = 60_000

/**
 * It is never the job's fault. Applying a gap a second time changes nothing. A gap of a minute or more in the window of
 * an expected completion may have hidden it: that interval is excused. Every gap since the last completion gives
 * clients time to retry.
 */
export function spare(
  spec: CheckSpec,
  state: CheckState,
  gaps: readonly Gap[],
): { state: CheckState; outage: Gap | null } {
  let expectation: Expectation = state
  let runs = state.runs
  let outage: Gap | null = null
  for (const gap of gaps) {
    const retriedBy = gap.endedAt + Math.max(spec.graceMs, RETRY_MS)
    // A gap that ended before the last completion, or before the check was armed, hid nothing.
    const isAwaited = gap.endedAt > Math.max(state.since, state.lastPingAt ?? state.since)
    if (isAwaited && isHidden(spec, expectation, gap)) {
      expectation = postpone(expectation, expectAfterExcuse(spec, expectation.expectedAt!, gap.endedAt))
      outage = gap
    }
    if (isAwaited && expectation.dueAt !== null && gap.startedAt <= expectation.dueAt) {
      expectation = { expectedAt: expectation.expectedAt, dueAt: Math.max(expectation.dueAt, retriedBy) }
    }
    runs = runs.map((run) => {
      const isTouched = run.deadlineAt !== null && gap.endedAt > run.startedAt && gap.startedAt <= run.deadlineAt
      return isTouched ? { ...run, deadlineAt: Math.max(run.deadlineAt, retriedBy) } : run
    })
  }
  return { state: { ...state, expectedAt: expectation.expectedAt, dueAt: expectation.dueAt, runs }, outage }
}

/** An excuse never moves a deadline to an earlier time. */
function postpone(from: Expectation, to: Expectation): Expectation {
  if (from.dueAt === null || to.dueAt === null) return to
  return { expectedAt: to.expectedAt, dueAt: Math.max(from.dueAt, to.dueAt) }
}

function isHidden(spec: CheckSpec, { expectedAt, dueAt }: Expectation, gap: Gap): boolean {
  if (expectedAt === null || dueAt === null || gap.endedAt - gap.startedAt < HIDING_GAP_MS) return false
  return gap.startedAt <= dueAt && gap.endedAt >= expectedAt - toleranceAt(spec, expectedAt)
}
