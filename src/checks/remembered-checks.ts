/**
 * Rows of checks as this process last saved them, so that a ping may be decided without a look at the database: saved under the condition
 * that the row is still of that version (`saveUnlocked`, store/change-sets.ts). Nothing here needs to be true. What somebody else has
 * changed meanwhile (another replica, a person) is found out by the condition, and costs a round trip.
 */

import type { ExpectedRow, RowVersion } from '../store/change-sets.ts'
import type { LockedCheck } from '../store/states.ts'

export type RememberedCheck = LockedCheck & ExpectedRow

export interface RememberedChecks {
  /** In the order of their keys; null unless all are remembered. */
  find(keys: Iterable<number>): RememberedCheck[] | null
  /** As the transaction that made this version has committed them. */
  remember(checks: Iterable<LockedCheck>, version: RowVersion): void
  /** The same, of those only that are remembered already. */
  renew(checks: Iterable<LockedCheck>, version: RowVersion): void
  forget(keys: Iterable<number>): void
}

/** About 400 bytes each. */
const REMEMBERED_LIMIT = 20_000
/** A hundred may be open, with 130 bytes each; and whoever tells runs apart is locked anyway. */
const MOST_RUNS = 2

export function createRememberedChecks(limit = REMEMBERED_LIMIT): RememberedChecks {
  const rows = new Map<number, RememberedCheck>()

  function put(check: LockedCheck, version: RowVersion): void {
    if (check.state.runs.length > MOST_RUNS) rows.delete(check.key)
    else rows.set(check.key, { ...check, version })
  }

  return {
    find(keys) {
      const found: RememberedCheck[] = []
      for (const key of keys) {
        const row = rows.get(key)
        if (row === undefined) return null
        found.push(row)
      }
      return found.sort((a, b) => a.key - b.key)
    },
    remember(checks, version) {
      for (const check of checks) {
        // To the end: what was not pinged for longest is the first to go.
        rows.delete(check.key)
        put(check, version)
        if (rows.size > limit) rows.delete(rows.keys().next().value!)
      }
    },
    renew(checks, version) {
      for (const check of checks) if (rows.has(check.key)) put(check, version)
    },
    forget(keys) {
      for (const key of keys) rows.delete(key)
    },
  }
}
