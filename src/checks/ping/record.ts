/**
 * Records pings in groups (design, section 10). Pings that arrive while a group commits form the next group; no ping waits for a group to fill,
 * and each gets its result when its own group has committed. While many wait, a second group is in flight on another connection, so that PostgreSQL
 * goes on while this process reads and writes. The two never hold pings of the same check: those keep their order.
 *
 * A client must hear 503 within five seconds when the database hangs: a group is cut off, with its connection, when its oldest ping has waited
 * for four seconds. A ping that was certainly not written when its connection broke is sent once more, on another connection.
 */

import { startTimer } from '../../runtime/clock.ts'
import type { Database, Session } from '../../store/postgres/database.ts'
import { type CommitOptions, createGroupCommitter, isDisconnected, type PendingPing, PING_LIMITS } from './commit.ts'
import type { Ping, PingOutcome, PingResult } from './ping.ts'
import { createPingQueue, oldestOf } from './queue.ts'
import { createPingWaits, type PingWaits } from './waits.ts'

export type { Ping, PingResult } from './ping.ts'

export interface PingRecorder {
  /** `since`: when it began to wait, where its check had to be looked up first. Default: now. */
  record(ping: Ping, since?: number): Promise<PingResult>
  /** False from a group that the database failed to store until one commits, or until `recovered()`. */
  isWell(): boolean
  recovered(): void
  waiting(): number
  /** How long the oldest ping without a result has waited, in milliseconds; also one whose group is in flight. */
  oldestWaitMs(): number
  /** What pings wait beside batches of deadlines, and otherwise. Without those that could not be stored. */
  readonly waits: Omit<PingWaits, 'onSettled'>
  /** Resolves when no ping waits and no group is in flight, after 20 ms at the latest: for background work. */
  yieldToPings(): Promise<void>
  /** Rejects new pings, and resolves when all others have their results. */
  stop(): Promise<void>
}

export interface PingRecorderOptions extends CommitOptions {
  /** A pool of its own, so that management never takes the connection that pings need. */
  readonly database: Database
  readonly onError: (error: unknown, pings: number) => void
}

const MAX_YIELD_MS = 20

/** So many must wait for a second group to start: smaller ones cost more than they save (docs/design/ping-path.md). */
const MIN_SECOND_GROUP = 24

/** A group in flight; empty before the first one and after the last one of a connection. */
interface Flight {
  isConnected: boolean
  group: readonly QueuedPing[]
}

interface QueuedPing extends PendingPing {
  readonly isRetry: boolean
  readonly settle: (result: PingResult) => void
}

