/**
 * How a group of pings gets into the database (design, section 10): one transaction for all of them. A group whose checks this
 * process remembers, and that changes nothing but their states, is decided on what is remembered and saved in one round trip, on
 * condition that the rows are as they were. Any other takes two: lock and read, then save. A ping that cannot be stored fails alone.
 */

import type { PingType } from '../../domain/check.ts'
import type { CheckEvent } from '../../domain/transition.ts'
import { type ChangeSet, type RowVersion, saveChanges, saveUnlocked } from '../../store/checks/change-sets.ts'
import { findKeys } from '../../store/checks/keys.ts'
import { findRunPings, lockStates, runPingKey } from '../../store/checks/states.ts'
import type { Session } from '../../store/postgres/database.ts'
import {
  isConnectionError,
  isOutage,
  isRetriable,
  LOCK_NOT_AVAILABLE,
  sqlStateOf,
} from '../../store/postgres/sqlstate.ts'
import { type Change, type Decision, decideChanges } from '../change.ts'
import type { RememberedChecks } from './remembered-checks.ts'

export interface Ping {
  /** Lower case. */
  readonly publicId: string
  readonly type: PingType
  readonly exitCode: number | null
  /** The job's own measurement. */
  readonly durationMs: number | null
  readonly runId: string | null
  readonly body: Buffer | null
  /** Arrival, by the database's clock. */
  readonly at: number
}

export type PingResult =
  | 'stored'
  /** Stored, and no run was opened: too many are open. */
  | 'run_refused'
  /** This run's ping of this type was stored before. */
  | 'duplicate'
  | 'unknown'
  /** It could not be stored; the client should try again. */
  | 'unavailable'

/** A ping of a group. */
export interface PendingPing {
  readonly ping: Ping
  /** Since when it waits; not its arrival: its body may have taken long to come. */
  readonly since: number
  /** Of its check; undefined: not known yet, or no check has this id. */
  key: number | undefined
  /** Once it is known: what is stored stays so if the connection breaks over the rest of its group. */
  result: PingResult | undefined
}

/** What is known of a group on its way, if its connection breaks now. */
export interface Flight {
  /** Changes may have been committed, of a part of the group too. */
  isWriting: boolean
}

export interface PingCommitterOptions {
  readonly remembered: RememberedChecks
  readonly now: () => number
  readonly onGroup: (size: number, seconds: number) => void
  readonly onError: (error: unknown, pings: number) => void
  /** A ping was stored, or could not be for a reason that is not its own. */
  readonly onHealth: (isWell: boolean) => void
}

export interface PingCommitter {
  /** Results in the order of the group. Throws only when the connection is lost; each entry's `result` and `flight` then say what is known. */
  commit(session: Session, flight: Flight, group: readonly PendingPing[]): Promise<PingResult[]>
  /** Of the check with this public id, if this process has seen it. */
  keyOf(publicId: string): number | undefined
}

const BUDGET_MS = 4_000
const SHORTEST_BUDGET_MS = 500
/** Public ids whose key is remembered; about 100 bytes each. */
const KNOWN_LIMIT = 200_000
/** After a group in which something was stale the next ones are locked: twice as many each time, where replicas share the pings of a check. */
const MOST_LOCKED_GROUPS = 512

