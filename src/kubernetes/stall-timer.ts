import type { Clock } from '../runtime/clock.ts'

export interface StallTimer {
  /** Aborts when the timer fires, and with the signal that was given. */
  readonly signal: AbortSignal
  /** Something was received: the wait begins again. */
  restart(): void
  hasFired(): boolean
  /** Fires now. */
  fire(): void
  stop(): void
}

export interface StallTimerOptions {
  readonly clock: Clock
  /** Fires after so long without restart() ... */
  readonly stallMs: number
  /** ... and at this time by the clock in any case. */
  readonly untilMs: number
  readonly signal: AbortSignal
}

/** One sleep at a time, and none for each restart(): a busy watch receives thousands of events a second. */
export function startStallTimer({ clock, stallMs, untilMs, signal }: StallTimerOptions): StallTimer {
  const ended = new AbortController()
  let restartedAt = clock.now()
  let hasFired = false
  const follow = () => ended.abort(signal.reason)
  if (signal.aborted) follow()
  signal.addEventListener('abort', follow, { once: true })

  void (async () => {
    while (!ended.signal.aborted) {
      const waitMs = Math.min(untilMs, restartedAt + stallMs) - clock.now()
      if (waitMs > 0) {
        await clock.sleep(waitMs, ended.signal)
        continue
      }
      fire()
    }
  })()

  function fire(): void {
    if (ended.signal.aborted) return
    hasFired = true
    ended.abort()
  }

  return {
    signal: ended.signal,
    restart() {
      restartedAt = clock.now()
    },
    hasFired: () => hasFired,
    fire,
    stop() {
      signal.removeEventListener('abort', follow)
      ended.abort()
    },
  }
}
