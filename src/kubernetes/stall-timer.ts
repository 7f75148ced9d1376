import { after, type Clock } from '../runtime/clock.ts'

interface StallTimerOptions {
  readonly clock: Clock
  /** Fires after so long without restart() ... */
  readonly stallMs: number
  /** ... and at this time by the clock in any case. */
  readonly untilMs: number
  readonly signal: AbortSignal
}

export type StallTimer = ReturnType<typeof startStallTimer>

export function startStallTimer({ clock, stallMs, untilMs, signal }: StallTimerOptions) {
  const ended = new AbortController()
  let restartedAt = clock.now()
  let hasFired = false
  let stopTimer = () => {}

  function stop(): void {
    stopTimer()
    signal.removeEventListener('abort', stop)
    ended.abort(signal.reason)
  }

  /** Fires now. */
  function fire(): void {
    if (ended.signal.aborted) return
    hasFired = true
    stop()
  }

  /** One timer at a time, and none for each restart(): a busy watch receives thousands of events a second. */
  function arm(): void {
    const waitMs = Math.min(untilMs, restartedAt + stallMs) - clock.now()
    if (waitMs > 0) stopTimer = after(clock, waitMs, arm)
    else fire()
  }

  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  else arm()
  return {
    /** Aborts when the timer fires, and with the signal that was given. */
    signal: ended.signal,
    /** Something was received: the wait begins again. */
    restart(): void {
      restartedAt = clock.now()
    },
    hasFired: () => hasFired,
    fire,
    stop,
  }
}
