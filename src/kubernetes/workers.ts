/**
 * Workers take a key, reconcile it, and requeue or forget it by the result. An error or a crash in one reconcile is
 * reported and counted, and its key is requeued with back-off; the worker goes on. stop() lets the reconciles in
 * progress finish and leaves the queue: the next leader reconciles everything anyway.
 */

import { callSafely } from '../runtime/call-safely.ts'
import { after, type Clock } from '../runtime/clock.ts'
import type { Priority, Queue } from './queue.ts'

export type ReconcileResult =
  | { readonly kind: 'done' }
  /** Requeued after so long, with the priority it had unless another is given: `background` for a resync. */
  | { readonly kind: 'again'; readonly afterMs: number; readonly priority?: Priority }
  /** An error that needs a person (client-go's terminal error): requeued at long intervals. */
  | { readonly kind: 'stalled'; readonly retryMs: number }

export interface Workers {
  start(): void
  /**
   * Takes no more keys, aborts the signal of the reconciles after `graceMs`, and resolves when all have ended. A second
   * call may shorten the grace.
   */
  stop(graceMs: number): Promise<void>
}

export interface WorkerMetrics {
  activeChanged(by: 1 | -1): void
  reconciled(outcome: ReconcileOutcome, seconds: number): void
}

/** `stalled` and `panicked` are errors too. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'error' | 'stalled' | 'panicked'

const OUTCOMES = { done: 'success', again: 'requeue_after', stalled: 'stalled' } as const

export interface WorkersOptions {
  readonly queue: Queue
  readonly count: number
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>
  onError(error: unknown, key: string): void
  readonly metrics?: WorkerMetrics
  readonly clock: Clock
}

export function createWorkers({ queue, count, reconcile, onError, metrics, clock }: WorkersOptions): Workers {
  const stopping = new AbortController()
  const ending = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  let isStarted = false

  async function work(): Promise<void> {
    while (!stopping.signal.aborted) {
      const key = await queue.take(stopping.signal)
      if (key === null) return
      if (stopping.signal.aborted) return requeue(key)
      metrics?.activeChanged(1)
      const startedAt = clock.now()
      const outcome = await handle(key)
      metrics?.activeChanged(-1)
      if (outcome !== null) metrics?.reconciled(outcome, (clock.now() - startedAt) / 1_000)
      queue.done(key)
    }
  }

  /** For a key that was taken just as stop() was called. */
  function requeue(key: string): void {
    queue.addAfter(key, 0)
    queue.done(key)
  }

  /** Never rejects. Null: the reconcile was aborted, which says nothing about the key. */
  async function handle(key: string): Promise<ReconcileOutcome | null> {
    try {
      return settle(key, await reconcile(key, ending.signal))
    } catch (error) {
      if (ending.signal.aborted) {
        queue.addAfter(key, 0)
        return null
      }
      queue.addBackedOff(key)
      callSafely(() => onError(error, key))
      return isCrash(error) ? 'panicked' : 'error'
    }
  }

  function settle(key: string, result: ReconcileResult): ReconcileOutcome {
    if (result.kind === 'again') queue.addAfter(key, result.afterMs, result.priority)
    if (result.kind === 'stalled') queue.addAfter(key, result.retryMs, 'background')
    queue.forget(key)
    return OUTCOMES[result.kind]
  }

  return {
    start() {
      if (isStarted) return
      isStarted = true
      running = Promise.all(Array.from({ length: count }, work))
    },
    async stop(graceMs) {
      stopping.abort()
      if (graceMs <= 0) ending.abort()
      const stopTimer = after(clock, graceMs, () => ending.abort())
      await running
      stopTimer()
    },
  }
}

/** Go's panic: a fault of the program. A thrown value that is not an Error is one too. */
function isCrash(error: unknown): boolean {
  return !(error instanceof Error) || [TypeError, RangeError, ReferenceError].some((fault) => error instanceof fault)
}
