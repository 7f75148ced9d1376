/**
 * The ping path (design, section 10). Pings that arrive while a group commits form the next group; every ping is answered
 * when its own group has committed, the next group going out first. Nobody waits for a group to fill.
 *
 * A group whose checks this process remembers, and that changes nothing but their states, is decided on what is remembered and saved in
 * one round trip, on condition that the rows are as they were. Any other takes two: lock and read, then save.
 *
 * One group is in flight at a time. It ends by its commit, or is cut off with its connection when its oldest ping has waited
 * for BUDGET_MS: a client must hear 503 within five seconds, and try again, rather than hang on a database that does.
 * stop() lets everything that was accepted finish.
 */

import type { PingType } from '../domain/check.ts'
import type { CheckEvent } from '../domain/transition.ts'
import { type ChangeSet, type RowVersion, saveChanges, saveUnlocked } from '../store/change-sets.ts'
import type { Database, Session } from '../store/database.ts'
import { findKeys } from '../store/keys.ts'
import { isConnectionError, isOutage, isRetriable, LOCK_NOT_AVAILABLE, sqlStateOf } from '../store/sqlstate.ts'
import { findRunPings, lockStates, runPingKey } from '../store/states.ts'
import { type Change, type Decision, decideChanges } from './change.ts'
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

export interface PingRecorder {
  record(ping: Ping): Promise<PingResult>
  /** False from a group that failed until one commits, or `recovered()` is called: the service could not take pings. */
  isWell(): boolean
  recovered(): void
  waiting(): number
  /** How long the oldest waiting ping waits, in milliseconds. */
  oldestWaitMs(): number
  /** Resolves when no ping waits and none is on its way to the database. */
  whenIdle(): Promise<void>
  stop(): Promise<void>
}

export interface PingRecorderOptions {
  /** A pipelined pool of its own, so that management can never take the connection that pings need. */
  readonly database: Database
  readonly remembered: RememberedChecks
  readonly now: () => number
  readonly onGroup: (size: number, seconds: number) => void
  readonly onError: (error: unknown, pings: number) => void
}

const LARGEST_GROUP = 500
/** Beyond it new pings are refused, which bounds the memory that a burst can take (each may hold a body of 10 KB). */
const MOST_WAITING = 20_000
const BUDGET_MS = 4_000
const SHORTEST_BUDGET_MS = 500
/** Older ones are given up when a connection fails: opening the next may take CONNECT_MS, and then comes the shortest budget. */
const LONGEST_RETRY_MS = 2_500
/** Public ids whose key is remembered; about 100 bytes each. */
const KNOWN_LIMIT = 200_000

/** After a group in which something was stale the next ones are locked: twice as many each time, where replicas share the pings of a check. */
const MOST_LOCKED_GROUPS = 512

interface Waiting {
  readonly ping: Ping
  /** Not its arrival: its body may have taken long to come. */
  readonly since: number
  readonly settle: (result: PingResult) => void
}

