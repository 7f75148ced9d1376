/**
 * Thresholds (design, section 4, "Thresholds"): how many fails, and how many intervals without a run that ended in
 * time, take a check down. Below a threshold nothing flips and nothing is sent.
 */

import type { CheckSpec, CheckState, Completion, DownReason, Run } from './check.ts'

export type Counts = Pick<CheckState, 'consecutiveFailures' | 'consecutiveMisses'>
type Thresholds = Pick<CheckSpec, 'failuresBeforeDown' | 'missesBeforeDown'>

export const NO_COUNTS: Counts = { consecutiveFailures: 0, consecutiveMisses: 0 }

/**
 * Only a success or a warning ends a row of fails. A run that ended in time ends a row of misses, and so does a
 * recovery; a run that took too long has not ended in time, whatever its end is.
 */
export function countCompletion(
  { status, consecutiveFailures, consecutiveMisses }: Counts & Pick<CheckState, 'status'>,
  kind: Completion,
  run: Pick<Run, 'isCounted'> | undefined,
): Counts {
  const hasRecovered = kind !== 'fail' && status === 'down'
  const isInTime = run?.isCounted !== true || hasRecovered
  return {
    consecutiveFailures: kind === 'fail' ? consecutiveFailures + 1 : 0,
    consecutiveMisses: isInTime ? 0 : consecutiveMisses,
  }
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
