/** The pings that wait to be committed, in their order of arrival. Pure. */

import type { Ping } from './ping.ts'

/** `since`: when it began to wait. */
export interface Waiting {
  readonly ping: Pick<Ping, 'publicId' | 'body'>
  readonly since: number
}

export interface PingQueue<Entry> {
  /** Without those that rest. */
  size(): number
  resting(): number
  /** Whether a newer entry of this check would rest, too. */
  isResting(publicId: string): boolean
  /** Behind others of its check that rest, it rests. False when the queue is full. */
  add(entry: Entry): boolean
  /** Removes and returns the next group; empty when nothing waits. Of `some`: entries that are free, if there are `min` of them. */
  takeGroup(some?: { readonly min: number; readonly isFree: (entry: Entry) => boolean }): readonly Entry[]
  /** Puts entries back, before all others. */
  putBack(entries: readonly Entry[]): void
  /** Puts entries back that no group of `takeGroup` has for now, and nor has it the others of their checks: they come behind them. */
  rest(entries: readonly Entry[]): void
  /** Removes and returns a group of those that rest and are free. */
  takeRested(isFree: (entry: Entry) => boolean): readonly Entry[]
  /** Removes and returns those that are wanted, in the order of each check; also those that rest. */
  takeAll(isWanted: (entry: Entry) => boolean): readonly Entry[]
  /** Removes and returns the entries that have waited since before `time`; also those that rest. */
  takeOlderThan(time: number): readonly Entry[]
  /** The earliest `since`, also of those that rest; Infinity when nothing waits. */
  oldestSince(): number
}

const MAX_GROUP = 500
/** Both bound the memory that a burst takes. */
const MAX_WAITING = 20_000
/** Each ping may have a body of 10 KB. */
const MAX_BODY_BYTES = 32 * 2 ** 20

export function createPingQueue<Entry extends Waiting>(): PingQueue<Entry> {
  /** All entries of a check are in one of the two. */
  let ready: Entry[] = []
  let resting: Entry[] = []
  let restingIds = new Set<string>()
  let bytes = 0

  const isRested = ({ ping }: Entry) => restingIds.has(ping.publicId)

  /** `entries`: those that leave the queue. */
  function taken(entries: readonly Entry[]): readonly Entry[] {
    bytes -= bodyBytesOf(entries)
    return entries
  }

  function keepResting(entries: Entry[]): void {
    resting = entries
    restingIds = new Set(entries.map(({ ping }) => ping.publicId))
  }

  function takeAll(isWanted: (entry: Entry) => boolean): readonly Entry[] {
    const [ofResting, stillResting] = split(resting, isWanted)
    const [ofReady, stillReady] = split(ready, isWanted)
    if (ofResting.length > 0) keepResting(stillResting)
    if (ofReady.length > 0) ready = stillReady
    return taken([...ofResting, ...ofReady])
  }

  return {
    size: () => ready.length,
    resting: () => resting.length,
    isResting: (publicId) => restingIds.has(publicId),
    add(entry) {
      const more = bodyBytesOf([entry])
      if (ready.length + resting.length >= MAX_WAITING || bytes + more > MAX_BODY_BYTES) return false
      bytes += more
      const line = isRested(entry) ? resting : ready
      line.push(entry)
      return true
    },
    takeGroup(some) {
      if (some === undefined) return taken(ready.splice(0, MAX_GROUP))
      const [group, others] = split(ready, some.isFree, MAX_GROUP)
      if (group.length < some.min) return []
      ready = others
      return taken(group)
    },
    putBack(again) {
      if (again.length === 0) return
      bytes += bodyBytesOf(again)
      const [behind, others] = split(again, isRested)
      resting = [...behind, ...resting]
      ready = [...others, ...ready]
    },
    rest(entries) {
      if (entries.length === 0) return
      bytes += bodyBytesOf(entries)
      const ids = new Set(entries.map(({ ping }) => ping.publicId))
      const [behind, others] = split(ready, ({ ping }) => ids.has(ping.publicId))
      ready = others
      keepResting([...entries, ...resting, ...behind])
    },
    takeRested(isFree) {
      const [group, others] = split(resting, isFree, MAX_GROUP)
      keepResting(others)
      return taken(group)
    },
    takeAll,
    takeOlderThan: (time) => takeAll(({ since }) => since < time),
    oldestSince: () => Math.min(oldestOf(resting), oldestOf(ready)),
  }
}

export function bodyBytesOf(entries: readonly Waiting[]): number {
  return entries.reduce((bytes, { ping: { body } }) => bytes + (body?.length ?? 0), 0)
}

/** `most`: so many are wanted at most, the first ones. */
function split<Entry>(
  entries: readonly Entry[],
  isWanted: (entry: Entry) => boolean,
  most = Number.POSITIVE_INFINITY,
): [wanted: Entry[], others: Entry[]] {
  const wanted: Entry[] = []
  const others: Entry[] = []
  for (const entry of entries) {
    const line = wanted.length < most && isWanted(entry) ? wanted : others
    line.push(entry)
  }
  return [wanted, others]
}

/** The earliest `since`; Infinity for none. Entries that were put back may be younger than those behind them. */
export function oldestOf(entries: readonly { readonly since: number }[]): number {
  return entries.reduce((oldest, { since }) => Math.min(oldest, since), Number.POSITIVE_INFINITY)
}
