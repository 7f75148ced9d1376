import type { Clock } from '../runtime/clock.ts'

export interface Watchdog {
  /** Aborts when the dog barks, and with the signal that was given. */
  readonly signal: AbortSignal
  hear(): void
  hasBarked(): boolean
  stop(): void
}

export interface WatchdogOptions {
  readonly clock: Clock
  /** Barks after so long without hear() ... */
  readonly silentMs: number
  /** ... and at this time by the clock in any case. */
  readonly untilMs: number
  readonly signal: AbortSignal
}

/** One sleep at a time, and none for each hear(): a busy watch hears thousands of times a second. */
export function startWatchdog({ clock, silentMs, untilMs, signal }: WatchdogOptions): Watchdog {
  const ended = new AbortController()
  let heardAt = clock.now()
  let hasBarked = false
  const follow = () => ended.abort(signal.reason)
  if (signal.aborted) follow()
  signal.addEventListener('abort', follow, { once: true })

  void (async () => {
    while (!ended.signal.aborted) {
      const waitMs = Math.min(untilMs, heardAt + silentMs) - clock.now()
      if (waitMs > 0) {
        await clock.sleep(waitMs, ended.signal)
        continue
      }
      hasBarked = true
      ended.abort()
    }
  })()

  return {
    signal: ended.signal,
    hear() {
      heardAt = clock.now()
    },
    hasBarked: () => hasBarked,
    stop() {
      signal.removeEventListener('abort', follow)
      ended.abort()
    },
  }
}
