/**
 * Pruning keeps the history bounded (design, section 9): it walks through the tables in bounded batches, each in a
 * short transaction of its own, and keeps its position. It locks no state row, so pings never wait for it.
 */

import type { Instant } from '../domain/check.ts'
import { firstIdAt } from '../runtime/ids.ts'
import type { LoopOptions } from '../runtime/loop.ts'
import type { Context } from '../store/context.ts'
import { listFlipEnds, pruneFlipsBefore } from '../store/history/flip-pruning.ts'
import {
  listHistoryKeys,
  pruneAged,
  pruneDeliveries,
  pruneEvents,
  pruneFlips,
  prunePings,
  tryPruneLock,
} from '../store/history/pruning.ts'
import type { Queryable } from '../store/postgres/database.ts'

export interface PruneLimits {
  /** Kept for each check: a ping is deleted when it is not among the newest `maxPings`, or is older than `maxDays`. */
  readonly maxPings: number
  /** For pings, flips, events and deliveries. */
  readonly maxDays: number
  /** Kept for each check: flips, with their events and deliveries. */
  readonly maxFlips: number
  /** For the audit log. */
  readonly auditMaxDays: number
}

export interface PruneBatch {
  /** The most rows that one batch deletes of a table, not counting bodies. */
  readonly rows: number
  /** The most history entries that one batch reads to find those to delete. */
  readonly entries: number
}

/** Pruned check by check. */
export type CheckTable = 'pings' | 'flips'

export interface PrunePosition {
  readonly table: (typeof TABLES)[number]
  /** For pings and flips: the key of the last check that is done. */
  readonly afterKey: number
}

const DAY_MS = 86_400_000

/** How many days the other tables are kept, in the order in which they are pruned: a delivery keeps its event. */
const KEPT_DAYS = {
  deliveries: 'maxDays',
  events: 'maxDays',
  // A deadline can look back over one interval and its grace, at most a year each (design, section 3.1), and leap days.
  gaps: 800,
  // Files that are found again after that are recorded from their beginning.
  spools: 366,
  // An expired token only gives 401; a day covers replicas whose clocks differed when it was created.
  refresh_tokens: 1,
  sessions: 1,
  // As long as a log-in counts for its address (auth/check-password.ts).
  login_addresses: 30,
  // The longest window is a day (auth/account-audit.ts), and counts in part for the one after it.
  rate_windows: 2,
  // A resource that is created again within this time gets its check, or the id of its channel, back (design, section
  // 6).
  tombstones: 7,
  declared_channels: 7,
  // Once they have ended. A silence with a schedule never ends.
  silences: 'maxDays',
  audit_log: 'auditMaxDays',
} as const
const TABLES = ['pings', 'flips', ...(Object.keys(KEPT_DAYS) as (keyof typeof KEPT_DAYS)[])] as const

/** No check has a key below 1. */
export const PRUNE_START: PrunePosition = { table: TABLES[0], afterKey: 0 }

/** Measured warm on two cores: 5,000 rows 40-60 ms, 200,000 entries 100-200 ms. A cold disk may be ten times slower and still meets the time-out. */
const BATCH: PruneBatch = { rows: 5_000, entries: 200_000 }
const MAX_KEYS = 500
const SMALLEST_SHARE = 1 / 64

/** Prunes one batch from `position` on. Null: another replica is pruning. `next` is null after the last table. */
export function pruneHistory(
  { database, clock }: Context,
  limits: PruneLimits,
  position: PrunePosition,
  batch: PruneBatch = BATCH,
): Promise<{ deleted: number; next: PrunePosition | null } | null> {
  return database.transaction(async (tx) => {
    if (!(await tryPruneLock(tx))) return null
    const now = clock.now()
    if (position.table === 'pings' || position.table === 'flips')
      return pruneChecks(tx, limits, { ...position, table: position.table }, batch, now)
    const deleted = await pruneRest(tx, position.table, limits, batch.rows, now)
    return { deleted, next: deleted < batch.rows ? startOfNext(position) : position }
  })
}

function pruneRest(
  tx: Queryable,
  table: keyof typeof KEPT_DAYS,
  limits: PruneLimits,
  limit: number,
  now: Instant,
): Promise<number> {
  const kept = KEPT_DAYS[table]
  const oldest = now - (typeof kept === 'number' ? kept : limits[kept]) * DAY_MS
  if (table === 'deliveries') return pruneDeliveries(tx, oldest, limit)
  return table === 'events' ? pruneEvents(tx, oldest, limit) : pruneAged(tx, table, oldest, limit)
}