export function createPingCommitter(options: PingCommitterOptions): PingCommitter {
  const { remembered, now, onGroup, onError, onHealth } = options
  const known = new Map<string, number>()
  /** How many groups are to be locked before the next is saved without, and how many it will be if that one is stale. */
  let toBeLocked = 0
  let nextToBeLocked = 1

  /** How long the database may still take for it. */
  function leftMsOf(group: readonly PendingPing[]): number {
    const oldest = group.reduce((since, entry) => Math.min(since, entry.since), Number.POSITIVE_INFINITY)
    return Math.max(SHORTEST_BUDGET_MS, BUDGET_MS - (now() - oldest))
  }

  async function commitGroup(session: Session, flight: Flight, group: readonly PendingPing[]): Promise<PingResult[]> {
    const startedAt = now()
    let results: (PingResult | 'stale')[]
    try {
      await learnKeys(session, group, leftMsOf(group))
      results =
        (await commitRemembered(session, flight, group, leftMsOf(group))) ??
        (await commitLocked(session, flight, group, leftMsOf(group), 'wait'))
    } catch (error) {
      if (isConnectionError(error)) throw error
      return commitApart(session, flight, group, error)
    }
    if (results.some((result) => result === 'stored' || result === 'run_refused')) onHealth(true)
    const stale = group.filter((_, index) => results[index] === 'stale')
    if (stale.length < group.length) onGroup(group.length - stale.length, (now() - startedAt) / 1_000)
    group.forEach((entry, index) => {
      const result = results[index]!
      if (result !== 'stale') entry.result = result
    })
    // As a group of their own, whose failure is not that of the others: those are stored.
    const late = stale.length === 0 ? [] : await commitGroup(session, flight, stale)
    let taken = 0
    return results.map((result) => (result === 'stale' ? late[taken++]! : result))
  }

  /** A statement was refused, so the connection is fine: find the ping that did it, and let it fail alone. */
  async function commitApart(
    session: Session,
    flight: Flight,
    group: readonly PendingPing[],
    cause: unknown,
  ): Promise<PingResult[]> {
    let error = cause
    if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) {
      try {
        return await commitLocked(session, flight, group, leftMsOf(group), 'skip locked')
      } catch (another) {
        if (isConnectionError(another)) throw another
        error = another
      }
    }
    if (group.length <= 1 || (isOutage(error) && !isRetriable(error))) {
      if (isOutage(error)) onHealth(false)
      onError(error, group.length)
      return group.map(() => 'unavailable')
    }
    const middle = group.length >> 1
    return [
      ...(await commitGroup(session, flight, group.slice(0, middle))),
      ...(await commitGroup(session, flight, group.slice(middle))),
    ]
  }

  /** In the entries themselves: what is forgotten for another group must not make a check of this one unknown. */
  async function learnKeys(session: Session, group: readonly PendingPing[], budgetMs: number): Promise<void> {
    if (known.size > KNOWN_LIMIT) known.clear()
    for (const entry of group) entry.key ??= known.get(entry.ping.publicId)
    const unknown = group.filter((entry) => entry.key === undefined)
    if (unknown.length === 0) return
    const ids = unknown.map((entry) => entry.ping.publicId)
    const keys = new Map(await session.within(budgetMs, (db) => findKeys(db, ids)))
    for (const [publicId, key] of keys) known.set(publicId, key)
    for (const entry of unknown) entry.key = keys.get(entry.ping.publicId)
  }

  /** In one round trip. Null where that is not for this group, and nothing was done. */
  async function commitRemembered(
    session: Session,
    flight: Flight,
    group: readonly PendingPing[],
    budgetMs: number,
  ): Promise<(PingResult | 'stale')[] | null> {
    if (toBeLocked > 0) {
      toBeLocked -= 1
      return null
    }
    // Whether a run has its ping already must be looked up under the lock.
    if (group.some(({ ping }) => ping.runId !== null)) return null
    const changes = group.map(toChange)
    const rows = remembered.find(keysOf(changes))
    if (rows === null || rows.length === 0) return null
    const { decisions, changeSet, after } = decideChanges(rows, changes.filter(isChange), 'earlier')
    if (!isPlain(changeSet) || decisions.some((decision) => decision.kind !== 'applied')) return null

    const { version, stale } = await session.within(budgetMs, (db) => {
      flight.isWriting = true
      return saveUnlocked(db, changeSet, rows)
    })
    if (stale.size === 0) nextToBeLocked = 1
    else {
      toBeLocked = nextToBeLocked
      nextToBeLocked = Math.min(MOST_LOCKED_GROUPS, nextToBeLocked * 2)
      remembered.forget(stale)
    }
    remembered.remember(stale.size === 0 ? after : after.filter((check) => !stale.has(check.key)), version)
    let decided = 0
    return changes.map((change, index) => {
      if (change === null) return 'unknown'
      const decision = decisions[decided++]!
      return stale.has(change.key) ? 'stale' : resultOf(decision, group[index]!.ping, 'wait')
    })
  }

  async function commitLocked(
    session: Session,
    flight: Flight,
    group: readonly PendingPing[],
    budgetMs: number,
    wait: 'wait' | 'skip locked',
  ): Promise<PingResult[]> {
    const changes = group.map(toChange)
    const runPings = changes.filter((change) => change !== null && change.ping.runId !== null) as (PingChange & {
      ping: { runId: string; type: PingType }
    })[]
    let version: RowVersion | null = null
    const { results, after } = await session.groupTransaction(budgetMs, async (tx) => {
      const [locked, stored] = await Promise.all([
        lockStates(tx, [...keysOf(changes)], wait),
        runPings.length === 0
          ? new Set<string>()
          : findRunPings(
              tx,
              runPings.map(({ key, ping }) => ({ key, ...ping })),
            ),
      ])
      const repeats = findRepeats(changes, stored)
      const fresh = changes.filter((change, index) => change !== null && !repeats.has(index)) as Change[]
      const { decisions, changeSet, after } = decideChanges(locked, fresh, 'earlier')
      let decided = 0
      const results: PingResult[] = []
      changes.forEach((change, index) => {
        if (change === null) results.push('unknown')
        else if (repeats.has(index)) results.push(resultOfRepeat(results[repeats.get(index)!]))
        else results.push(resultOf(decisions[decided++]!, group[index]!.ping, wait))
      })
      const hasChanges = changeSet.states.length > 0
      flight.isWriting ||= hasChanges
      return {
        result: { results, after },
        async save() {
          if (hasChanges) version = await saveChanges(tx, changeSet)
        },
      }
    })
    if (version !== null) remembered.remember(after, version)
    return results
  }

  function resultOf(decision: Decision, ping: Ping, wait: 'wait' | 'skip locked'): PingResult {
    if (decision.kind === 'applied') return decision.outcome.runRefused ? 'run_refused' : 'stored'
    if (decision.kind === 'failed') {
      onError(decision.error, 1)
      return 'unavailable'
    }
    // Somebody holds the row for longer than we wait, or it is gone: only the former may be told to a client as final.
    if (wait === 'skip locked') return 'unavailable'
    known.delete(ping.publicId)
    return 'unknown'
  }

  return { commit: commitGroup, keyOf: (publicId) => known.get(publicId) }
}

