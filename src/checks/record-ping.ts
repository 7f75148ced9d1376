/**
 * The ping path (design, section 10). Pings that arrive while a group commits form the next group; every ping is answered
 * when its own group has committed, the next group going out first. Nobody waits for a group to fill.
 *
 * One group is in flight at a time, and a second one on a connection of its own while many wait. Never do both hold pings of
 * the same check: they keep their order. A group ends by its commit, or is cut off with its connection when its oldest ping
 * has waited for four seconds: a client must hear 503 within five, and try again, rather than hang on a database that does.
 * stop() lets everything that was accepted finish.
 */

import { startTimer } from '../runtime/clock.ts'
import type { Database, Session } from '../store/database.ts'
import {
  createPingCommitter,
  type Flight,
  type PendingPing,
  type Ping,
  type PingCommitterOptions,
  type PingResult,
} from './commit-pings.ts'

export type { Ping, PingResult } from './commit-pings.ts'

export interface PingRecorder {
  record(ping: Ping): Promise<PingResult>
  /** False from a group that failed until one commits, or `recovered()` is called: the service could not take pings. */
  isWell(): boolean
  recovered(): void
  waiting(): number
  /** How long the oldest waiting ping waits, in milliseconds. */
  oldestWaitMs(): number
  /** Resolves when no ping waits and none is on its way to the database, or after `longestMs`. */
  whenIdle(longestMs?: number): Promise<void>
  stop(): Promise<void>
}

export interface PingRecorderOptions extends Omit<PingCommitterOptions, 'onHealth'> {
  /** A pipelined pool of its own, so that management can never take the connection that pings need. */
  readonly database: Database
}

const LARGEST_GROUP = 500
/** So many must wait for a second group to begin beside the first: smaller ones cost more than they save (docs/benchmarks.md). */
const WAITING_FOR_SECOND = 24
/** Beyond it new pings are refused, which bounds the memory that a burst can take (each may hold a body of 10 KB). */
const MOST_WAITING = 20_000
/** Older ones are given up when a connection fails: opening the next may take CONNECT_MS, and then comes the shortest budget. */
const LONGEST_RETRY_MS = 2_500

interface Waiting extends PendingPing {
  readonly settle: (result: PingResult) => void
}

/** One group at a time, on a connection of its own. */
interface Lane extends Flight {
  /** It begins a group only when so many wait. */
  readonly least: number
  /** What is on its way. */
  group: readonly Waiting[]
  running: Promise<void> | undefined
}

const createLane = (least: number): Lane => ({ least, group: [], isWriting: false, running: undefined })

