/**
 * Records pings (design, section 10). The recorder has one mode at a time:
 *
 * - direct: pings queue. One group at a time is committed; the pings that arrive meanwhile are the next group. A group
 *   that the database does not store in two seconds goes to the disk, and the queue behind it: spooling.
 * - spooling: each ping of a known check goes to the disk. The read-back (read-back.ts) records what is there, from the
 *   oldest ping on. When few are left, it drains.
 * - draining: pings queue, for a second and a half at most, while the read-back records the rest. Then: direct.
 *
 * So all pings of a process have one order, on the disk and in the queue. What a process before this one left on its
 * disk comes first. While the disk takes no pings, all pings queue in each mode.
 */

import { pause, startTimer } from '../../runtime/clock.ts'
import type { Session } from '../../store/postgres/database.ts'
import { type CommitOptions, createGroupCommitter, type GroupLimits, PING_LIMITS, SPOOL_LIMITS } from './commit.ts'
import { createDisk, type RecorderSpool, type Unstored } from './disk.ts'
import { isDisconnected, isLockedElsewhere, isOut, type Sent, sortOutcomes } from './outcomes.ts'
import type { Ping, PingOutcome, PingResult } from './ping.ts'
import { createPingQueue, oldestOf } from './queue.ts'

export type { Ping, PingResult } from './ping.ts'

export type PingRecorder = ReturnType<typeof createPingRecorder>

export interface PingRecorderOptions extends CommitOptions {
  /** These pings are lost, as far as is known. */
  readonly onError: (error: unknown, pings: number) => void
  /** Null: none. */
  readonly spool?: RecorderSpool | null
  /** For tests. `spool`: while the disk takes pings. */
  readonly limits?: { readonly alone: GroupLimits; readonly spool: GroupLimits }
}

type QueuedPing = Sent & Unstored

const LIMITS = { alone: PING_LIMITS, spool: SPOOL_LIMITS }
const MAX_YIELD_MS = 20
const PAUSE_MS = 1_000
const MAX_PENDING_MS = 600_000
/** The database may have gone away again while the last pings on disk are recorded. */
const MAX_DRAIN_MS = 1_500
/** When all that waits are pings whose rows another session has locked. */
const LOCKED_RETRY_MS = 50