const STORED_BEFORE = -1

/** Pings whose run has one of their type already, by their place: where in this group the first one is, or STORED_BEFORE. */
function findRepeats(changes: readonly (PingChange | null)[], stored: ReadonlySet<string>): Map<number, number> {
  const repeats = new Map<number, number>()
  const firsts = new Map<string, number>()
  changes.forEach((change, index) => {
    if (change === null || change.ping.runId === null) return
    const runPing = runPingKey(change.key, change.ping.runId, change.ping.type)
    const first = stored.has(runPing) ? STORED_BEFORE : firsts.get(runPing)
    if (first === undefined) firsts.set(runPing, index)
    else repeats.set(index, first)
  })
  return repeats
}

/** A repeat fares as the first one did: accepted only if that one is stored. */
function resultOfRepeat(first: PingResult | undefined): PingResult {
  return first === undefined || first === 'stored' || first === 'run_refused' ? 'duplicate' : first
}

type PingChange = Change & { readonly ping: NonNullable<Change['ping']> }

function isChange(change: PingChange | null): change is PingChange {
  return change !== null
}

function keysOf(changes: readonly (PingChange | null)[]): Set<number> {
  return new Set(changes.filter(isChange).map((change) => change.key))
}

/** What `saveUnlocked` can save. */
function isPlain({ states, flips, events }: ChangeSet): boolean {
  return flips.length === 0 && events.length === 0 && states.every((changed) => changed.wakeAt === undefined)
}

/** Null for an id that names no check. */
function toChange({ ping, key }: PendingPing): PingChange | null {
  if (key === undefined) return null
  const { type, exitCode, runId, body, at } = ping
  return { key, event: toEvent(ping), at, ping: { type, exitCode, runId, body } }
}

function toEvent({ type, runId, durationMs }: Ping): CheckEvent {
  switch (type) {
    case 'success':
    case 'fail':
      return { kind: type, runId, durationMs }
    case 'start':
      return { kind: 'start', runId }
    case 'log':
      return { kind: 'log' }
  }
}
