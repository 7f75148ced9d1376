/** The pings that wait to be committed, in their order of arrival. Pure. */

import type { Ping } from './ping.ts'

/** `since`: when it began to wait. */
export interface Waiting {
  readonly ping: Pick<Ping, 'publicId' | 'body'>
  readonly since: number
}

const MAX_GROUP = 500
/** Both bound the memory that a burst takes. */
const MAX_WAITING = 20_000
/** Each ping may have a body of 10 KB. */
const MAX_BODY_BYTES = 32 * 2 ** 20

export function createPingQueue<Entry extends Waiting>() {
  let entries: Entry[] = []
  let bytes = 0

  function taken(those: readonly Entry[]): readonly Entry[] {
    bytes -= bodyBytesOf(those)
    return those
  }

  return {
    size: () => entries.length,
    /** False when the queue is full. */
    add(entry: Entry): boolean {
      const more = bodyBytesOf([entry])
      if (entries.length >= MAX_WAITING || bytes + more > MAX_BODY_BYTES) return false
      bytes += more
      entries.push(entry)
      return true
    },
    /** Removes and returns the next group; empty when nothing waits. */
    takeGroup: () => taken(entries.splice(0, MAX_GROUP)),
    takeAll: () => taken(entries.splice(0)),
    /** Removes and returns the entries that have waited since before `time`. */
    takeOlderThan(time: number): readonly Entry[] {
      const older = entries.filter(({ since }) => since < time)
      if (older.length > 0) entries = entries.filter(({ since }) => since >= time)
      return taken(older)
    },
    /** Puts entries back, before all others. */
    putBack(again: readonly Entry[]): void {
      if (again.length === 0) return
      bytes += bodyBytesOf(again)
      entries = [...again, ...entries]
    },
    entries: (): readonly Entry[] => entries,
  }
}

function bodyBytesOf(entries: readonly Waiting[]): number {
  return entries.reduce((bytes, { ping: { body } }) => bytes + (body?.length ?? 0), 0)
}

/** The earliest `since`; Infinity for none. Entries that were put back may be younger than those behind them. */
export function oldestOf(entries: readonly { readonly since: number }[]): number {
  return entries.reduce((oldest, { since }) => Math.min(oldest, since), Number.POSITIVE_INFINITY)
}
