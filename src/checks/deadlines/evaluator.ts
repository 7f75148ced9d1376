/**
 * Evaluates deadlines in batches, one batch in each run. Yields to pings before each batch; beside pings, rests after a
 * full one.
 */

import type { Clock } from '../../runtime/clock.ts'
import type { Database } from '../../store/postgres/database.ts'
import type { PingRecorder } from '../ping/record.ts'
import { expireOverdue, STALL_MS } from './expire-overdue.ts'

export interface EvaluatorOptions {
  readonly database: Database
  /** Pings that arrived in time may still wait in it. */
  readonly recorder: Pick<PingRecorder, 'isSpooling' | 'oldestWaitMs' | 'lockedIds' | 'yieldToPings' | 'arePings'>
  /** This process's own. */
  readonly clock: Clock
  readonly onFlip: (reason: string, detectionSeconds: number) => void
  readonly onFailed: (error: unknown, checkKey: number) => void
}

/** A batch of so many takes about 30 ms (docs/internals/benchmarks.md). */
export const BATCH = 100

/** Returns the run of a loop. */
export function createEvaluator({ database, recorder, clock, onFlip, onFailed }: EvaluatorOptions) {
  return async function evaluate(signal: AbortSignal): Promise<'again' | 'done'> {
    await recorder.yieldToPings()
    if (recorder.isSpooling() || recorder.oldestWaitMs() > STALL_MS) return 'done'
    const startedAt = clock.now()
    const expired = await expireOverdue({ database, now: clock.now, awaited: recorder.lockedIds() }, BATCH)
    for (const { reason, seconds } of expired.flips) onFlip(reason, seconds)
    for (const { key, error } of expired.failed) onFailed(error, key)
    if (!expired.isFull) return 'done'
    // As long as the batch took: the pings beside it have half of the time for themselves.
    if (recorder.arePings()) await clock.sleep(clock.now() - startedAt, signal)
    return 'again'
  }
}
