/**
 * Resources of which Events were lost, because too many waited or the API server was away. Their reconciles record them again, a few at a time:
 * otherwise they would wait for the next resync, or for the next leader, which then writes to a cluster in which nothing has changed.
 */

import type { Recorder } from '../../kubernetes/recorder.ts'

export interface LostEvents {
  add(key: string): void
  /** Requests the reconciles of the oldest, while few Events wait. Called once a second. */
  retry(): void
}

export interface LostEventsOptions {
  readonly recorder: Pick<Recorder, 'hasRoom'>
  /** A resource that failed is left to its back-off: the reconcile at its end records them too. */
  readonly enqueue: (key: string) => unknown
}

/** Each has an Event or two. */
const TOGETHER = 50

export function createLostEvents({ recorder, enqueue }: LostEventsOptions): LostEvents {
  const keys = new Set<string>()
  return {
    add: (key) => void keys.add(key),
    retry() {
      if (!recorder.hasRoom()) return
      let count = 0
      for (const key of keys) {
        if (count >= TOGETHER) return
        keys.delete(key)
        count += 1
        enqueue(key)
      }
    },
  }
}
