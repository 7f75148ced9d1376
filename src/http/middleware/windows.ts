/** Sliding windows of one minute in this process: how often each key did something. */

import { AppError } from '../../domain/errors.ts'
import type { Clock } from '../../runtime/clock.ts'

const WINDOW_MS = 60_000
/** Some 2 MB. Beyond it the keys that were seen first are forgotten. */
const MOST_KEYS = 10_000

interface Window {
  readonly startedAt: number
  /** Of the window before. It counts with the share of it that lies within the last minute. */
  readonly before: number
  used: number
}

/** The returned function throws AppError `too_many_requests`, in the words of `describe`, for one beyond `most`. */
export function createWindows(clock: Pick<Clock, 'now'>, most: number, describe: (seconds: number) => string) {
  const windows = new Map<string, Window>()

  function openWindow(key: string, now: number): Window {
    const last = windows.get(key)
    const age = last === undefined ? Number.POSITIVE_INFINITY : now - last.startedAt
    if (last !== undefined && age < WINDOW_MS) return last
    const isNext = last !== undefined && age < 2 * WINDOW_MS
    const startedAt = isNext ? last.startedAt + WINDOW_MS : now
    const window = { startedAt, before: isNext ? last.used : 0, used: 0 }
    // Sets the place in the order of the map, too.
    windows.delete(key)
    windows.set(key, window)
    if (windows.size > MOST_KEYS) windows.delete(windows.keys().next().value!)
    return window
  }

  return (key: string): void => {
    const now = clock.now()
    const window = openWindow(key, now)
    const left = 1 - (now - window.startedAt) / WINDOW_MS
    if (Math.ceil(window.before * left) + window.used >= most) {
      const retryAfterSeconds = Math.max(1, Math.ceil((left * WINDOW_MS) / 1_000))
      throw new AppError('too_many_requests', describe(retryAfterSeconds), { retryAfterSeconds })
    }
    window.used += 1
  }
}
