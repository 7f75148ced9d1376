/**
 * A background loop: run, wait, run again; never two runs at once. A run that throws is reported, and the loop goes on
 * with longer waits while runs fail. stop() lets the run in progress finish.
 */

import { backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'

export interface Loop {
  start(): void
  /** One run, now. Tests call it instead of waiting. */
  runOnce(): Promise<void>
  /** Resolves when the run in progress has ended. */
  stop(): Promise<void>
}

export interface LoopOptions {
  readonly everyMs: number
  /**
   * Does the work. `signal` aborts when the loop stops. `'again'`: more work waits, and the next run follows at once.
   */
  readonly run: (signal: AbortSignal) => Promise<'again' | 'done'>
  readonly onError: (error: unknown) => void
  readonly clock: Clock
}

/** A frequent loop retries a failed run after at most `maxMs`, so that it notices soon that the database is back. */
const RETRY = { firstMs: 200, maxMs: 2_000 }
/** A rare loop retries a failed run after this at the latest. */
const RARE_RETRY_MS = 60_000

export function createLoop({ everyMs, run, onError, clock }: LoopOptions): Loop {
  const stopping = new AbortController()
  let running: Promise<void> | undefined

  async function goOn(): Promise<void> {
    let failures = 0
    while (!stopping.signal.aborted) {
      let waitMs = everyMs
      try {
        if ((await run(stopping.signal)) === 'again') waitMs = 0
        failures = 0
      } catch (error) {
        onError(error)
        waitMs = Math.max(Math.min(everyMs, RARE_RETRY_MS), backoffMs(failures, RETRY))
        failures += 1
      }
      if (waitMs > 0) await clock.sleep(waitMs, stopping.signal)
    }
  }

  return {
    start() {
      running ??= goOn()
    },
    async runOnce() {
      await run(stopping.signal)
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
