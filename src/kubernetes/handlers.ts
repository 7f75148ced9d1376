/**
 * The callbacks of a reflector's user. What they throw is reported and has no other effect, and a long list of changes
 * is delivered in batches, between which the event loop runs.
 */

import { callSafely } from '../runtime/call-safely.ts'
import { type Clock, yieldTurn } from '../runtime/clock.ts'
import type { Change, KeyedChange } from './object-cache.ts'

export type ProblemKind = 'list' | 'watch' | 'stall' | 'handler'

export interface HandlerOptions<T, Raw = T> {
  readonly clock: Clock
  /**
   * Makes what is cached of an object: without what the user never reads, or of another shape. Left out: the object
   * itself.
   */
  readonly trim?: (object: Raw) => T
  /** Called synchronously; must be quick. */
  readonly onChange: (key: string, change: Change<T>) => void
  /** For logs: the reflector recovers by itself. */
  readonly onProblem: (error: unknown, kind: ProblemKind) => void
}

/** The longest batch. */
const BATCH_MS = 8

export function createHandlers<T, Raw = T>(options: HandlerOptions<T, Raw>) {
  const { clock, onChange, onProblem, trim = (object) => object as unknown as T } = options

  function deliver([key, change]: KeyedChange<T>): void {
    try {
      const result: unknown = onChange(key, change)
      // TypeScript accepts an async function here, and its rejection would end the process.
      if (result instanceof Promise) result.catch((error) => report(error, 'handler'))
    } catch (error) {
      report(error, 'handler')
    }
  }

  const report = (error: unknown, kind: ProblemKind) => callSafely(() => onProblem(error, kind))

  return {
    deliver,
    /** Yields to the event loop between batches. Stops with `signal`: changes not delivered have not taken effect. */
    async deliverAll(changes: Iterable<KeyedChange<T>>, signal: AbortSignal): Promise<void> {
      let since = clock.now()
      for (const change of changes) {
        deliver(change)
        if (clock.now() - since < BATCH_MS) continue
        await yieldTurn()
        if (signal.aborted) return
        since = clock.now()
      }
    },
    /** Returns null when trimming fails. */
    trim(object: Raw): T | null {
      try {
        return trim(object)
      } catch (error) {
        report(error, 'handler')
        return null
      }
    },
    report,
  }
}
