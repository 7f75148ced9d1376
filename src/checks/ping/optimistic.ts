/** Commits a group in one round trip without locks: decides on cached rows, saves those whose version is current. */

import { type ChangeSet, saveUnlocked } from '../../store/checks/change-sets.ts'
import type { Session } from '../../store/postgres/database.ts'
import { isConnectionError } from '../../store/postgres/sqlstate.ts'
import { decideChanges } from '../change.ts'
import type { CheckCache, SavedChecks } from './cache.ts'
import { GroupUnknown, type PingChange, type PingOutcome, pingIdsOf, toOutcome } from './ping.ts'

export interface OptimisticCommit {
  /** In the order of the group. `stale`: nothing of this ping's check was saved, since its row has changed or is gone. */
  readonly outcomes: readonly (PingOutcome | 'stale')[]
  readonly saved: SavedChecks
  readonly staleKeys: ReadonlySet<number>
}

/**
 * Null, with nothing done, for a group that needs locks: a check is not cached, a ping has a run id (repeats are found under the lock), or
 * more than states and pings would be written. Throws the error of PostgreSQL, or GroupUnknown.
 */
export async function commitOptimistically(
  session: Session,
  budgetMs: number,
  group: readonly (PingChange | null)[],
  cache: CheckCache,
): Promise<OptimisticCommit | null> {
  const changes = group.filter((change) => change !== null)
  if (changes.some(({ ping }) => ping.runId !== null)) return null
  const rows = cache.find(new Set(changes.map(({ key }) => key)))
  if (rows === null || rows.length === 0) return null
  const { decisions, changeSet, after } = decideChanges(rows, changes, 'earlier')
  if (!isPlain(changeSet) || decisions.some(({ kind }) => kind !== 'applied')) return null

  const { version, stale } = await session
    .within(budgetMs, (db) => saveUnlocked(db, changeSet, rows))
    .catch((error) => {
      if (!isConnectionError(error)) throw error
      const isDecided = group.map((change) => change !== null)
      throw new GroupUnknown(error, pingIdsOf(isDecided, decisions, changeSet.pings))
    })
  let decided = 0
  return {
    outcomes: group.map((change) => {
      if (change === null) return 'unknown'
      const outcome = toOutcome(decisions[decided++]!)
      return stale.has(change.key) ? 'stale' : outcome
    }),
    saved: { checks: stale.size === 0 ? after : after.filter(({ key }) => !stale.has(key)), version },
    staleKeys: stale,
  }
}

/** Whether `saveUnlocked` can save it. */
function isPlain({ states, flips, events }: ChangeSet): boolean {
  return flips.length === 0 && events.length === 0 && states.every((changed) => changed.wakeAt === undefined)
}
