/**
 * Commits a group of pings: what is plain in one statement (plain.ts), and the rest with row locks (locked.ts). What
 * PostgreSQL rejects then is halved until each rejected ping stands alone.
 */

import { findKeys } from '../../store/checks/states.ts'
import type { Database, Session } from '../../store/postgres/database.ts'
import {
  isConnectionError,
  isOutage,
  isRetriable,
  LOCK_NOT_AVAILABLE,
  sqlStateOf,
} from '../../store/postgres/sqlstate.ts'
import type { PingCounts } from './counts.ts'
import { createKnownChecks, type KnownKeys } from './known-checks.ts'
import { commitLocked } from './locked.ts'
import { GroupUnknown, type Ping, type PingChange, type PingFailure, type PingOutcome, toChange } from './ping.ts'
import { commitPlain } from './plain.ts'
import { oldestOf } from './queue.ts'

export interface PendingPing {
  readonly ping: Ping
  /** When it began to wait, by this process's clock. Not its arrival: its body may have taken long to come. */
  readonly since: number
}

export interface CommitOptions {
  /** A pool of its own, so that management never takes the connection that pings need. */
  readonly database: Database
  /** Default: what was looked up for pings. */
  readonly known?: KnownKeys
  /** Default: pings are not counted. */
  readonly counts?: Pick<PingCounts, 'add'>
  /** This process's clock: the database's clock may jump. */
  readonly now: () => number
  /** A group is stored, but for pings that failed. */
  readonly onGroup: (size: number, seconds: number) => void
}

/** Milliseconds since the oldest ping of a group began to wait. */
export interface GroupLimits {
  /** Then the group is cut off, with its connection ... */
  readonly budgetMs: number
  /** ... but the database has this long in any case. */
  readonly minBudgetMs: number
  /** When a connection breaks, older pings are given up: opening the next one may take 1.5 s. */
  readonly retryMs: number
}

/** A client must hear 503 within five seconds. */
export const PING_LIMITS: GroupLimits = { budgetMs: 4_000, minBudgetMs: 500, retryMs: 2_500 }
/** Where the disk takes what is not stored within two seconds. */
export const SPOOL_LIMITS: GroupLimits = { budgetMs: 1_200, minBudgetMs: 800, retryMs: 0 }
/**
 * How long a connection of pings waits for a row that another session has locked, before the others of the group are
 * stored without it. Well below the budgets: else a locked row would look like an outage.
 */
export const ROW_LOCK_MS = 400

export interface GroupCommit {
  readonly limits: GroupLimits
  /** `skip locked`: it does not wait for rows that another session has locked. */
  readonly wait: 'wait' | 'skip locked'
}

/** In the order of the group. Does not throw: after a broken connection the rest is `unsent` or `lost`. */
export type CommitGroup = (
  session: Session,
  group: readonly PendingPing[],
  how: GroupCommit,
) => Promise<readonly PingOutcome[]>

/** A ping whose check is known. */
interface Known {
  readonly index: number
  readonly ping: Ping
  readonly change: PingChange
}

