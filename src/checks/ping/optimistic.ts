/**
 * Commits a group without locks: decides on cached rows, and saves those whose version is current. One round trip; two where rows are not cached, and
 * are read first.
 */

import { type RowVersion, saveUnlocked } from '../../store/checks/change-sets.ts'
import { readStates } from '../../store/checks/states.ts'
import type { Queryable, Session } from '../../store/postgres/database.ts'
import { isConnectionError } from '../../store/postgres/sqlstate.ts'
import { decideChanges } from '../change.ts'
import type { CachedCheck, CheckCache, SavedChecks } from './cache.ts'
import { GroupUnknown, type PingChange, type PingOutcome, pingIdsOf, toOutcome } from './ping.ts'

export interface OptimisticCommit {
  /** In the order of the group. `stale`: nothing of this ping's check was saved, since its row has changed or is gone. */
  readonly outcomes: readonly (PingOutcome | 'stale')[]
  readonly saved: SavedChecks
  readonly staleKeys: ReadonlySet<number>
}

/**
 * Null, with nothing written, for a group that needs locks: a check has no row, a ping has a run id (repeats are found under the lock), or more than
 * states and pings would be written. Throws the error of PostgreSQL, or GroupUnknown.
 */
export async function commitOptimistically(
  session: Session,
  budgetMs: number,
  group: readonly (PingChange | null)[],
  cache: CheckCache,
): Promise<OptimisticCommit | null> {
  const changes = group.filter((change) => change !== null)
  if (changes.length === 0 || changes.some(({ ping }) => ping.runId !== null)) return null
  const keys = new Set(changes.map(({ key }) => key))
  const cached = cache.find(keys)
  const isCached = cached.length === keys.size
  const decided = isCached ? decidePlain(cached, changes) : null
  if (isCached && decided === null) return null
  let sent: typeof decided = null
  return session
    .within(budgetMs, async (db) => {
      const plain = decided ?? decidePlain(await readOthers(db, keys, cached), changes)
      if (plain === null) return null
      sent = plain
      const { version, stale } = await saveUnlocked(db, plain.changeSet, plain.rows)
      return toCommit(group, plain, version, stale)
    })
    .catch((error) => {
      if (sent === null || !isConnectionError(error)) throw error
      const isDecided = group.map((change) => change !== null)
      throw new GroupUnknown(error, pingIdsOf(isDecided, sent.decisions, sent.changeSet.pings))
    })
}

/** Null when `saveUnlocked` cannot save what was decided. `rows`: in the order of their keys. */
function decidePlain(rows: readonly CachedCheck[], changes: readonly PingChange[]) {
  const decided = decideChanges(rows, changes, 'earlier')
  const { states, flips, events } = decided.changeSet
  const isPlain = flips.length === 0 && events.length === 0 && states.every((changed) => changed.wakeAt === undefined)
  return isPlain && decided.decisions.every(({ kind }) => kind === 'applied') ? { ...decided, rows } : null
}

function toCommit(
  group: readonly (PingChange | null)[],
  { decisions, after }: NonNullable<ReturnType<typeof decidePlain>>,
  version: RowVersion,
  stale: ReadonlySet<number>,
): OptimisticCommit {
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

/** The cached rows with the others, in the order of their keys; without those that are gone. */
async function readOthers(
  db: Queryable,
  keys: ReadonlySet<number>,
  cached: readonly CachedCheck[],
): Promise<readonly CachedCheck[]> {
  const others = new Set(keys)
  for (const { key } of cached) others.delete(key)
  return [...cached, ...(await readStates(db, [...others]))].sort((a, b) => a.key - b.key)
}