export function createPingRecorder(options: PingRecorderOptions): PingRecorder {
  const { database, remembered, now, onGroup, onError } = options
  const known = new Map<string, number>()
  let waiting: Waiting[] = []
  let draining: Promise<void> | undefined
  let isWell = true
  /** Of the group in flight: changes may have been committed, of a part of it too, even if its connection breaks now. */
  let isWriting = false
  let isStopping = false
  /** How many groups are to be locked before the next is saved without, and how many it will be if that one is stale. */
  let toBeLocked = 0
  let nextToBeLocked = 1

  function record(ping: Ping): Promise<PingResult> {
    if (isStopping || waiting.length >= MOST_WAITING) return Promise.resolve('unavailable')
    return new Promise((settle) => {
      waiting.push({ ping, since: now(), settle })
      draining ??= drain()
    })
  }

  async function drain(): Promise<void> {
    let isRetry = false
    while (waiting.length > 0) {
      let group: Waiting[] = []
      try {
        await database.session(async (session) => {
          group = takeGroup()
          isWriting = false
          let committing = commitGroup(session, group)
          for (;;) {
            const results = await committing
            const done = group
            group = takeGroup()
            isWriting = false
            // On the wire before the answers of the last one are written: the database works while this process does.
            if (group.length > 0) committing = commitGroup(session, group)
            answer(done, results)
            if (group.length === 0) return
          }
        })
        isRetry = false
      } catch (error) {
        // No connection, or one that broke. A group of which nothing was written yet gets another connection, once.
        isWell = false
        const mayRetry: boolean = group.length > 0 && !isWriting && !isRetry
        if (mayRetry) waiting = [...group, ...waiting]
        const stale = takeStale()
        isRetry = mayRetry && stale.length < group.length
        const given = mayRetry ? stale : [...group, ...stale]
        // Where not even a connection was to be had, some must be told, or they would be tried for ever.
        if (given.length === 0 && !mayRetry) given.push(...takeGroup())
        if (given.length > 0) onError(error, given.length)
        for (const { settle } of given) settle('unavailable')
      }
    }
    draining = undefined
  }

  /** How long the database may still take for it. */
  function leftMsOf(group: readonly Waiting[]): number {
    return Math.max(SHORTEST_BUDGET_MS, BUDGET_MS - (now() - group[0]!.since))
  }

  function takeGroup(): Waiting[] {
    const group = waiting.length <= LARGEST_GROUP ? waiting : waiting.slice(0, LARGEST_GROUP)
    waiting = group === waiting ? [] : waiting.slice(LARGEST_GROUP)
    return group
  }

  /** Those that cannot wait for yet another connection. */
  function takeStale(): Waiting[] {
    const oldest = now() - LONGEST_RETRY_MS
    return waiting.splice(0, waiting.findLastIndex((entry) => entry.since < oldest) + 1)
  }

  function answer(group: readonly Waiting[], results: readonly PingResult[]): void {
    for (let i = 0; i < group.length; i += 1) group[i]!.settle(results[i]!)
  }

  async function commitGroup(session: Session, group: readonly Waiting[]): Promise<PingResult[]> {
    const startedAt = now()
    const pings = group.map((entry) => entry.ping)
    try {
      await learnKeys(session, pings, leftMsOf(group))
      const results = await commitRemembered(session, pings, leftMsOf(group))
      const stale = results === null ? [] : group.filter((_, index) => results[index] === 'stale')
      const done = results ?? (await commitLocked(session, pings, leftMsOf(group), 'wait'))
      isWell = true
      onGroup(group.length - stale.length, (now() - startedAt) / 1_000)
      // As a group of their own, whose failure is not that of the others: those are stored.
      const late = stale.length === 0 ? [] : await commitGroup(session, stale)
      let taken = 0
      return done.map((result) => (result === 'stale' ? late[taken++]! : result))
    } catch (error) {
      if (isConnectionError(error)) throw error
      return commitApart(session, group, error)
    }
  }

  /** A statement was refused, so the connection is fine: find the ping that did it, and let it fail alone. */
  async function commitApart(session: Session, group: readonly Waiting[], error: unknown): Promise<PingResult[]> {
    if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) {
      return commitLocked(
        session,
        group.map((entry) => entry.ping),
        SHORTEST_BUDGET_MS,
        'skip locked',
      )
    }
    if (group.length <= 1 || (isOutage(error) && !isRetriable(error))) {
      isWell &&= !isOutage(error)
      onError(error, group.length)
      return group.map(() => 'unavailable')
    }
    const middle = group.length >> 1
    return [
      ...(await commitGroup(session, group.slice(0, middle))),
      ...(await commitGroup(session, group.slice(middle))),
    ]
  }

  async function learnKeys(session: Session, pings: readonly Ping[], budgetMs: number): Promise<void> {
    // Before the look: what is forgotten now must be asked for now, or a known check would be answered with 404.
    if (known.size > KNOWN_LIMIT) known.clear()
    const unknown = pings.filter((ping) => !known.has(ping.publicId)).map((ping) => ping.publicId)
    if (unknown.length === 0) return
    for (const [publicId, key] of await session.within(budgetMs, () => findKeys(session, unknown))) {
      known.set(publicId, key)
    }
  }

  /** In one round trip. Null where that is not for this group, and nothing was done. */
  async function commitRemembered(
    session: Session,
    pings: readonly Ping[],
    budgetMs: number,
  ): Promise<(PingResult | 'stale')[] | null> {
    if (toBeLocked > 0) {
      toBeLocked -= 1
      return null
    }
    // Whether a run has its ping already must be looked up under the lock.
    if (pings.some((ping) => ping.runId !== null)) return null
    const changes = toChanges(pings)
    const rows = remembered.find(keysOf(changes))
    if (rows === null || rows.length === 0) return null
    const { decisions, changeSet, after } = decideChanges(rows, changes.filter(isChange), 'earlier')
    if (!isPlain(changeSet) || decisions.some((decision) => decision.kind !== 'applied')) return null

    isWriting = true
    const { version, stale } = await session.within(budgetMs, () => saveUnlocked(session, changeSet, rows))
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
      return stale.has(change.key) ? 'stale' : resultOf(decision, pings[index]!, 'wait')
    })
  }

  async function commitLocked(
    session: Session,
    pings: readonly Ping[],
    budgetMs: number,
    wait: 'wait' | 'skip locked',
  ): Promise<PingResult[]> {
    const changes = toChanges(pings)
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
        else results.push(resultOf(decisions[decided++]!, pings[index]!, wait))
      })
      const hasChanges = changeSet.states.length > 0
      isWriting ||= hasChanges
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

  /** Null for an id that names no check. */
  function toChanges(pings: readonly Ping[]): (PingChange | null)[] {
    return pings.map((ping) => toChange(ping, known.get(ping.publicId)))
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

  return {
    record,
    isWell: () => isWell,
    recovered: () => {
      isWell = true
    },
    waiting: () => waiting.length,
    oldestWaitMs: () => (waiting.length === 0 ? 0 : now() - waiting[0]!.since),
    async whenIdle() {
      await draining
    },
    async stop() {
      isStopping = true
      await draining
    },
  }
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

function toChange(ping: Ping, key: number | undefined): PingChange | null {
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
