/** Evaluates deadlines in batches, one batch in each run. Yields to pings before each batch, and rests after a full one. */

import type { Clock } from '../../runtime/clock.ts'
import { type ExpireOptions, expireOverdue, nextBatch, SMALLEST_BATCH } from './expire-overdue.ts'

export interface EvaluatorOptions
  extends Pick<ExpireOptions, 'database' | 'remembered' | 'oldestPingWaitMs' | 'onFlip' | 'onFailed'> {
  /** This process's own. */
  readonly clock: Clock
  /** Resolves when no ping is being stored, or has waited for long enough. */
  readonly yieldToPings: () => Promise<void>
}

/** Returns the run of a loop. */
export function createEvaluator({ clock, yieldToPings, onFlip, ...options }: EvaluatorOptions) {
  let nextSize = SMALLEST_BATCH

  return async function evaluate(signal: AbortSignal): Promise<'again' | 'done'> {
    await yieldToPings()
    const startedAt = clock.now()
    const batch = nextSize
    // A large batch that fails is followed by a small one.
    nextSize = SMALLEST_BATCH
    let flips = 0
    const outcome = await expireOverdue({
      ...options,
      batch,
      monotonicMs: clock.now,
      onFlip(reason, seconds) {
        flips += 1
        onFlip(reason, seconds)
      },
    })
    nextSize = nextBatch(batch, { flips, isFull: outcome === 'again' })
    // Half of the time belongs to pings when every check goes down at once.
    if (outcome === 'again') await clock.sleep(clock.now() - startedAt, signal)
    return outcome
  }
}