/** `commit` is for tests. */
export function createPingRecorder(options: PingRecorderOptions, commit = createGroupCommitter(options)) {
  const { database, now, onError, spool = null, limits: both = LIMITS } = options
  const queue = createPingQueue<QueuedPing>()
  let kept: 'direct' | 'spooling' | 'draining' = 'direct'
  /** A connection is in use. */
  let isFlying = false
  /** The group that is being committed. */
  let flying: readonly QueuedPing[] = []
  let draining: Promise<void> = Promise.resolve()
  let isWell = true
  /** Since when the database stores pings. */
  let wellSince = now()
  let pingedAt = Number.NEGATIVE_INFINITY
  let isStopping = false
  const onIdle = new Set<() => void>()

  const disk = createDisk(spool, giveUp)
  /** A disk that takes no pings is the same as none. */
  const limits = () => (disk.takes() ? both.spool : both.alone)

  function mode(): typeof kept {
    if (!disk.isOpen()) kept = 'direct'
    else if (kept === 'direct' && disk.isBehind()) kept = 'spooling'
    return kept
  }

  /** `since`: when it began to wait, where its check had to be looked up first. Default: now. */
  function record(ping: Ping, since = now()): Promise<PingResult> {
    pingedAt = now()
    return new Promise((settle) => {
      if (isStopping) settle('unavailable')
      else take({ ping, since, isRetry: false, isLocked: false, pingId: null, settle })
    })
  }

  function take(pending: QueuedPing): void {
    const isForDisk = mode() === 'spooling' && disk.takes()
    // While the database is available, it says whether an id that is not known names a check.
    if (isForDisk && (!isWell || disk.isKnown(pending.ping.publicId))) disk.append([pending])
    else if (queue.add(pending)) fly()
    else if (mode() === 'draining') {
      endDraining()
      take(pending)
    } else {
      disk.noteRefusal()
      pending.settle('unavailable')
    }
  }

  // The mode -------------------------------------------------------------------------------------------------------

  /** The database has not stored `failed`, whose pings are older than those of the queue. */
  function beginSpooling(failed: readonly QueuedPing[], error: unknown): void {
    isWell = false
    if (!disk.mayTake()) {
      giveUp(failed, error)
      return
    }
    if (mode() === 'direct') disk.onBegin(error)
    kept = 'spooling'
    // Where the disk is full, what waits goes on waiting for the database.
    disk.append(disk.takes() ? [...failed, ...queue.takeAll()] : failed)
  }

  /** New pings queue while `work` records the last ones on disk. */
  function drain(work: () => Promise<void>): Promise<void> {
    if (mode() === 'spooling') kept = 'draining'
    const stopTimer = startTimer(MAX_DRAIN_MS, endDraining)
    const done = work().finally(() => {
      stopTimer()
      endDraining()
    })
    draining = done.catch(() => {})
    return done
  }

  function endDraining(): void {
    if (kept !== 'draining') return
    kept = disk.isBehind() ? 'spooling' : 'direct'
    if (kept === 'spooling') for (const pending of queue.takeAll()) take(pending)
    else fly()
  }

  // The database ---------------------------------------------------------------------------------------------------

  function fly(): void {
    if (!isFlying && queue.size() > 0 && kept !== 'draining') void flyOn()
  }

  async function flyOn(): Promise<void> {
    isFlying = true
    do {
      let isConnected = false
      try {
        await database.session((session) => {
          isConnected = true
          return commitAll(session)
        })
      } catch (error) {
        // Nothing in flight where a connection broke; a fault of the commit itself leaves its group here.
        giveUp(flying, error)
        flying = []
        onBroken(error, isConnected)
      }
    } while (queue.size() > 0 && kept !== 'draining')
    isFlying = false
    for (const resolve of onIdle) resolve()
  }

  function onBroken(error: unknown, wasConnected: boolean): void {
    const { retryMs } = limits()
    beginSpooling([], error)
    const stale = queue.takeOlderThan(now() - retryMs)
    // Without a connection a group fails at each attempt, or it would be tried for ever.
    const left = stale.length > 0 || wasConnected ? stale : queue.takeGroup()
    if (disk.mayTake()) disk.append(left)
    else giveUp(left, error)
  }

  /** Resolves when nothing waits. Throws the error that broke the connection, once its group is settled. */
  async function commitAll(session: Session): Promise<void> {
    let committing = commitNext(session)
    while (flying.length > 0) {
      const outcomes = await committing
      const group = flying
      flying = []
      const broken = outcomes.find(isDisconnected)
      // What is not stored goes to the disk, or before newer pings, before these are sent.
      const isSettledFirst = outcomes.some((outcome) => isOut(outcome) || isLockedElsewhere(outcome))
      // The next group is sent before the responses of this one are written: the database works while this process does.
      if (!isSettledFirst) committing = commitNext(session)
      settle(group, outcomes)
      if (broken !== undefined) throw broken.error
      if (!isSettledFirst) continue
      const { entries } = queue
      if (entries().length > 0 && entries().every(({ isLocked }) => isLocked)) await pause(LOCKED_RETRY_MS)
      committing = commitNext(session)
    }
  }

  function commitNext(session: Session): Promise<readonly PingOutcome[]> {
    flying = kept === 'draining' ? [] : queue.takeGroup()
    if (flying.length === 0) return Promise.resolve([])
    const wait = flying.some(({ isLocked }) => isLocked) ? 'skip locked' : 'wait'
    return commit(session, flying, { limits: limits(), wait })
  }

  function settle(group: readonly QueuedPing[], outcomes: readonly PingOutcome[]): void {
    const out = outcomes.find(isOut)
    const isForDisk = out !== undefined && disk.mayTake()
    const { settled, unstored, again, errors } = sortOutcomes(group, outcomes, {
      isForDisk,
      hasRoom: disk.takes(),
      now: now(),
    })
    for (const [{ settle }, result] of settled) settle(result)
    queue.putBack(again)
    if (out !== undefined) beginSpooling(unstored, out.error)
    else if (outcomes.includes('stored') || outcomes.includes('run_refused')) recovered()
    for (const [error, pings] of errors) onError(error, pings)
  }

  function giveUp(group: readonly Unstored[], error: unknown): void {
    if (group.length === 0) return
    onError(error, group.length)
    disk.noteRefusal()
    for (const { settle } of group) settle('unavailable')
  }

  const unsettled = () => [...flying, ...queue.entries()]

  function recovered(): void {
    if (!isWell) wellSince = now()
    isWell = true
  }

  /** `longestMs`: undefined for no limit. */
  function whenIdle(longestMs?: number): Promise<void> {
    if (!isFlying) return Promise.resolve()
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
    /** False from a group that the database failed to store until it stores a ping, or until `recovered()`. */
    isWell: () => isWell,
    /**
     * Whether pings are stored on disk, or wait there: what is recorded may lack pings that came in before. False again
     * when pings are still there ten minutes after the database was available again: deadlines do not wait for ever.
     */
    isSpooling: () => mode() !== 'direct' && (!isWell || now() - wellSince < MAX_PENDING_MS),
    recovered,
    drain,
    waiting: queue.size,
    /**
     * How long the oldest ping without a result has waited, in milliseconds; also one whose group is in flight. Without
     * pings whose rows another session has locked: only the deadlines of their own checks wait.
     */
    oldestWaitMs: () => Math.max(0, now() - oldestOf(unsettled().filter(({ isLocked }) => !isLocked))),
    /** The public ids of the checks whose pings wait here for their rows, which another session has locked. */
    lockedIds: (): readonly string[] => unsettled().flatMap(({ isLocked, ping }) => (isLocked ? [ping.publicId] : [])),
    /** Whether a ping came in within the last second. */
    arePings: () => now() - pingedAt < PAUSE_MS,
    /** Resolves when no ping waits and no group is in flight, after 20 ms at the latest: for background work. */
    yieldToPings: () => whenIdle(MAX_YIELD_MS),
    /** Rejects new pings, and resolves when no other ping waits for the database. The spool waits for its own. */
    async stop(): Promise<void> {
      isStopping = true
      await draining
      await whenIdle()
    },
  }
}
