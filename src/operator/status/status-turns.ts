/**
 * Who may have its status written for a minor change alone (isMinor in status.ts): the time of a ping, a job that became late or is on
 * time again, a run that started or succeeded. Each of these would cost a write of etcd, which goes to every watcher too, so the cluster
 * has five such writes a second: so many turns in each round, which is from one poll to the next.
 *
 * The next reconcile of a resource takes its turn, whatever that reconcile finds. A turn that was not taken ends with its round.
 */

import type { Instant } from '../../domain/check.ts'

export interface StatusTurns {
  /** Begins a round. Returns the keys that have a turn in it, each of which is to be reconciled. */
  begin(due: readonly DueStatus[]): Iterable<string>
  /** One more resource wants a turn in this round. Returns false where it has one, and where none is left: the next round finds it. */
  add(key: string): boolean
  /** Whether the reconcile that begins may write the status for a minor change alone. */
  take(key: string): boolean
}

export interface DueStatus {
  readonly key: string
  /** The job became late, or is on time again: half of a round is for these, so that neither kind waits for all of the other. */
  readonly isTurned: boolean
  /** Since when the status shows what is outdated. The oldest come first. */
  readonly since: Instant
}

const PER_SECOND = 5

/** @param roundMs how long a round is */
export function createStatusTurns(roundMs: number): StatusTurns {
  const size = Math.ceil((roundMs / 1_000) * PER_SECOND)
  let turns = new Set<string>()
  let left = size

  return {
    begin(due) {
      const inOrder = due.toSorted((one, other) => one.since - other.since)
      const turned = inOrder.filter(({ isTurned }) => isTurned)
      const others = inOrder.filter(({ isTurned }) => !isTurned)
      const first = turned.slice(0, Math.max(Math.floor(size / 2), size - others.length))
      turns = new Set([...first, ...others.slice(0, size - first.length)].map(({ key }) => key))
      left = size - turns.size
      return [...turns]
    },
    add(key) {
      if (left === 0 || turns.has(key)) return false
      left -= 1
      turns.add(key)
      return true
    },
    take: (key) => turns.delete(key),
  }
}
