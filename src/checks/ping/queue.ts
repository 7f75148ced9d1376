/** The pings that wait to be committed, in their order of arrival. Pure. */

export interface PingQueue<Entry> {
  size(): number
  /** False when the queue is full. */
  add(entry: Entry): boolean
  /** Removes and returns the next group; empty when nothing waits. Of `some`: entries that are free, if there are `min` of them. */
  takeGroup(some?: { readonly min: number; readonly isFree: (entry: Entry) => boolean }): readonly Entry[]
  /** Puts entries back, before all others. */
  putBack(entries: readonly Entry[]): void
  /** Removes and returns those that are wanted, in their order. */
  takeAll(isWanted: (entry: Entry) => boolean): readonly Entry[]
  /** Removes and returns the entries that have waited since before `time`. */
  takeOlderThan(time: number): readonly Entry[]
  /** The earliest `since`; Infinity when nothing waits. */
  oldestSince(): number
}

const MAX_GROUP = 500
/** Bounds the memory that a burst takes: each ping may hold a body of 10 KB. */
const MAX_WAITING = 20_000

/** `since`: when an entry began to wait. */
export function createPingQueue<Entry extends { readonly since: number }>(): PingQueue<Entry> {
  let entries: Entry[] = []

  function takeAll(isWanted: (entry: Entry) => boolean): readonly Entry[] {
    const taken: Entry[] = []
    const others: Entry[] = []
    for (const entry of entries) {
      const line = isWanted(entry) ? taken : others
      line.push(entry)
    }
    if (taken.length > 0) entries = others
    return taken
  }

  return {
    size: () => entries.length,
    add: (entry) => entries.length < MAX_WAITING && entries.push(entry) > 0,
    takeGroup(some) {
      if (some === undefined) return entries.splice(0, MAX_GROUP)
      const group: Entry[] = []
      const others: Entry[] = []
      for (const entry of entries) {
        const line = group.length < MAX_GROUP && some.isFree(entry) ? group : others
        line.push(entry)
      }
      if (group.length < some.min) return []
      entries = others
      return group
    },
    putBack(again) {
      if (again.length > 0) entries = [...again, ...entries]
    },
    takeAll,
    takeOlderThan: (time) => takeAll(({ since }) => since < time),
    oldestSince: () => oldestOf(entries),
  }
}

/** The earliest `since`; Infinity for none. Entries that were put back may be younger than those behind them. */
export function oldestOf(entries: readonly { readonly since: number }[]): number {
  return entries.reduce((oldest, { since }) => Math.min(oldest, since), Number.POSITIVE_INFINITY)
}
