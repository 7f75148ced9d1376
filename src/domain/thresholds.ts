/**
 * Thresholds (design, section 4, "Thresholds"): how many fails, and how many intervals without a run that ended in time, take
 * a check down. Below a threshold nothing flips and nothing is sent.
 */

import type { CheckSpec, CheckState, Completion, DownReason } from './check.ts'

export type Counts = Pick<CheckState, 'consecutiveFailures' | 'consecutiveMisses'>
type Thresholds = Pick<CheckSpec, 'failuresBeforeDown' | 'missesBeforeDown'>

export const NO_COUNTS: Counts = { consecutiveFailures: 0, consecutiveMisses: 0 }

/** A fail is a run that ended, and perhaps in time: only a success or a warning ends a row of fails. */
export function countCompletion({ consecutiveFailures }: Counts, kind: Completion): Counts {
  return kind === 'fail' ? { consecutiveFailures: consecutiveFailures + 1, consecutiveMisses: 0 } : NO_COUNTS
}

export function countMiss({ consecutiveFailures, consecutiveMisses }: Counts): Counts {
  return { consecutiveFailures, consecutiveMisses: consecutiveMisses + 1 }
}

/** Whether a fail leaves a check up or new: too few came in a row. */
export function isBelow(
  { failuresBeforeDown }: Thresholds,
  { status }: Pick<CheckState, 'status'>,
  { kind }: { readonly kind: Completion },
  { consecutiveFailures }: Counts,
): boolean {
  return kind === 'fail' && status !== 'down' && consecutiveFailures < failuresBeforeDown
}

/** Why these counts take a check down; null: they do not. */
export function reachedBy(
  { consecutiveFailures, consecutiveMisses }: Counts,
  { failuresBeforeDown, missesBeforeDown }: Thresholds,
): Extract<DownReason, 'failed' | 'missed'> | null {
  if (consecutiveFailures >= failuresBeforeDown) return 'failed'
  return consecutiveMisses >= missesBeforeDown ? 'missed' : null
}
