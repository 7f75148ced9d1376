/**
 * A background loop: run, wait, run again; never two runs at once. A run that throws is reported and the loop goes on, with
 * longer waits while it keeps failing. stop() lets the run in progress finish.
 */

import type { Clock } from './clock.ts'

export interface Loop {
  start(): void
  /** One run, now. Tests call it instead of waiting. */
  runOnce(): Promise<void>
  /** Resolves when the run in progress has ended. */
  stop(): Promise<void>
}

export interface LoopOptions {
  readonly name: string
  readonly everyMs: number
  /** Does the work; `signal` aborts when the loop is to stop. With `'again'` more work waits, and the next run follows at once. */
  readonly run: (signal: AbortSignal) => Promise<'again' | 'done'>
  readonly onError: (error: unknown) => void
  readonly clock: Clock
}

/** A failing run is tried again after at most this, so that a frequent loop notices soon that the database is back ... */
const LONGEST_BACKOFF_MS = 2_000
/** ... and a rare one does not wait for its next turn. */
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
        failures += 1
        const backoffMs = Math.min(LONGEST_BACKOFF_MS, 100 * 2 ** Math.min(failures, 10))
        waitMs = Math.max(Math.min(everyMs, RARE_RETRY_MS), backoffMs)
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
