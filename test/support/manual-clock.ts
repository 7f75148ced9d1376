/** A clock that stands still until a test moves it: hours pass in no time, and nothing happens that the test did not ask for. */

import type { Clock } from '../../src/runtime/clock.ts'
import { settle } from './until.ts'

export interface ManualClock extends Clock {
  /** Moves time forward; sleepers wake in the order of their times, and what each sets off has run before the next one wakes. */
  advance(ms: number): Promise<void>
  /** Lets everything run that needs no more time. */
  settle(): Promise<void>
  /** When each sleeper will wake, earliest first. */
  wakeTimes(): number[]
  /** The same time on a clock that is wrong by so much. */
  skewedBy(ms: number): Clock
}

interface Sleeper {
  readonly at: number
  readonly wake: () => void
}

/** More wake-ups than this in one advance() are a loop that sleeps for no time at all. */
const MOST_WAKE_UPS = 100_000

export function createManualClock(startMs = Date.UTC(2026, 0, 1)): ManualClock {
  let now = startMs
  // In the order of their coming, which decides among those of the same time.
  const sleepers = new Set<Sleeper>()

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const wake = () => {
        sleepers.delete(sleeper)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper = { at: now + ms, wake }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', wake, { once: true })
    })
  }

  function findNext(until: number): Sleeper | undefined {
    let next: Sleeper | undefined
    for (const sleeper of sleepers) {
      if (sleeper.at <= until && (next === undefined || sleeper.at < next.at)) next = sleeper
    }
    return next
  }

  async function advance(ms: number): Promise<void> {
    const until = now + ms
    await settle()
    let wakeUps = 0
    for (let next = findNext(until); next !== undefined; next = findNext(until)) {
      wakeUps += 1
      if (wakeUps > MOST_WAKE_UPS) throw new Error(`the clock woke ${MOST_WAKE_UPS} sleepers without getting anywhere`)
      now = Math.max(now, next.at)
      next.wake()
      await settle()
    }
    now = until
  }

  return {
    now: () => now,
    sleep,
    advance,
    settle,
    wakeTimes: () => [...sleepers].map(({ at }) => at).sort((a, b) => a - b),
    skewedBy: (ms) => ({ now: () => now + ms, sleep }),
  }
}
