/** Evaluates deadlines in batches, one batch in each run. Yields to pings before each batch, and rests after a full one. */

import type { Clock } from '../../runtime/clock.ts'
import type { Database } from '../../store/postgres/database.ts'
import type { CheckCache } from '../ping/cache.ts'
import type { PingRecorder } from '../ping/record.ts'
import { expireOverdue, STALL_MS } from './expire-overdue.ts'

export interface EvaluatorOptions {
  readonly database: Database
  readonly cache: CheckCache
  /** Pings that arrived in time may still wait in it. */
  readonly recorder: Pick<PingRecorder, 'isSpooling' | 'oldestWaitMs' | 'yieldToPings'>
  /** This process's own. */
  readonly clock: Clock
  readonly onFlip: (reason: string, detectionSeconds: number) => void
  readonly onFailed: (error: unknown, checkKey: number) => void
}

/** Each flip writes an event and its deliveries, and pings wait for the whole batch. */
export const MIN_BATCH = 5
export const MAX_BATCH = 320

/** Returns the run of a loop. */
export function createEvaluator({ database, cache, recorder, clock, onFlip, onFailed }: EvaluatorOptions) {
  let nextSize = MIN_BATCH

  return async function evaluate(signal: AbortSignal): Promise<'again' | 'done'> {
    await recorder.yieldToPings()
    if (recorder.isSpooling() || recorder.oldestWaitMs() > STALL_MS) return 'done'
    const startedAt = clock.now()
    const batch = nextSize
    // A large batch that fails is followed by a small one.
    nextSize = MIN_BATCH
    const { flips, failed, isFull } = await expireOverdue({ database, cache, now: clock.now }, batch)
    for (const { reason, seconds } of flips) onFlip(reason, seconds)
    for (const { key, error } of failed) onFailed(error, key)
    if (!isFull) return 'done'
    nextSize = sizeAfterFull(batch, flips.length)
    // Half of the time belongs to pings when every check goes down at once.
    await clock.sleep(clock.now() - startedAt, signal)
    return 'again'
  }
}

/**
 * The size of the batch after a full one. A check that pings once a period is evaluated once a period, only to be postponed, which is cheap:
 * where most checks are postponed batches grow, or 100,000 checks with a period of a minute would be too many.
 */
export function sizeAfterFull(batch: number, flips: number): number {
  if (flips > MIN_BATCH) return MIN_BATCH
  return flips * 2 > batch ? batch : Math.min(MAX_BATCH, batch * 2)
}
