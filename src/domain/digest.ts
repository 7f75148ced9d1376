/** The digest: one message for many deliveries of one channel (design, section 5). Which of the checks it names, and how many there are. */

import type { Instant } from './check.ts'
import type { NotifiedCheck, NotifiedType } from './event.ts'

export const DIGEST = {
  /** More deliveries of one channel than this, due within `windowMs`, are a crowd, and are sent as digests. */
  crowd: 20,
  windowMs: 10_000,
  /** From one digest of a channel to the next, by whichever replica. What comes due meanwhile waits for it. */
  pauseMs: 5_000,
  /** Checks that a digest names. It counts the others. */
  named: 50,
  /** Deliveries of one digest. One statement writes the outcomes of all. */
  deliveries: 5_000,
} as const

export interface Digest {
  /** The same for each of its deliveries. */
  readonly id: string
  /** When its deliveries were claimed. */
  readonly at: Instant
  /** How many deliveries it is: some checks can have several. */
  readonly events: number
  /** Of each check that is named its newest event. */
  readonly named: readonly NotifiedCheck[]
  /** All checks, by their newest event. */
  readonly counts: readonly TypeCount[]
}

export interface TypeCount {
  readonly type: NotifiedType
  readonly checks: number
}

/** Their places in a digest: first what needs work. */
const PLACES: Readonly<Record<NotifiedType, number>> = {
  'check.down': 0,
  'check.flapping': 1,
  'check.warned': 2,
  'check.late': 3,
  'check.unknown': 4,
  'check.paused': 5,
  'check.resumed': 6,
  'check.acknowledged': 7,
  'check.up': 8,
}
const ORDER = (Object.keys(PLACES) as NotifiedType[]).sort((a, b) => PLACES[a] - PLACES[b])

/** The events that a digest names, in its order: first what needs work, then what happened first. And how many checks there are. */
export function planDigest(events: readonly NotifiedCheck[]): Pick<Digest, 'named' | 'counts'> {
  const newest = new Map<string, NotifiedCheck>()
  for (const event of events) {
    const other = newest.get(event.check.id)
    // Ids are in order of time.
    if (other === undefined || other.id < event.id) newest.set(event.check.id, event)
  }
  const ordered = ORDER.flatMap((type) =>
    [...newest.values()].filter((event) => event.type === type).sort((a, b) => (a.id < b.id ? -1 : 1)),
  )
  return { named: ordered.slice(0, DIGEST.named), counts: countByType(ordered) }
}

/** In the order of a digest, without types that no check has. */
export function countByType(entries: readonly { readonly type: NotifiedType }[]): TypeCount[] {
  return ORDER.map((type) => ({ type, checks: entries.filter((entry) => entry.type === type).length })).filter(
    ({ checks }) => checks > 0,
  )
}

/** `counts` without these. */
export function subtractCounts(
  counts: readonly TypeCount[],
  named: readonly { readonly type: NotifiedType }[],
): TypeCount[] {
  const shown = new Map(countByType(named).map(({ type, checks }) => [type, checks]))
  return counts
    .map(({ type, checks }) => ({ type, checks: checks - (shown.get(type) ?? 0) }))
    .filter(({ checks }) => checks > 0)
}

export function totalOf(counts: readonly TypeCount[]): number {
  return counts.reduce((total, { checks }) => total + checks, 0)
}
