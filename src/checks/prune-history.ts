/**
 * Pruning, the background walk that keeps history bounded (design, section 9). It goes through the tables one bounded batch
 * at a time, each a short transaction of its own, and remembers its place: a stop, a failure or another replica's turn costs
 * nothing, the next run goes on where the last one ended. No state row is ever locked, so pings do not notice.
 */

import type { Instant } from '../domain/check.ts'
import { firstIdAt } from '../runtime/ids.ts'
import type { LoopOptions } from '../runtime/loop.ts'
import type { Context } from '../store/context.ts'
import {
  listHistoryKeys,
  pruneDeliveries,
  pruneEvents,
  pruneFlips,
  pruneGaps,
  prunePings,
  pruneTombstones,
  tryPruneLock,
} from '../store/history/pruning.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { deleteOldWindows } from '../store/tenancy/rate-windows.ts'
import { deleteExpiredRefreshTokens } from '../store/tenancy/refresh-tokens.ts'

export interface PruneLimits {
  /** Kept for each check: a ping goes when it is not among the newest `maxPings`, or older than `maxDays`. */
  readonly maxPings: number
  /** Of pings, flips, events and deliveries. */
  readonly maxDays: number
}

export interface PruneBatch {
  /** Rows that one batch may delete, bodies not counted. */
  readonly rows: number
  /** History entries that one batch may step over to find what is too much. */
  readonly entries: number
}

const TABLES = [
  'pings',
  'flips',
  'deliveries',
  'events',
  'gaps',
  'refresh_tokens',
  'rate_windows',
  'tombstones',
] as const

export interface PrunePlace {
  readonly table: (typeof TABLES)[number]
  /** In the tables that are walked check by check: the last one that is done. */
  readonly afterKey: number
}

/** No check has a key below 1. */
export const PRUNE_START: PrunePlace = { table: TABLES[0], afterKey: 0 }

const DAY_MS = 86_400_000
/** A deadline can look back over one interval and its grace, at most a year each (design, section 3.1), and leap days. */
const GAP_DAYS = 800
/** Past its expiry a token answers nothing but 401; a day more covers replicas whose clocks disagreed when it was made. */
const TOKEN_DAYS = 1
/** Windows are a minute long, those of failed log-ins at most some hours. */
const WINDOW_DAYS = 1
/** So long a re-created resource gets its check back (design, section 6). */
const TOMBSTONE_DAYS = 7

/** Measured warm on two cores: 5,000 rows 40-60 ms, 200,000 entries 100-200 ms. A cold disk may be ten times slower and still ends within the time-out. */
const BATCH: PruneBatch = { rows: 5_000, entries: 200_000 }
const MOST_KEYS = 500
const SMALLEST_SHARE = 1 / 64

/** One batch at `place`. Null: another replica is at it. `next` is null when everything has been seen. */
export function pruneHistory(
  { database, clock }: Context,
  limits: PruneLimits,
  place: PrunePlace,
  batch: PruneBatch = BATCH,
): Promise<{ deleted: number; next: PrunePlace | null } | null> {
  return database.transaction(async (tx) => {
    if (!(await tryPruneLock(tx))) return null
    const now = clock.now()
    if (place.table === 'pings' || place.table === 'flips')
      return pruneChecks(tx, limits, { ...place, table: place.table }, batch, now)
    const deleted = await pruneRest(tx, limits, place.table, batch, now)
    return { deleted, next: deleted < batch.rows ? startOfNext(place) : place }
  })
}

async function pruneChecks(
  tx: Queryable,
  { maxPings, maxDays }: PruneLimits,
  place: PrunePlace & { table: 'pings' | 'flips' },
  { rows: limit, entries }: PruneBatch,
  now: Instant,
): Promise<{ deleted: number; next: PrunePlace | null }> {
  const { table, afterKey } = place
  const most = Math.min(MOST_KEYS, Math.max(1, Math.floor(entries / maxPings)))
  const keys = await listHistoryKeys(tx, table, afterKey, most)
  const last = keys.at(-1)
  if (last === undefined) return { deleted: 0, next: startOfNext(place) }
  const oldestId = firstIdAt(now - maxDays * DAY_MS)
  const deleted =
    table === 'pings'
      ? await prunePings(tx, keys, { oldestId, maxPings, limit })
      : await pruneFlips(tx, keys, { oldestId, limit })
  // As many as allowed: these checks may have more.
  if (deleted >= limit) return { deleted, next: place }
  return { deleted, next: keys.length < most ? startOfNext(place) : { table, afterKey: last } }
}

function pruneRest(
  tx: Queryable,
  { maxDays }: PruneLimits,
  table: Exclude<PrunePlace['table'], 'pings' | 'flips'>,
  { rows: limit }: PruneBatch,
  now: Instant,
): Promise<number> {
  switch (table) {
    case 'deliveries':
      return pruneDeliveries(tx, firstIdAt(now - maxDays * DAY_MS), limit)
    case 'events':
      return pruneEvents(tx, firstIdAt(now - maxDays * DAY_MS), limit)
    case 'gaps':
      return pruneGaps(tx, now - GAP_DAYS * DAY_MS, limit)
    case 'refresh_tokens':
      return deleteExpiredRefreshTokens(tx, now - TOKEN_DAYS * DAY_MS, limit)
    case 'rate_windows':
      return deleteOldWindows(tx, (WINDOW_DAYS * DAY_MS) / 1_000, limit)
    case 'tombstones':
      return pruneTombstones(tx, now - TOMBSTONE_DAYS * DAY_MS, limit)
  }
}

function startOfNext({ table }: PrunePlace): PrunePlace | null {
  const next = TABLES[TABLES.indexOf(table) + 1]
  return next === undefined ? null : { table: next, afterKey: 0 }
}

/** A pass over 100,000 checks reads their whole history; at this rest it never takes more than a twentieth of the time. */
const REST_SHARE = 20

export interface PrunerOptions extends PruneLimits {
  readonly onPruned: (rows: number) => void
}

/**
 * For a loop (runtime/loop.ts): a batch a run, `'again'` while there is more. A batch that failed, most likely since a slow
 * disk made it time out, is tried again at half its size; sizes grow back as batches succeed.
 */
export function createPruner(context: Context, { onPruned, ...limits }: PrunerOptions): LoopOptions['run'] {
  let place = PRUNE_START
  let share = 1
  let passBeganAt = context.clock.now()
  let restUntil = passBeganAt
  return async (signal) => {
    const now = context.clock.now()
    if (signal.aborted || now < restUntil) return 'done'
    if (place === PRUNE_START) passBeganAt = now
    const batch = { rows: Math.ceil(BATCH.rows * share), entries: Math.ceil(BATCH.entries * share) }
    try {
      const pruned = await pruneHistory(context, limits, place, batch)
      if (pruned === null) return 'done'
      if (pruned.deleted > 0) onPruned(pruned.deleted)
      share = Math.min(1, share * 2)
      place = pruned.next ?? PRUNE_START
      if (pruned.next === null) restUntil = context.clock.now() + (context.clock.now() - passBeganAt) * REST_SHARE
      return pruned.next === null ? 'done' : 'again'
    } catch (error) {
      share = Math.max(SMALLEST_SHARE, share / 2)
      throw error
    }
  }
}
