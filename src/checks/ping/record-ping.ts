/**
 * The ping path (design, section 10). Pings that arrive while a group commits form the next group; every ping is answered
 * when its own group has committed, the next group going out first. Nobody waits for a group to fill.
 *
 * One group is on its way at a time, and a second one behind it on the same connection while many wait, so that the database goes
 * on from one to the next while this process writes and reads. Never do both hold pings of the same check: they keep their
 * order. A group ends by its commit, or is cut off with the connection when its oldest ping has waited for four seconds: a
 * client must hear 503 within five, and try again, rather than hang on a database that does. stop() lets everything that was
 * accepted finish.
 */

import { startTimer } from '../../runtime/clock.ts'
import type { Database, Session } from '../../store/postgres/database.ts'
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
  /** How long the oldest ping without an answer waits, in milliseconds: also one whose group is on its way. */
  oldestWaitMs(): number
  /** Resolves when no ping waits and none is on its way to the database, after 20 ms at the latest: for work that pings come before. */
  yieldToPings(): Promise<void>
  stop(): Promise<void>
}

export interface PingRecorderOptions extends Omit<PingCommitterOptions, 'onHealth'> {
  /** A pipelined pool of its own, so that management can never take the connection that pings need. */
  readonly database: Database
}

const LARGEST_GROUP = 500
/** So many must wait for a second group to go out behind the first: smaller ones cost more than they save (docs/benchmarks.md). */
const WAITING_FOR_SECOND = 24
/** Beyond it new pings are refused, which bounds the memory that a burst can take (each may hold a body of 10 KB). */
const MOST_WAITING = 20_000
/** While pings never rest, other work is slower but not stopped. */
const MAX_YIELD_MS = 20
/** Older ones are given up when a connection fails: opening the next may take CONNECT_MS, and then comes the shortest budget. */
const LONGEST_RETRY_MS = 2_500

interface Waiting extends PendingPing {
  readonly settle: (result: PingResult) => void
}

/** A place for a group on its way; empty where there is none. */
interface Lane extends Flight {
  group: readonly Waiting[]
}

const createLane = (): Lane => ({ group: [], isWriting: false })

export function createPingRecorder(options: PingRecorderOptions): PingRecorder {
  const { database, now, onError } = options
  const { commit, keyOf } = createPingCommitter({
    ...options,
    onHealth: (healthy) => {
      isWell = healthy
    },
  })
  let waiting: Waiting[] = []
  const lanes = [createLane(), createLane()] as const
  let isRunning = false
  /** Sends what may go out, while a connection is open. */
  let dispatch: (() => void) | undefined
  /** The groups of a connection that broke were given another one, and none has committed since. */
  let isRetry = false
  /** Who waits for the end of all work. */
  const idlers = new Set<() => void>()
  let isWell = true
  let isStopping = false

  function record(ping: Ping): Promise<PingResult> {
    if (isStopping || waiting.length >= MOST_WAITING) return Promise.resolve('unavailable')
    return new Promise((settle) => {
      waiting.push({ ping, since: now(), settle, key: keyOf(ping.publicId), result: undefined })
      if (!isRunning) void run()
      else if (waiting.length % WAITING_FOR_SECOND === 0) dispatch?.()
    })
  }

  async function run(): Promise<void> {
    isRunning = true
    while (waiting.length > 0) {
      try {
        await database.session(drain)
      } catch (error) {
        giveUp(error)
      }
    }
    isRunning = false
    for (const tell of idlers) tell()
  }

  /** Until nothing waits and nothing is on its way. Throws what broke the connection, once no group has anything more to hope of it. */
  async function drain(session: Session): Promise<void> {
    const failures: unknown[] = []
    /** Begins with one for the first look. */
    let flights = 1

    async function fly(lane: Lane, first: Promise<PingResult[]>): Promise<void> {
      let committing: Promise<PingResult[]> | null = first
      while (committing !== null) {
        const results = await committing
        isRetry = false
        const done = lane.group
        // On the wire before the answers of the last one are written: the database works while this process does.
        committing = begin(lane)
        answer(done, results)
      }
    }

    /** Null: there is nothing for this lane. */
    function begin(lane: Lane): Promise<PingResult[]> | null {
      lane.group = failures.length > 0 ? [] : takeGroup(lane)
      lane.isWriting = false
      return lane.group.length === 0 ? null : commit(session, lane, lane.group)
    }

    await new Promise<void>((landed) => {
      const end = () => {
        flights -= 1
        if (flights > 0) return
        dispatch = undefined
        landed()
      }
      dispatch = () => {
        for (const lane of lanes) {
          const first = lane.group.length > 0 ? null : begin(lane)
          if (first === null) continue
          flights += 1
          fly(lane, first)
            .catch((error) => failures.push(error))
            .finally(end)
        }
      }
      dispatch()
      end()
    })
    if (failures.length > 0) throw failures[0]
  }

  /** There is no connection, or one broke. Groups of which nothing was written yet get another one, once. */
  function giveUp(error: unknown): void {
    isWell = false
    const mayRetry = (lane: Lane) => !lane.isWriting && !isRetry
    const again = lanes.filter(mayRetry).flatMap(({ group }) => group)
    const given = lanes.filter((lane) => !mayRetry(lane)).flatMap(({ group }) => group)
    for (const lane of lanes) lane.group = []
    waiting = [...again, ...waiting]
    const stale = takeStale()
    given.push(...stale)
    isRetry = again.length > 0 && stale.length < again.length
    // Where not even a connection was to be had, some must be told, or they would be tried for ever.
    if (given.length === 0 && again.length === 0) given.push(...takeGroup(lanes[0]))
    const lost = given.filter(({ result }) => result === undefined).length
    if (lost > 0) onError(error, lost)
    for (const { settle, result = 'unavailable' } of given) settle(result)
  }

  function takeGroup(lane: Lane): readonly Waiting[] {
    const ahead = (lane === lanes[0] ? lanes[1] : lanes[0]).group
    if (ahead.length === 0) return waiting.splice(0, LARGEST_GROUP)
    if (waiting.length < WAITING_FOR_SECOND) return []
    const isTaken = isOneOf(ahead)
    const group: Waiting[] = []
    const left: Waiting[] = []
    for (const entry of waiting) {
      const isFree = group.length < LARGEST_GROUP && !isTaken(entry)
      const line = isFree ? group : left
      line.push(entry)
    }
    // Most wait for a check of the group ahead: the others go with them, rather than as a group of a few.
    if (group.length < WAITING_FOR_SECOND / 2) return []
    waiting = left
    return group
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

  /** Nobody is left in the list who has ceased to wait. */
  function whenIdle(longestMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (!isRunning) return Promise.resolve()
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
    oldestWaitMs() {
      // What was put back for another try may be younger than what stayed.
      const unanswered = [...lanes.flatMap(({ group }) => group), ...waiting]
      return unanswered.reduce((longest, entry) => Math.max(longest, now() - entry.since), 0)
    },
    yieldToPings: () => whenIdle(MAX_YIELD_MS),
    async stop() {
      isStopping = true
      await whenIdle()
    },
  }
}

/** Whether the group holds a ping of the same check: by keys, which cost a tenth of what ids do, where a check is known. */
function isOneOf(group: readonly Waiting[]): (entry: Waiting) => boolean {
  const keys = new Set(group.map(({ key }) => key))
  let publicIds: Set<string> | undefined
  return ({ key, ping: { publicId } }) => {
    if (key !== undefined && !keys.has(undefined)) return keys.has(key)
    publicIds ??= new Set(group.map(({ ping }) => ping.publicId))
    return publicIds.has(publicId)
  }
}
