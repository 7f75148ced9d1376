/** So much in a second, by a clock. */

import type { Clock } from './clock.ts'

export interface Rate {
  /** Resolves when it is the caller's turn, in the order of the calls, or as soon as `signal` aborts. */
  take(signal: AbortSignal): Promise<void>
  /** Takes a turn now; returns false where none is left. */
  tryTake(): boolean
}

/** @param burst so many turns are there at once after a rest */
export function createRate(clock: Clock, perSecond: number, burst = 1): Rate {
  const everyMs = 1_000 / perSecond
  /** When the turns that were taken would have ended, one after the other. */
  let takenUntil = Number.NEGATIVE_INFINITY
  const waitMs = () => takenUntil - (burst - 1) * everyMs - clock.now()
  const use = () => {
    takenUntil = Math.max(takenUntil, clock.now()) + everyMs
  }

  return {
    async take(signal) {
      const ms = waitMs()
      use()
      if (ms > 0) await clock.sleep(ms, signal)
    },
    tryTake() {
      if (waitMs() > 0) return false
      use()
      return true
    },
  }
}
