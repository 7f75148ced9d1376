/**
 * Prunes the checks whose history grows now: the walk of prune-history.ts may need an hour to come around, in which one URL that is
 * pinged without pause would fill the disk. Each run takes the checks that got many pings from this replica, and those that flipped or got
 * an event without a flip since the run before, from any replica or call. Flips and such events are few, and found in one scan of the states and
 * one of the newest events.
 *
 * Each batch is a short transaction that locks history only, and begins when no ping is being stored. Replicas may run at once: a row that another
 * one deletes is skipped.
 */

import type { Instant } from '../domain/check.ts'
import { firstIdAt } from '../runtime/ids.ts'
import type { LoopOptions } from '../runtime/loop.ts'
import type { Context } from '../store/context.ts'
import {
  listFlipEnds,
  listFlippedKeys,
  listKeysOfEventsAlone,
  pruneFlipsBefore,
} from '../store/history/flip-pruning.ts'
import { prunePings } from '../store/history/pruning.ts'
import type { Queryable } from '../store/postgres/database.ts'
import type { PingCounts } from './ping/counts.ts'

export interface BusyPrunerOptions {
  readonly maxPings: number
  readonly maxFlips: number
  readonly counts: PingCounts
  readonly onPruned: (rows: number) => void
}

/** The most rows that one batch deletes of a table. Measured warm: 10 to 25 ms. */
const ROWS = 2_000
/** The most entries that one batch reads to find those to delete. */
const ENTRIES = 100_000
const MAX_KEYS = 500
/** Flips are committed a little after their time, and a missed ping is dated at its deadline. */
const LATE_MS = 300_000

/** Returns the run of a loop, whose interval is the longest time that such a check stays unpruned. What a run that failed has left is done by the next. */
export function createBusyPruner({ database, clock }: Context, options: BusyPrunerOptions): LoopOptions['run'] {
  const { maxPings, maxFlips, counts, onPruned } = options
  /** Flips from then on may not have been seen yet. */
  let flipsSince: Instant = clock.now()

  return async (signal) => {
    // Pings that cannot be pruned must not keep the flips.
    try {
      await prunePinged(signal)
    } finally {
      await pruneFlipped(signal)
    }
    return 'done'
  }

  async function prunePinged(signal: AbortSignal): Promise<void> {
    const pinged = counts.find(maxPings)
    const most = keysAtOnce(maxPings)
    for (let at = 0; at < pinged.length; at += most) {
      const keys = pinged.slice(at, at + most)
      await repeat(signal, async (tx) => {
        const deleted = await prunePings(tx, keys, { oldestId: firstIdAt(0), maxPings, limit: ROWS })
        return { deleted, isDone: deleted < ROWS }
      })
      if (signal.aborted) return
      counts.reset(keys)
    }
  }

  async function pruneFlipped(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const startedAt = clock.now()
    const since = flipsSince - LATE_MS
    const mostFlipped = keysAtOnce(2 * maxFlips)
    for (let afterKey = 0; ; ) {
      const keys = await listFlippedKeys(database, since, afterKey, mostFlipped)
      const last = keys.at(-1)
      if (last === undefined) break
      await pruneFlips(signal, keys)
      if (signal.aborted) return
      afterKey = last
    }
    const notified = await listKeysOfEventsAlone(database, firstIdAt(since))
    for (let at = 0; at < notified.length; at += mostFlipped) {
      await pruneFlips(signal, notified.slice(at, at + mostFlipped))
      if (signal.aborted) return
    }
    flipsSince = startedAt
  }

  async function pruneFlips(signal: AbortSignal, keys: readonly number[]): Promise<void> {
    const ends = await listFlipEnds(database, keys, maxFlips)
    if (ends.length > 0) await repeat(signal, (tx) => pruneFlipsBefore(tx, ends, ROWS))
  }

  async function repeat(
    signal: AbortSignal,
    prune: (tx: Queryable) => Promise<{ deleted: number; isDone: boolean }>,
  ): Promise<void> {
    for (let isDone = false; !isDone && !signal.aborted; ) {
      const pruned = await database.transaction(prune)
      if (pruned.deleted > 0) onPruned(pruned.deleted)
      isDone = pruned.isDone
    }
  }
}

const keysAtOnce = (entriesEach: number) => Math.min(MAX_KEYS, Math.max(1, Math.floor(ENTRIES / entriesEach)))
