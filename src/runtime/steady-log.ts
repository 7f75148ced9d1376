/** Log lines whose number others decide: a flood of requests must be no flood of lines. */

import { startTimer } from './clock.ts'

const EVERY_MS = 1_000

/**
 * Writes the first line of each key at once. The lines of a key that follow within a second become one line, with the
 * newest value and their number. Keys are few: routes, not what a request says.
 */
export function createSteadyLog<What>(
  write: (key: string, what: What, count: number) => void,
): (key: string, what: What) => void {
  /** Null: none since the last line. */
  const waiting = new Map<string, { readonly newest: What; readonly count: number } | null>()

  function begin(key: string): void {
    waiting.set(key, null)
    startTimer(EVERY_MS, () => {
      const last = waiting.get(key) ?? null
      if (last === null) return void waiting.delete(key)
      write(key, last.newest, last.count)
      begin(key)
    })
  }

  return (key, what) => {
    const last = waiting.get(key)
    if (last !== undefined) return void waiting.set(key, { newest: what, count: (last?.count ?? 0) + 1 })
    write(key, what, 1)
    begin(key)
  }
}
