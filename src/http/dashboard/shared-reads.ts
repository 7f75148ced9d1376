/**
 * When a check flips, the script reads each open list again within a second: pages with the same list share a read,
 * unless it began before the change that they are to show.
 */

import type { Instant } from '../../domain/check.ts'
import type { Clock } from '../../runtime/clock.ts'

const FRESH_MS = 1_000
/** Kept texts; one is some kilobytes. */
const MOST_READS = 50

export function createSharedReads<T>({ now }: Pick<Clock, 'now'>) {
  /** In the order of their beginning. */
  const reads = new Map<string, { readonly at: Instant; readonly made: Promise<T> }>()

  /**
   * The read of `key` that began within a second, and at `notBefore` or later; else a new read. Rejects as `read` does.
   */
  return (key: string, notBefore: Instant, read: (at: Instant) => Promise<T>): Promise<T> => {
    const at = now()
    for (const [oldest, { at: begunAt }] of reads) {
      if (at - begunAt < FRESH_MS && reads.size < MOST_READS) break
      reads.delete(oldest)
    }
    const known = reads.get(key)
    if (known !== undefined && known.at >= notBefore) return known.made
    const made = read(at)
    reads.delete(key)
    reads.set(key, { at, made })
    made.catch(() => {
      if (reads.get(key)?.made === made) reads.delete(key)
    })
    return made
  }
}
