/**
 * Rows of checks as this process saved them last, so that a ping can be decided without a read. Cached rows may be stale: another replica or a
 * person may have changed them. They are saved on condition that the row still has the cached version (`saveUnlocked`, store/checks/change-sets.ts).
 */

import type { ExpectedRow, RowVersion } from '../../store/checks/change-sets.ts'
import type { LockedCheck } from '../../store/checks/states.ts'

export type CachedCheck = LockedCheck & ExpectedRow

/** Rows that a transaction committed, and their version since. */
export interface SavedChecks {
  readonly checks: readonly LockedCheck[]
  readonly version: RowVersion
}

export interface CheckCache {
  /** In the order of their keys; null unless all are cached. */
  find(keys: Iterable<number>): CachedCheck[] | null
  put(saved: SavedChecks): void
  /** Updates those that are cached already, and adds none. */
  refresh(saved: SavedChecks): void
  drop(keys: Iterable<number>): void
}

/** About 500 bytes each. */
const MAX_CHECKS = 20_000
/** A check may have a hundred open runs of 130 bytes; pings with run ids are locked anyway. */
const MAX_RUNS = 2

/** When it is full, the check that was added first goes. */
export function createCheckCache(limit = MAX_CHECKS): CheckCache {
  const rows = new Map<number, CachedCheck>()

  function put(check: LockedCheck, version: RowVersion): void {
    const { key, spec, state, stampedAt, wakeAt } = check
    if (state.runs.length > MAX_RUNS) rows.delete(key)
    else rows.set(key, { key, spec, state, stampedAt, wakeAt, version })
    if (rows.size > limit) rows.delete(rows.keys().next().value!)
  }

  return {
    find(keys) {
      const found: CachedCheck[] = []
      for (const key of keys) {
        const row = rows.get(key)
        if (row === undefined) return null
        found.push(row)
      }
      return found.sort((a, b) => a.key - b.key)
    },
    put({ checks, version }) {
      for (const check of checks) put(check, version)
    },
    refresh({ checks, version }) {
      for (const check of checks) if (rows.has(check.key)) put(check, version)
    },
    drop(keys) {
      for (const key of keys) rows.delete(key)
    },
  }
}
