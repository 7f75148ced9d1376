/** What becomes of the pings of a group, by their outcomes. Pure. */

import type { PingFailure, PingOutcome, PingResult } from './ping.ts'
import type { Waiting } from './queue.ts'

export interface Sent extends Waiting {
  /** It was not sent, and is sent for the second time. */
  readonly isRetry: boolean
  /** Another session had locked its row when it was sent last. */
  readonly isLocked: boolean
  /** As in SpooledPing. */
  readonly pingId: Buffer | null
}

export interface Sorted<Entry> {
  readonly settled: readonly (readonly [Entry, PingResult])[]
  /** For the disk, in their order. */
  readonly unstored: readonly Entry[]
  /** For the front of the queue, in their order. */
  readonly again: readonly Entry[]
  /** For how many pings each error is the reason that they are lost, as far as is known. */
  readonly errors: ReadonlyMap<unknown, number>
}

/** A ping whose row another session has locked is sent again for so long. Then it gets 503. */
const MAX_LOCKED_MS = 2_000
/** So many such pings are tried again: each of them is in each group, and must leave room for others. */
const MAX_LOCKED = 100

/**
 * `isForDisk`: the disk takes what the database does not store now. `hasRoom`: or it is full, and is tried with what is
 * not sent again, as if there were no disk.
 */
export function sortOutcomes<Entry extends Sent>(
  group: readonly Entry[],
  outcomes: readonly PingOutcome[],
  { isForDisk, hasRoom, now }: { readonly isForDisk: boolean; readonly hasRoom: boolean; readonly now: number },
): Sorted<Entry> {
  const settled: [Entry, PingResult][] = []
  const unstored: Entry[] = []
  const again: Entry[] = []
  const errors = new Map<unknown, number>()
  /** A part of the group may have stored a newer ping of the check: an older one must not come after it. */
  const isNewerStored = ({ ping: { publicId } }: Entry, index: number) =>
    group.some(({ ping }, at) => at > index && typeof outcomes[at] === 'string' && ping.publicId === publicId)
  for (const [index, entry] of group.entries()) {
    const outcome = outcomes[index]!
    const isLocked = isLockedElsewhere(outcome)
    const mayWait = () => again.length < MAX_LOCKED && now - entry.since < MAX_LOCKED_MS && !isNewerStored(entry, index)
    const isSentAgain = (kind: PingFailure['kind']) => (isLocked ? mayWait() : kind === 'unsent' && !entry.isRetry)
    if (typeof outcome === 'string') settled.push([entry, outcome])
    else if (isForDisk && outcome.kind !== 'rejected' && (hasRoom || !isSentAgain(outcome.kind)))
      unstored.push({ ...entry, pingId: outcome.pingId ?? null })
    else if (isSentAgain(outcome.kind)) again.push({ ...entry, ...(isLocked ? { isLocked } : { isRetry: true }) })
    else {
      if (!isLocked) errors.set(outcome.error, (errors.get(outcome.error) ?? 0) + 1)
      settled.push([entry, 'unavailable'])
    }
  }
  return { settled, unstored, again, errors }
}

export function isLockedElsewhere(outcome: PingOutcome): boolean {
  return typeof outcome !== 'string' && outcome.kind === 'locked elsewhere'
}

/** Whether the database stores no pings now. */
export function isOut(outcome: PingOutcome): outcome is PingFailure {
  return typeof outcome !== 'string' && outcome.kind !== 'locked elsewhere' && outcome.kind !== 'rejected'
}

/** Whether the connection broke over it. */
export function isDisconnected(outcome: PingOutcome): outcome is PingFailure {
  return typeof outcome !== 'string' && (outcome.kind === 'unsent' || outcome.kind === 'lost')
}
