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
import { createKnownKeys, type KnownKeys } from './known-checks.ts'
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
  /** Default: what was looked up for pings. */
  readonly known?: KnownKeys
  /** Default: pings are not counted. */
  readonly counts?: Pick<PingCounts, 'add'>
  readonly now: () => number
  /** A transaction has committed. */
  readonly onGroup: (size: number, seconds: number) => void
  readonly limits?: typeof PING_LIMITS
}

/**
 * Returns the outcomes in the order of the group. Does not throw: after a broken connection the rest of the group is `unsent` or `lost`. With
 * `skip locked` it does not wait for rows that another transaction holds.
 */
export type CommitGroup = (
  session: Session,
  group: readonly PendingPing[],
  wait?: 'wait' | 'skip locked',
) => Promise<readonly PingOutcome[]>

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
export const SPOOL_LIMITS: typeof PING_LIMITS = { budgetMs: 1_200, minBudgetMs: 800, retryMs: 0 }
/** A row that another transaction holds for longer is left out of its group. Well below the budgets: else a held row would look like an outage. */
export const SPOOL_LOCK_MS = 400

const NONE_FOUND: ReadonlyMap<string, number> = new Map()

/** What a group of pings changes. */
interface Changes {
  /** In the order of the group. Null for an id that names no check. */
  readonly changes: readonly (PingChange | null)[]
  /** The ids that were looked up in the database. */
  readonly lookedUp: ReadonlySet<string>
}

export function createGroupCommitter(options: CommitOptions): CommitGroup {
  const { cache, known = createKnownKeys(), counts, now, onGroup, limits = PING_LIMITS } = options
  let policy = OPTIMISTIC

  async function commit(session: Session, group: readonly PendingPing[]): Promise<readonly PingOutcome[]> {
    const startedAt = now()
    let attempt: Awaited<ReturnType<typeof commitWhole>>
    try {
      attempt = await commitWhole(session, group)
    } catch (error) {
      return commitRejected(session, group, error)
    }
    const { saved, lookedUp } = attempt
    if (saved !== null) cache.put(saved)
    if ('staleKeys' in attempt) cache.drop(attempt.staleKeys)
    const outcomes = attempt.outcomes.map((outcome, index) => {
      if (outcome !== 'unknown') return outcome
      const { publicId } = group[index]!.ping
      known.forget(publicId)
      return lookedUp.has(publicId) ? outcome : 'removed'
    })
    const isLate = (outcome: PingOutcome | 'stale' | 'removed') => outcome === 'stale' || outcome === 'removed'
    const late = group.filter((_, index) => isLate(outcomes[index]!))
    policy = nextPolicy(policy, outcomes.includes('stale') ? 'stale' : 'staleKeys' in attempt ? 'saved' : 'locked')
    if (late.length < group.length) onGroup(group.length - late.length, (now() - startedAt) / 1_000)
    const again = (late.length === 0 ? [] : await commit(session, late)).values()
    return outcomes.map((outcome) => (isLate(outcome) ? again.next().value! : (outcome as PingOutcome)))
  }

  async function commitWhole(
    session: Session,
    group: readonly PendingPing[],
  ): Promise<(LockedCommit | OptimisticCommit) & Pick<Changes, 'lookedUp'>> {
    const { changes, lookedUp } = await toChanges(session, group)
    if (changes.every((change) => change === null))
      return { outcomes: changes.map(() => 'unknown' as const), saved: null, lookedUp }
    const isOptimistic = policy.groupsToLock === 0
    const attempt = isOptimistic ? await commitOptimistically(session, budgetOf(group), changes, cache) : null
    return { ...(attempt ?? (await commitLocked(session, budgetOf(group), changes, 'wait'))), lookedUp }
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
    const { changes } = await toChanges(session, group)
    const { outcomes, saved } = await commitLocked(session, budgetOf(group), changes, 'skip locked')
    if (saved !== null) cache.put(saved)
    return outcomes
  }

  /** Looks up the keys that are not known. */
  async function toChanges(session: Session, group: readonly PendingPing[]): Promise<Changes> {
    // The other group in flight may have one forgotten while this one waits.
    const keys = group.map(({ ping }) => known.keyOf(ping.publicId))
    const lookedUp = new Set(group.flatMap(({ ping }, index) => (keys[index] === undefined ? [ping.publicId] : [])))
    const found =
      lookedUp.size === 0 ? NONE_FOUND : await session.within(budgetOf(group), (db) => findKeys(db, [...lookedUp]))
    for (const [publicId, key] of found) known.learn(publicId, key)
    const changes = group.map(({ ping }, index) => {
      const key = keys[index] ?? found.get(ping.publicId)
      if (key === undefined) return null
      counts?.add(key)
      return toChange(ping, key)
    })
    return { changes, lookedUp }
  }

  /** How long the database may still take for the group, in milliseconds. */
  const budgetOf = (group: readonly PendingPing[]) =>
    Math.max(limits.minBudgetMs, limits.budgetMs - (now() - oldestOf(group)))

  return (session, group, wait = 'wait') =>
    wait === 'wait'
      ? commit(session, group)
      : commitUnheld(session, group).catch((error) => commitRejected(session, group, error))
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
