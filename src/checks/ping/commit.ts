/**
 * Commits a group of pings: optimistically where its checks are cached, with row locks otherwise. A group that PostgreSQL rejects is halved
 * until each rejected ping stands alone.
 */

import { findKeys } from '../../store/checks/states.ts'
import type { Session } from '../../store/postgres/database.ts'
import {
  isConnectionError,
  isOutage,
  isRetriable,
  LOCK_NOT_AVAILABLE,
  sqlStateOf,
} from '../../store/postgres/sqlstate.ts'
import type { CheckCache } from './cache.ts'
import type { PingCounts } from './counts.ts'
import { commitLocked, type LockedCommit } from './locked.ts'
import { commitOptimistically, type OptimisticCommit } from './optimistic.ts'
import { GroupUnknown, type Ping, type PingChange, type PingFailure, type PingOutcome, toChange } from './ping.ts'
import { nextPolicy, OPTIMISTIC } from './policy.ts'
import { oldestOf } from './queue.ts'

export interface PendingPing {
  readonly ping: Ping
  /** When it began to wait. Not its arrival: its body may have taken long to come. */
  readonly since: number
}

export interface CommitOptions {
  readonly cache: CheckCache
  /** Default: pings are not counted. */
  readonly counts?: Pick<PingCounts, 'add'>
  readonly now: () => number
  /** A transaction has committed. */
  readonly onGroup: (size: number, seconds: number) => void
  readonly limits?: typeof PING_LIMITS
}

/** Returns the outcomes in the order of the group. Does not throw: after a broken connection the rest of the group is `unsent` or `lost`. */
export type CommitGroup = (session: Session, group: readonly PendingPing[]) => Promise<readonly PingOutcome[]>

/** A client must hear 503 within five seconds. Milliseconds since its ping began to wait. */
export const PING_LIMITS = {
  /** Then its group is cut off, with its connection ... */
  budgetMs: 4_000,
  /** ... but the database has this long in any case. */
  minBudgetMs: 500,
  /** When a connection breaks, older pings are given up: opening the next one may take 1.5 s. */
  retryMs: 2_500,
}

/** The same with a spool: what is not stored within two seconds is spooled. */
export const SPOOL_LIMITS: typeof PING_LIMITS = { budgetMs: 1_500, minBudgetMs: 500, retryMs: 0 }

/** About 100 bytes each. */
const MAX_KEYS = 200_000

export function createGroupCommitter(options: CommitOptions): CommitGroup {
  const { cache, counts, now, onGroup, limits = PING_LIMITS } = options
  /** Keys of checks by public id. */
  const keys = new Map<string, number>()
  let policy = OPTIMISTIC

  async function commit(session: Session, group: readonly PendingPing[]): Promise<readonly PingOutcome[]> {
    const startedAt = now()
    let attempt: LockedCommit | OptimisticCommit
    try {
      attempt = await commitWhole(session, group)
    } catch (error) {
      return commitRejected(session, group, error)
    }
    const { outcomes, saved } = attempt
    if (saved !== null) cache.put(saved)
    if ('staleKeys' in attempt) cache.drop(attempt.staleKeys)
    // Checks that were deleted.
    for (const [index, outcome] of outcomes.entries())
      if (outcome === 'unknown') keys.delete(group[index]!.ping.publicId)
    const stale = group.filter((_, index) => outcomes[index] === 'stale')
    policy = nextPolicy(policy, stale.length > 0 ? 'stale' : 'staleKeys' in attempt ? 'saved' : 'locked')
    if (stale.length < group.length) onGroup(group.length - stale.length, (now() - startedAt) / 1_000)
    const late = (stale.length === 0 ? [] : await commit(session, stale)).values()
    return outcomes.map((outcome) => (outcome === 'stale' ? late.next().value! : outcome))
  }

  async function commitWhole(
    session: Session,
    group: readonly PendingPing[],
  ): Promise<LockedCommit | OptimisticCommit> {
    const changes = await toChanges(session, group)
    const isOptimistic = policy.groupsToLock === 0
    const attempt = isOptimistic ? await commitOptimistically(session, budgetOf(group), changes, cache) : null
    return attempt ?? commitLocked(session, budgetOf(group), changes, 'wait')
  }

  /** After an error of the whole group. */
  async function commitRejected(
    session: Session,
    group: readonly PendingPing[],
    cause: unknown,
  ): Promise<readonly PingOutcome[]> {
    let error = cause
    if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) {
      try {
        return await commitUnheld(session, group)
      } catch (another) {
        error = another
      }
    }
    if (isConnectionError(error)) return group.map((_, index) => toDisconnected(error, index))
    if (group.length === 1 || (isOutage(error) && !isRetriable(error))) {
      const failure: PingFailure = { kind: isOutage(error) ? 'outage' : 'rejected', error }
      return group.map(() => failure)
    }
    const middle = group.length >> 1
    const head = await commit(session, group.slice(0, middle))
    const broken = head.find(isDisconnected)
    const rest = group.slice(middle)
    const tail =
      broken === undefined ? await commit(session, rest) : rest.map(() => ({ ...broken, kind: 'unsent' as const }))
    return [...head, ...tail]
  }

  /** Leaves out the checks whose rows another transaction holds. */
  async function commitUnheld(session: Session, group: readonly PendingPing[]): Promise<readonly PingOutcome[]> {
    const changes = await toChanges(session, group)
    const { outcomes, saved } = await commitLocked(session, budgetOf(group), changes, 'skip locked')
    if (saved !== null) cache.put(saved)
    return outcomes
  }

  /** Looks up the keys that are not known yet. Null for an id that names no check. */
  async function toChanges(session: Session, group: readonly PendingPing[]): Promise<(PingChange | null)[]> {
    if (keys.size > MAX_KEYS) keys.clear()
    // Of this group alone: the other one in flight may clear `keys` while this one waits.
    const known = group.map(({ ping }) => keys.get(ping.publicId))
    const unknown = group.filter((_, index) => known[index] === undefined).map(({ ping }) => ping.publicId)
    const found = unknown.length === 0 ? null : await session.within(budgetOf(group), (db) => findKeys(db, unknown))
    for (const [publicId, key] of found ?? []) keys.set(publicId, key)
    return group.map(({ ping }, index) => {
      const key = known[index] ?? found?.get(ping.publicId)
      if (key === undefined) return null
      counts?.add(key)
      return toChange(ping, key)
    })
  }

  /** How long the database may still take for the group, in milliseconds. */
  const budgetOf = (group: readonly PendingPing[]) =>
    Math.max(limits.minBudgetMs, limits.budgetMs - (now() - oldestOf(group)))

  return commit
}

/** Whether the connection broke over it. */
export function isDisconnected(outcome: PingOutcome): outcome is PingFailure {
  return typeof outcome !== 'string' && (outcome.kind === 'unsent' || outcome.kind === 'lost')
}

function toDisconnected(error: unknown, index: number): PingFailure {
  return error instanceof GroupUnknown
    ? { kind: 'lost', error: error.cause, pingId: error.pingIds[index] ?? null }
    : { kind: 'unsent', error }
}