export function createPingRecorder(options: PingRecorderOptions): PingRecorder {
  const { database, now, onError } = options
  const commit = createPingCommitter({
    ...options,
    onHealth: (healthy) => {
      isWell = healthy
    },
  })
  let waiting: Waiting[] = []
  const lanes = [createLane(1), createLane(WAITING_FOR_SECOND)] as const
  /** Who waits for the end of all work. */
  const idlers = new Set<() => void>()
  let isWell = true
  let isStopping = false

  function record(ping: Ping): Promise<PingResult> {
    if (isStopping || waiting.length >= MOST_WAITING) return Promise.resolve('unavailable')
    return new Promise((settle) => {
      waiting.push({ ping, since: now(), settle, key: undefined, result: undefined })
      const isFirstIdle =
        lanes[0].running === undefined && !lanes[1].group.some((entry) => entry.ping.publicId === ping.publicId)
      if (isFirstIdle || waiting.length % WAITING_FOR_SECOND === 0) start(lanes)
    })
  }

  function start(which: readonly Lane[]): void {
    for (const lane of which) if (lane.running === undefined && canTake(lane)) lane.running = run(lane)
  }

  async function run(lane: Lane): Promise<void> {
    const outcome = await drain(lane)
    lane.running = undefined
    // What one left is the other's, which may have found nothing to take while this one had its checks.
    start(outcome === 'no connection' ? [otherOf(lane)] : lanes)
    if (isIdle()) for (const tell of idlers) tell()
  }

  /** `no connection`: to none, while the other lane has one that works and goes on with it. */
  async function drain(lane: Lane): Promise<'done' | 'no connection'> {
    let isRetry = false
    while (canTake(lane)) {
      try {
        await database.session(async (session) => {
          let committing = begin(session, lane)
          while (committing !== null) {
            const results = await committing
            const done = lane.group
            // On the wire before the answers of the last one are written: the database works while this process does.
            committing = begin(session, lane)
            answer(done, results)
          }
        })
        isRetry = false
      } catch (error) {
        if (lane.group.length === 0 && otherOf(lane).group.length > 0) return 'no connection'
        // No connection, or one that broke. A group of which nothing was written yet gets another connection, once.
        isWell = false
        const { group } = lane
        lane.group = []
        const mayRetry: boolean = group.length > 0 && !lane.isWriting && !isRetry
        if (mayRetry) waiting = [...group, ...waiting]
        const stale = takeStale()
        isRetry = mayRetry && stale.length < group.length
        const given = mayRetry ? stale : [...group, ...stale]
        // Where not even a connection was to be had, some must be told, or they would be tried for ever.
        if (given.length === 0 && !mayRetry) given.push(...takeGroup(lane))
        const lost = given.filter(({ result }) => result === undefined).length
        if (lost > 0) onError(error, lost)
        for (const { settle, result = 'unavailable' } of given) settle(result)
      }
    }
    return 'done'
  }

  /** Null: there is nothing for this lane. */
  function begin(session: Session, lane: Lane): Promise<PingResult[]> | null {
    lane.group = takeGroup(lane)
    lane.isWriting = false
    return lane.group.length === 0 ? null : commit(session, lane, lane.group)
  }

  function canTake(lane: Lane): boolean {
    if (waiting.length < lane.least) return false
    const taken = idsOfOther(lane)
    return taken.size === 0 || waiting.some(({ ping }) => !taken.has(ping.publicId))
  }

  function takeGroup(lane: Lane): Waiting[] {
    if (waiting.length < lane.least) return []
    const taken = idsOfOther(lane)
    const group: Waiting[] = []
    const left: Waiting[] = []
    for (const entry of waiting) {
      const isFree = group.length < LARGEST_GROUP && !taken.has(entry.ping.publicId)
      const line = isFree ? group : left
      line.push(entry)
    }
    waiting = left
    return group
  }

  /** Whose pings wait for the other lane's to be committed. */
  function idsOfOther(lane: Lane): Set<string> {
    return new Set(otherOf(lane).group.map(({ ping }) => ping.publicId))
  }

  function otherOf(lane: Lane): Lane {
    return lane === lanes[0] ? lanes[1] : lanes[0]
  }

  /** Those that cannot wait for yet another connection. */
  function takeStale(): Waiting[] {
    const oldest = now() - LONGEST_RETRY_MS
    const stale = waiting.filter((entry) => entry.since < oldest)
    if (stale.length > 0) waiting = waiting.filter((entry) => entry.since >= oldest)
    return stale
  }

  function answer(group: readonly Waiting[], results: readonly PingResult[]): void {
    for (let i = 0; i < group.length; i += 1) group[i]!.settle(results[i]!)
  }

  function isIdle(): boolean {
    return lanes.every((lane) => lane.running === undefined)
  }

  /** Nobody is left in the list who has ceased to wait. */
  function whenIdle(longestMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (isIdle()) return Promise.resolve()
    return new Promise((resolve) => {
      const stopTimer = startTimer(longestMs, () => tell())
      const tell = () => {
        idlers.delete(tell)
        stopTimer()
        resolve()
      }
      idlers.add(tell)
    })
  }

  return {
    record,
    isWell: () => isWell,
    recovered: () => {
      isWell = true
    },
    waiting: () => waiting.length,
    // What was put back for another try may be younger than what stayed.
    oldestWaitMs: () => waiting.reduce((longest, entry) => Math.max(longest, now() - entry.since), 0),
    whenIdle,
    async stop() {
      isStopping = true
      await whenIdle()
    },
  }
}
