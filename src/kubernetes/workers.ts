/**
 * Workers: take a key, reconcile it, and do with the key what the result says. An error or a crash in one reconcile is
 * reported and counted, and the key comes back after its back-off; it ends no worker. stop() lets the reconciles in progress
 * finish, and leaves what is queued: whoever leads next looks at everything anyway.
 */

import type { Clock } from '../runtime/clock.ts'
import type { Priority, Queue } from './queue.ts'

export type ReconcileResult =
  | { readonly kind: 'done' }
  /** Looked at again after so long, with the priority it had unless another is named: `background` for a resync. */
  | { readonly kind: 'again'; readonly afterMs: number; readonly priority?: Priority }
  /** An error that only somebody's change will end (client-go's terminal error): looked at again, slowly. */
  | { readonly kind: 'stalled'; readonly retryMs: number }

export interface Workers {
  start(): void
  /** Takes no more keys, aborts the reconciles' signal after `graceMs`, and resolves when all have ended. Again, sooner: the sooner holds. */
  stop(graceMs: number): Promise<void>
}

export interface WorkerMetrics {
  activeChanged(by: 1 | -1): void
  reconciled(outcome: ReconcileOutcome, seconds: number): void
}

/** `stalled` and `panicked` are errors too. */
export type ReconcileOutcome = 'success' | 'requeue_after' | 'error' | 'stalled' | 'panicked'

export interface WorkersOptions {
  /** The controller's name. */
  readonly name: string
  readonly queue: Queue
  readonly count: number
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>
  onError(error: unknown, key: string): void
  readonly metrics?: WorkerMetrics
  readonly clock: Clock
}

export function createWorkers({ name, queue, count, reconcile, onError, metrics, clock }: WorkersOptions): Workers {
  const stopping = new AbortController()
  const ending = new AbortController()
  let running: Promise<unknown> = Promise.resolve()
  let isStarted = false

  async function work(): Promise<void> {
    while (!stopping.signal.aborted) {
      const key = await queue.take(stopping.signal)
      if (key === null) return
      if (stopping.signal.aborted) return putBack(key)
      metrics?.activeChanged(1)
      const startedAt = clock.now()
      const outcome = await handle(key)
      metrics?.activeChanged(-1)
      if (outcome !== null) metrics?.reconciled(outcome, (clock.now() - startedAt) / 1_000)
      queue.done(key)
    }
  }

  /** It was handed out in the moment of the stop. */
  function putBack(key: string): void {
    queue.addAfter(key, 0)
    queue.done(key)
  }

  /** Never rejects. Null: the reconcile was broken off, which says nothing about the key. */
  async function handle(key: string): Promise<ReconcileOutcome | null> {
    try {
      return settle(key, await reconcile(key, ending.signal))
    } catch (error) {
      if (ending.signal.aborted) {
        queue.addAfter(key, 0)
        return null
      }
      queue.addBackedOff(key)
      report(error, key)
      return isCrash(error) ? 'panicked' : 'error'
    }
  }

  function settle(key: string, result: ReconcileResult): ReconcileOutcome {
    switch (result.kind) {
      case 'done':
        queue.forget(key)
        return 'success'
      case 'again':
        queue.addAfter(key, result.afterMs, result.priority)
        queue.forget(key)
        return 'requeue_after'
      case 'stalled':
        queue.addAfter(key, result.retryMs, 'background')
        queue.forget(key)
        return 'stalled'
      default:
        throw new TypeError(`${name}: the reconcile of ${key} gave a result of no known kind`)
    }
  }

  function report(error: unknown, key: string): void {
    try {
      onError(error, key)
    } catch {
      // A worker must outlive its reporter, and there is nobody else to tell.
    }
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
      const ended = new AbortController()
      void clock.sleep(graceMs, ended.signal).then(() => {
        if (!ended.signal.aborted) ending.abort()
      })
      await running
      ended.abort()
    },
  }
}

/** What Go would call a panic: a fault in the program, not in the world. Anything may be thrown; only errors are meant to be. */
function isCrash(error: unknown): boolean {
  return (
    !(error instanceof Error) ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError
  )
}