export function createGroupCommitter(options: CommitOptions): CommitGroup {
  const { database, now, counts, onGroup, known = createKnownChecks({ database, clock: { now } }) } = options

  return async function commit(session, group, { limits, wait }) {
    const startedAt = now()
    const outcomes: PingOutcome[] = group.map(() => 'unknown')
    const budgetOf = () => Math.max(limits.minBudgetMs, limits.budgetMs - (now() - oldestOf(group)))
    await commitAll(group.map((_, index) => index))
    const failures = outcomes.filter((outcome) => typeof outcome !== 'string').length
    if (failures < group.length) onGroup(group.length - failures, (now() - startedAt) / 1_000)
    return outcomes

    /** Writes the outcomes of these pings, as the functions below do. */
    async function commitAll(indexes: readonly number[]): Promise<void> {
      // A row that is gone looks like one that is locked, so that all are looked up then.
      const isKnown = (index: number) => wait === 'wait' && known.keyOf(group[index]!.ping.publicId) !== undefined
      const lookedUp = indexes.filter((index) => !isKnown(index))
      try {
        await lookUp(lookedUp)
      } catch (error) {
        for (const index of indexes) outcomes[index] = toFailure(error)
        return
      }
      const wanted = indexes.flatMap((index): Known[] => {
        const { ping } = group[index]!
        const key = known.keyOf(ping.publicId)
        if (key === undefined) return []
        counts?.add(key)
        return [{ index, ping, change: toChange(ping, key) }]
      })
      if (wait === 'wait') await storePlain(wanted)
      else await storeLocked(wanted, wait)
      const gone = wanted.filter(({ index }) => outcomes[index] === 'unknown')
      for (const { ping } of gone) known.forget(ping.publicId)
      // Its check may have been made anew, with another key.
      const again = gone.filter(({ index }) => !lookedUp.includes(index))
      if (again.length > 0) await commitAll(again.map(({ index }) => index))
    }

    async function lookUp(indexes: readonly number[]): Promise<void> {
      if (indexes.length === 0) return
      const publicIds = new Set(indexes.map((index) => group[index]!.ping.publicId))
      const found = await session.within(budgetOf(), (db) => findKeys(db, [...publicIds]))
      for (const publicId of publicIds) {
        const key = found.get(publicId)
        if (key === undefined) known.forget(publicId)
        else known.learn(publicId, key)
      }
    }

    async function storePlain(pings: readonly Known[]): Promise<void> {
      const candidates = pings.map(({ ping, change: { key } }) => ({ ping, key, spec: known.plainSpecOf(key) }))
      let left = pings
      let how: GroupCommit['wait'] = 'wait'
      try {
        const stored = await commitPlain(session, budgetOf(), candidates)
        for (const [at, { index }] of pings.entries()) if (stored[at]) outcomes[index] = 'stored'
        left = pings.filter((_, at) => !stored[at])
      } catch (error) {
        // Nothing is stored. With locks PostgreSQL says which rows are locked, and which pings it rejects.
        if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) how = 'skip locked'
        else if (isOfAll(error)) {
          failAll(pings, error)
          return
        }
      }
      await storeLocked(left, how)
    }

    /** Returns whether the connection is still there. */
    async function storeLocked(pings: readonly Known[], how: GroupCommit['wait']): Promise<boolean> {
      if (pings.length === 0) return true
      try {
        const changes = pings.map(({ change }) => change)
        const done = await commitLocked(session, budgetOf(), changes, how)
        for (const [at, outcome] of done.outcomes.entries()) outcomes[pings[at]!.index] = outcome
        for (const row of done.after) known.noteRow(row)
        return true
      } catch (error) {
        if (how === 'wait' && sqlStateOf(error) === LOCK_NOT_AVAILABLE) return storeLocked(pings, 'skip locked')
        if (pings.length === 1 || isOfAll(error)) return failAll(pings, error)
        const middle = pings.length >> 1
        const rest = pings.slice(middle)
        if (await storeLocked(pings.slice(0, middle), how)) return storeLocked(rest, how)
        for (const { index } of rest) outcomes[index] = { kind: 'unsent', error }
        return false
      }
    }

    /** The same: whether the connection is still there. */
    function failAll(pings: readonly Known[], error: unknown): boolean {
      for (const [at, { index }] of pings.entries()) outcomes[index] = toFailure(error, at)
      return !isConnectionError(error)
    }
  }
}

/** Whether no ping can be stored now. */
const isOfAll = (error: unknown) => isConnectionError(error) || (isOutage(error) && !isRetriable(error))

/** `at`: the place of the ping among those that were sent together. */
function toFailure(error: unknown, at = 0): PingFailure {
  if (error instanceof GroupUnknown) {
    const pingId = error.pingIds[at]
    return pingId === undefined ? { kind: 'unsent', error: error.cause } : { kind: 'lost', error: error.cause, pingId }
  }
  if (isConnectionError(error)) return { kind: 'unsent', error }
  return { kind: isOutage(error) ? 'outage' : 'rejected', error }
}