/** `commit` is for tests. */
export function createPingRecorder(options: PingRecorderOptions, commit = createGroupCommitter(options)): PingRecorder {
  const { database, now, onError, limits = PING_LIMITS } = options
  const queue = createPingQueue<QueuedPing>()
  const waits = createPingWaits(now)
  const flights = new Set<Flight>()
  let isWell = true
  let isStopping = false
  const onIdle = new Set<() => void>()

  function record(ping: Ping, since = now()): Promise<PingResult> {
    return new Promise((settle) => {
      if (isStopping || !queue.add({ ping, since, isRetry: false, settle })) settle('unavailable')
      else if (flights.size === 0 || (flights.size === 1 && queue.size() % MIN_SECOND_GROUP === 0 && hasConnection()))
        void fly()
    })
  }

  const hasConnection = () => [...flights].some(({ isConnected }) => isConnected)

  async function fly(): Promise<void> {
    const flight: Flight = { isConnected: false, group: [] }
    flights.add(flight)
    do {
      try {
        await database.session((session) => {
          flight.isConnected = true
          return commitAll(session, flight)
        })
      } catch (error) {
        const wasConnected = flight.isConnected
        flight.isConnected = false
        // Nothing in flight where a connection broke; a fault of the commit itself leaves its group here.
        giveUp(flight.group, error)
        flight.group = []
        // The other flight stores what waits, or fails too. One that only tries to connect may be followed by such another for ever.
        if (hasConnection()) {
          giveUpInTime(error)
          break
        }
        isWell = false
        const stale = queue.takeOlderThan(now() - limits.retryMs)
        // Without a connection a group fails at each attempt, or it would be tried for ever.
        giveUp(stale.length > 0 || wasConnected ? stale : queue.takeGroup(), error)
      }
      flight.isConnected = false
      // The other flight takes what waits now.
    } while (flights.size === 1 && queue.size() > 0)
    flights.delete(flight)
    if (flights.size > 0) return
    for (const resolve of onIdle) resolve()
  }

  /** Resolves when nothing waits for this flight. Throws the error that broke the connection, once its group is settled. */
  async function commitAll(session: Session, flight: Flight): Promise<void> {
    let committing = commitNext(session, flight)
    while (flight.group.length > 0) {
      const outcomes = await committing
      const { group } = flight
      const broken = outcomes.find(isDisconnected)
      // The next group is sent before the responses of this one are written: the database works while this process does.
      if (broken === undefined) committing = commitNext(session, flight)
      else flight.group = []
      settle(group, outcomes)
      if (broken !== undefined) throw broken.error
    }
  }

  function commitNext(session: Session, flight: Flight): Promise<readonly PingOutcome[]> {
    flight.group = []
    const other = [...flights].find(({ group }) => group.length > 0)
    flight.group = other === undefined ? queue.takeGroup() : takeSecond(other.group)
    return flight.group.length === 0 ? Promise.resolve([]) : commit(session, flight.group)
  }

  /** A group beside `first`; empty when too few pings wait for other checks. */
  function takeSecond(first: readonly QueuedPing[]): readonly QueuedPing[] {
    if (queue.size() < MIN_SECOND_GROUP) return []
    const taken = new Set(first.map(({ ping }) => ping.publicId))
    return queue.takeGroup({ min: MIN_SECOND_GROUP / 2, isFree: ({ ping }) => !taken.has(ping.publicId) })
  }

  function settle(group: readonly QueuedPing[], outcomes: readonly PingOutcome[]): void {
    const again: QueuedPing[] = []
    const errors = new Map<unknown, number>()
    for (const [index, pending] of group.entries()) {
      const outcome = outcomes[index]!
      if (typeof outcome === 'string') {
        pending.settle(outcome)
        waits.onSettled(pending.since)
      } else if (outcome.kind === 'unsent' && !pending.isRetry) again.push({ ...pending, isRetry: true })
      else {
        if (outcome.kind !== 'held') errors.set(outcome.error, (errors.get(outcome.error) ?? 0) + 1)
        pending.settle('unavailable')
      }
    }
    queue.putBack(again)
    isWell = isWellAfter(outcomes) ?? isWell
    for (const [error, pings] of errors) onError(error, pings)
  }

  function giveUp(group: readonly QueuedPing[], error: unknown): void {
    if (group.length > 0) onError(error, group.length)
    for (const { settle } of group) settle('unavailable')
  }

  /**
   * What waits now is left to the other flight, which may hang with a group that is younger: pings that it does not take within the time that
   * a group has, at most half a second later, are given up.
   */
  function giveUpInTime(error: unknown, leftAt = now()): void {
    const oldest = queue.oldestSince()
    if (oldest > leftAt) return
    const mostMs = limits.budgetMs + limits.minBudgetMs
    startTimer(Math.max(1, oldest + mostMs - now()), () => {
      giveUp(queue.takeOlderThan(now() - limits.budgetMs), error)
      giveUpInTime(error, leftAt)
    })
  }

  /** `longestMs`: undefined for no limit. */
  function whenIdle(longestMs?: number): Promise<void> {
    if (flights.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const stopTimer = longestMs === undefined ? () => {} : startTimer(longestMs, () => finish())
      const finish = () => {
        stopTimer()
        onIdle.delete(finish)
        resolve()
      }
      onIdle.add(finish)
    })
  }

  return {
    record,
    isWell: () => isWell,
    recovered() {
      isWell = true
    },
    waiting: queue.size,
    oldestWaitMs() {
      const groups = [...flights].map(({ group }) => oldestOf(group))
      return Math.max(0, now() - Math.min(queue.oldestSince(), ...groups))
    },
    waits,
    yieldToPings: () => whenIdle(MAX_YIELD_MS),
    async stop() {
      isStopping = true
      await whenIdle()
    },
  }
}

/** Whether the database stores pings, by the outcomes of a group; null when they show neither. */
function isWellAfter(outcomes: readonly PingOutcome[]): boolean | null {
  const isOut = (outcome: PingOutcome) =>
    typeof outcome !== 'string' && outcome.kind !== 'held' && outcome.kind !== 'rejected'
  if (outcomes.some(isOut)) return false
  return outcomes.includes('stored') || outcomes.includes('run_refused') ? true : null
}
