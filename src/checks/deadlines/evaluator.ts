/** Evaluates deadlines in batches, one batch in each run. Yields to pings before each batch; while there are pings, rests after a full one. */

import type { Clock } from '../../runtime/clock.ts'
import type { Database } from '../../store/postgres/database.ts'
import type { CheckCache } from '../ping/cache.ts'
import type { PingRecorder } from '../ping/record.ts'
import type { Waits } from '../ping/waits.ts'
import { nextAllowance, planBatch, SMALLEST } from './batch-size.ts'
import { type Expired, expireOverdue, STALL_MS } from './expire-overdue.ts'

export interface EvaluatorOptions {
  readonly database: Database
  readonly cache: CheckCache
  /** Pings that arrived in time may still wait in it. */
  readonly recorder: Pick<PingRecorder, 'isSpooling' | 'oldestWaitMs' | 'yieldToPings' | 'waits'>
  /** This process's own. */
  readonly clock: Clock
  readonly onFlip: (reason: string, detectionSeconds: number) => void
  readonly onFailed: (error: unknown, checkKey: number) => void
}

/** Returns the run of a loop. */
export function createEvaluator(options: EvaluatorOptions) {
  const { database, cache, recorder, clock, onFlip, onFailed } = options
  let allowance = SMALLEST

  return async function evaluate(signal: AbortSignal): Promise<'again' | 'done'> {
    await recorder.yieldToPings()
    if (recorder.isSpooling() || recorder.oldestWaitMs() > STALL_MS) return 'done'
    const startedAt = clock.now()
    const allowed = allowance
    const { limit } = planBatch(allowed)
    // A large batch that fails is followed by a small one.
    allowance = SMALLEST
    recorder.waits.begin()
    let expired: Expired
    let waited: Waits
    try {
      expired = await expireOverdue({ database, cache, now: clock.now }, limit)
    } finally {
      waited = recorder.waits.end()
    }
    for (const { reason, seconds } of expired.flips) onFlip(reason, seconds)
    for (const { key, error } of expired.failed) onFailed(error, key)
    // A batch that is not full does not show what a full one would do.
    allowance = expired.isFull ? nextAllowance(allowed, waited) : allowed
    const { rest, isUsual } = planBatch(allowance)
    recorder.waits.measureUsual(isUsual || !expired.isFull)
    if (!expired.isFull) return 'done'
    if (waited.arePings) await clock.sleep((clock.now() - startedAt) * rest, signal)
    return 'again'
  }
}
