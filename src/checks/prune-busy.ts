/**
 * Prunes the checks whose history grows now, which the walk of prune-history.ts may reach an hour later: those that got
 * many pings from this replica, and those that flipped, or got an event without a flip, since the run before. Replicas
 * may run at once: a row that another one deletes is skipped.
 */

import type { Instant } from '../domain/check.ts'
import { firstIdAt } from '../runtime/ids.ts'
import type { LoopOptions } from '../runtime/loop.ts'
import type { Context } from '../store/context.ts'
import { listFlippedKeys, listKeysOfEventsAlone } from '../store/history/flip-pruning.ts'
import type { PingCounts } from './ping/counts.ts'
import { type CheckTable, keysAtOnce, type PrunerOptions, pruneKeys } from './prune-history.ts'

/** Measured warm: 10 to 25 ms. */
const BATCH = { rows: 2_000, entries: 100_000 }
/** Flips are committed a little after their time, and a missed ping is dated at its deadline. */
const LATE_MS = 300_000

/** Returns the run of a loop, whose interval is the longest time that such a check stays unpruned. What a run that failed has left is done by the next. */
export function createBusyPruner(
  { database, clock }: Context,
  { counts, onPruned, ...limits }: PrunerOptions & { readonly counts: PingCounts },
): LoopOptions['run'] {
  /** Flips from then on may not have been seen yet. */
  let flipsSince: Instant = clock.now()

  return async (signal) => {
    // Pings that cannot be pruned must not keep the flips.
    try {
      await prune(signal, 'pings', counts.find(limits.maxPings), counts.reset)
    } finally {
      const startedAt = clock.now()
      const since = flipsSince - LATE_MS
      const events = signal.aborted ? [] : await listKeysOfEventsAlone(database, firstIdAt(since))
      const flipped = signal.aborted ? [] : await listFlippedKeys(database, since)
      await prune(signal, 'flips', [...new Set([...flipped, ...events])])
      if (!signal.aborted) flipsSince = startedAt
    }
    return 'done'
  }

  async function prune(
    signal: AbortSignal,
    table: CheckTable,
    all: readonly number[],
    onDone = (_keys: readonly number[]) => {},
  ): Promise<void> {
    const most = keysAtOnce(table, limits, BATCH)
    for (let at = 0; at < all.length; at += most) {
      const keys = all.slice(at, at + most)
      for (let isDone = false; !isDone; ) {
        if (signal.aborted) return
        const pruned = await database.transaction((tx) => pruneKeys(tx, table, keys, limits, BATCH, clock.now()))
        if (pruned.deleted > 0) onPruned(pruned.deleted)
        isDone = pruned.isDone
      }
      onDone(keys)
    }
  }
}
