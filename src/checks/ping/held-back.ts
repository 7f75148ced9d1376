/**
 * Pings that wait in memory while the last ones on disk are recorded, as newer ones of their checks: they would go to the disk behind them, and the
 * spool would never be empty beside jobs that ping all the time.
 */

import { startTimer } from '../../runtime/clock.ts'
import { bodyBytesOf, type Waiting } from './queue.ts'

export interface HeldBack<Entry> {
  /** Whether others of this check are held back. */
  has(publicId: string): boolean
  /** Whether any may be. */
  isOn(): boolean
  keep(entry: Entry): void
  /** Until `work` has ended, after a second and a half at the latest. */
  during(work: () => Promise<void>): Promise<void>
}

/** Bounds the memory of those that wait behind the last pings on disk, and their wait. */
const MAX_HELD_BACK = 5_000
const MAX_HELD_BACK_BYTES = 16 * 2 ** 20
const MAX_HOLD_MS = 1_500

/** `onFull`: those that were held back, and the one that was too much. `onEnd`: those that are held back no more. */
export function createHeldBack<Entry extends Waiting>(
  onFull: (entries: readonly Entry[]) => void,
  onEnd: (entries: readonly Entry[]) => void,
): HeldBack<Entry> {
  /** Null: none is held back. */
  let held: { readonly entries: Entry[]; readonly publicIds: Set<string>; bytes: number } | null = null

  function release(): void {
    const entries = held?.entries ?? []
    held = null
    onEnd(entries)
  }

  return {
    has: (publicId) => held?.publicIds.has(publicId) ?? false,
    isOn: () => held !== null,
    keep(entry) {
      const { entries, publicIds } = held!
      held!.bytes += bodyBytesOf([entry])
      if (entries.length >= MAX_HELD_BACK || held!.bytes > MAX_HELD_BACK_BYTES) {
        publicIds.clear()
        held!.bytes = 0
        onFull([...entries.splice(0), entry])
      } else {
        entries.push(entry)
        publicIds.add(entry.ping.publicId)
      }
    },
    async during(work) {
      held = { entries: [], publicIds: new Set(), bytes: 0 }
      // A database that goes away meanwhile can keep `work` for seconds.
      const stopTimer = startTimer(MAX_HOLD_MS, release)
      try {
        await work()
      } finally {
        stopTimer()
        release()
      }
    },
  }
}
