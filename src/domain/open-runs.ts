/** The runs in a state: how long they are remembered, and what a changed spec does to them. */

import { type CheckSpec, type CheckState, type Instant, isOpen, type Run } from './check.ts'
import { LIMITS, RUN_MEMORY_MS } from './limits.ts'

/** A run whose deadline is still to come is kept: nothing else would watch it. */
export function isKept(run: Run, now: Instant): boolean {
  return now - run.startedAt < RUN_MEMORY_MS || isOpen(run, now)
}

/** How long the run took that is completed at `now`; null: not known, or longer than the interface allows. */
export function durationOf(run: Run | undefined, now: Instant): number | null {
  if (run === undefined) return null
  const durationMs = Math.max(0, now - run.startedAt)
  return durationMs <= LIMITS.durationMs ? durationMs : null
}

/** The runs under a changed spec: no deadline is before now + grace. */
export function refitRuns(spec: CheckSpec, state: CheckState, now: Instant): readonly Run[] {
  // Of a paused check only the runs of a source are judged.
  if (state.status === 'paused' && spec.awaits === 'completion')
    return state.runs.map((run) => ({ ...run, deadlineAt: null }))
  return state.runs.map((run): Run => {
    if (!isOpen(run, now)) return run
    if (spec.maxRuntimeMs === null) return { ...run, deadlineAt: null }
    const deadlineAt = run.startedAt + spec.maxRuntimeMs
    // It had no deadline so far and is over time already: it probably crashed days ago, and other runs followed.
    if (run.deadlineAt === null && deadlineAt <= now) return run
    return { ...run, deadlineAt: Math.max(deadlineAt, now + spec.graceMs) }
  })
}
