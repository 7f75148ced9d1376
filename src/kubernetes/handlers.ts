/**
 * What callers hand to a reflector, fenced in: whatever it throws is reported and changes nothing, and a long list of changes
 * is handed out in pieces.
 */

import type { Clock } from '../runtime/clock.ts'
import { yieldTurn } from '../runtime/clock.ts'
import type { Change, KeyedChange } from './object-cache.ts'

export type ProblemKind = 'list' | 'watch' | 'stall' | 'handler'

export interface HandlerOptions<T> {
  readonly clock: Clock
  /** Takes off what nobody reads, before anything is kept. */
  readonly trim?: (object: T) => T
  /** Must be quick. */
  readonly onChange: (key: string, change: Change<T>) => void
  /** The reflector goes on by itself; this is for logs. */
  readonly onProblem: (error: unknown, kind: ProblemKind) => void
}

export interface Handlers<T> {
  hand(change: KeyedChange<T>): void
  /** Gives way to others in between; stops with `signal`, and what has not been handed out then has not taken effect. */
  handAll(changes: Iterable<KeyedChange<T>>, signal: AbortSignal): Promise<void>
  /** The object itself when it cannot be trimmed. */
  trim(object: T): T
  report(error: unknown, kind: ProblemKind): void
}

/** So much of a long list at a time. */
const TURN_MS = 8

export function createHandlers<T>({ clock, onChange, onProblem, ...options }: HandlerOptions<T>): Handlers<T> {
  function hand([key, change]: KeyedChange<T>): void {
    try {
      const result: unknown = onChange(key, change)
      // An async function passes for one that returns nothing, and its rejection would end the process.
      if (result instanceof Promise) result.catch((error) => report(error, 'handler'))
    } catch (error) {
      report(error, 'handler')
    }
  }

  function report(error: unknown, kind: ProblemKind): void {
    try {
      onProblem(error, kind)
    } catch {
      // Who reports problems has one; there is nobody left to tell, and the copy must stay true.
    }
  }

  return {
    hand,
    async handAll(changes, signal) {
      let since = clock.now()
      for (const change of changes) {
        hand(change)
        if (clock.now() - since < TURN_MS) continue
        await yieldTurn()
        if (signal.aborted) return
        since = clock.now()
      }
    },
    trim(object) {
      try {
        return options.trim?.(object) ?? object
      } catch (error) {
        report(error, 'handler')
        return object
      }
    },
    report,
  }
}
