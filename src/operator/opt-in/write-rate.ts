/** Lets so many callers through in a second, one after the other: a label on a large Namespace must not load the API server with all at once. */

import type { Clock } from '../../runtime/clock.ts'

/** Resolves when it is the caller's turn, or `signal` has aborted. */
export type WriteRate = (signal: AbortSignal) => Promise<void>

export function createWriteRate(clock: Clock, perSecond: number): WriteRate {
  const everyMs = 1_000 / perSecond
  let nextAt = 0
  return async function turn(signal) {
    const now = clock.now()
    const at = Math.max(now, nextAt)
    nextAt = at + everyMs
    if (at > now) await clock.sleep(at - now, signal)
  }
}