/** How many checks one batch looks at. */
export function keysAtOnce(table: CheckTable, { maxPings, maxFlips }: PruneLimits, { entries }: PruneBatch): number {
  const entriesEach = table === 'pings' ? maxPings : Math.max(maxPings, 2 * maxFlips)
  return Math.min(MAX_KEYS, Math.max(1, Math.floor(entries / entriesEach)))
}

/** Prunes these checks by one batch. `isDone`: false where a limit was reached, so that they may have more. */
export async function pruneKeys(
  tx: Queryable,
  table: CheckTable,
  keys: readonly number[],
  { maxPings, maxDays, maxFlips }: PruneLimits,
  { rows: limit }: PruneBatch,
  now: Instant,
): Promise<{ deleted: number; isDone: boolean }> {
  const oldestId = firstIdAt(now - maxDays * DAY_MS)
  if (table === 'pings') {
    const deleted = await prunePings(tx, keys, { oldestId, maxPings, limit })
    return { deleted, isDone: deleted < limit }
  }
  const old = await pruneFlips(tx, keys, { oldestId, limit })
  const beyond = await pruneFlipsBefore(tx, await listFlipEnds(tx, keys, maxFlips), limit)
  return { deleted: old + beyond.deleted, isDone: old < limit && beyond.isDone }
}

async function pruneChecks(
  tx: Queryable,
  limits: PruneLimits,
  position: PrunePosition & { table: CheckTable },
  batch: PruneBatch,
  now: Instant,
): Promise<{ deleted: number; next: PrunePosition | null }> {
  const { table, afterKey } = position
  const most = keysAtOnce(table, limits, batch)
  const keys = await listHistoryKeys(tx, table, afterKey, most)
  const last = keys.at(-1)
  if (last === undefined) return { deleted: 0, next: startOfNext(position) }
  const { deleted, isDone } = await pruneKeys(tx, table, keys, limits, batch, now)
  if (!isDone) return { deleted, next: position }
  return { deleted, next: keys.length < most ? startOfNext(position) : { table, afterKey: last } }
}

function startOfNext({ table }: PrunePosition): PrunePosition | null {
  const next = TABLES[TABLES.indexOf(table) + 1]
  return next === undefined ? null : { table: next, afterKey: 0 }
}

/** A walk over 100,000 checks reads their whole history; with this rest it takes at most a twentieth of the time. */
const REST_SHARE = 20

export interface PrunerOptions extends PruneLimits {
  readonly onPruned: (rows: number) => void
}

/**
 * The run of a loop: a batch. After a batch failed, probably by the time-out on a slow disk, the next one has half its
 * size; batches that succeed double it again. Where the smallest one fails, the walk goes on with the next table: a
 * table that cannot be pruned must not keep the others.
 */
export function createPruner(context: Context, { onPruned, ...limits }: PrunerOptions): LoopOptions['run'] {
  let position = PRUNE_START
  let share = 1
  let walkBeganAt = context.clock.now()
  let restUntil = walkBeganAt
  /** Null: the walk has ended. */
  function goTo(next: PrunePosition | null): void {
    position = next ?? PRUNE_START
    if (next === null) restUntil = context.clock.now() + (context.clock.now() - walkBeganAt) * REST_SHARE
  }
  return async (signal) => {
    const now = context.clock.now()
    if (signal.aborted || now < restUntil) return 'done'
    if (position === PRUNE_START) walkBeganAt = now
    const batch = { rows: Math.ceil(BATCH.rows * share), entries: Math.ceil(BATCH.entries * share) }
    try {
      const pruned = await pruneHistory(context, limits, position, batch)
      if (pruned === null) return 'done'
      if (pruned.deleted > 0) onPruned(pruned.deleted)
      share = Math.min(1, share * 2)
      goTo(pruned.next)
      return pruned.next === null ? 'done' : 'again'
    } catch (error) {
      if (share === SMALLEST_SHARE) goTo(startOfNext(position))
      share = Math.max(SMALLEST_SHARE, share / 2)
      throw error
    }
  }
}
