/** What is gone, for a while: the leader may have ended just before, and the next one reports it. */

import type { Clock } from '../../runtime/clock.ts'

export interface Recent<T> {
  add(id: string, value: T): void
  delete(id: string): void
  /** The oldest first. */
  values(): Iterable<T>
}

export interface RecentOptions<T> {
  readonly clock: Clock
  readonly keepMs: number
  /** With more than these, the oldest go. */
  readonly max: number
  readonly onForgotten?: (value: T) => void
}

export function createRecent<T>({ clock, keepMs, max, onForgotten }: RecentOptions<T>): Recent<T> {
  // In the order of their times.
  const entries = new Map<string, { readonly value: T; readonly at: number }>()

  function forgetOld(): void {
    const from = clock.now() - keepMs
    for (const [id, { value, at }] of entries) {
      if (at >= from && entries.size <= max) return
      entries.delete(id)
      onForgotten?.(value)
    }
  }

  return {
    add(id, value) {
      entries.delete(id)
      entries.set(id, { value, at: clock.now() })
      forgetOld()
    },
    delete(id) {
      entries.delete(id)
    },
    *values() {
      forgetOld()
      for (const { value } of entries.values()) yield value
    },
  }
}
