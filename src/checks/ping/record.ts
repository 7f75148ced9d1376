/**
 * Records pings in groups (design, section 10). Pings that arrive while a group commits form the next group; no ping waits for a group to fill,
 * and each gets its result when its own group has committed. While many wait, a second group is in flight on another connection, so that PostgreSQL
 * goes on while this process reads and writes. The two never hold pings of the same check: those keep their order.
 *
 * With a spool, a ping that the database does not store within two seconds is stored on disk, and so is each newer one until the database stores pings
 * again (read-back.ts); a client then gets its 200 all the same. A ping of a check whose older pings are on disk goes there too. A row that another
 * session holds is no outage: its pings are tried again for as long as they would wait for it without a spool, while other pings go on.
 *
 * Without a spool, a client must hear 503 within five seconds when the database hangs: a group is cut off, with its connection, when its oldest ping has
 * waited for four seconds. A ping that was certainly not written when its connection broke is sent once more, on another connection.
 */

import { startTimer } from '../../runtime/clock.ts'
import type { Session } from '../../store/postgres/database.ts'
import { createGroupCommitter, isDisconnected, type PendingPing, PING_LIMITS, SPOOL_LIMITS } from './commit.ts'
import { createHeldBack } from './held-back.ts'
import type { Ping, PingFailure, PingOutcome, PingResult } from './ping.ts'
import { createPingQueue, oldestOf } from './queue.ts'
import type { PingRecorder, PingRecorderOptions } from './recorder.ts'
import { type Spared, storeOnDisk } from './spare.ts'
import { createPingWaits } from './waits.ts'

export type { Ping, PingResult } from './ping.ts'
export type { PingRecorder } from './recorder.ts'

const MAX_YIELD_MS = 20

/** Pings that are still on disk so long after the database was available again do not keep deadlines waiting. */
const MAX_PENDING_MS = 600_000

/** What a connection waits for a row without a spool (LOCK_MS in store/postgres/database.ts). With one it waits less, and the pings are tried again. */
const MAX_HELD_MS = 1_500
const HELD_RETRY_MS = 100

/** So many must wait for a second group to start: smaller ones cost more than they save (docs/design/ping-path.md). */
const MIN_SECOND_GROUP = 24

/** With no answer for so long, a full queue goes to the disk: its pings need not wait until the groups in flight are cut off. Above SPOOL_LOCK_MS. */
const HUNG_MS = 600

/** A group in flight; empty before the first one and after the last one of a connection. */
interface Flight {
  isConnected: boolean
  /** The last answer of the database, or when the flight began. */
  answeredAt: number
  group: readonly QueuedPing[]
}

interface QueuedPing extends PendingPing {
  readonly isRetry: boolean
  readonly settle: (result: PingResult) => void
}

type SparedPing = QueuedPing & Spared

/** `commit` is for tests. */
export function createPingRecorder(
  options: PingRecorderOptions,
  commit = createGroupCommitter({ limits: options.spool ? SPOOL_LIMITS : PING_LIMITS, ...options }),
): PingRecorder {
  const { database, now, onError, spool = null } = options
  const { limits = spool === null ? PING_LIMITS : SPOOL_LIMITS } = options
  const queue = createPingQueue<QueuedPing>()
  const waits = createPingWaits(now)
  const flights = new Set<Flight>()
  let isWell = true
  /** Until the pings of rows that another session holds are tried again; null: that is now, or there are none. */
  let rest: Promise<void> | null = null
  /** Since when the database stores pings. */
  let wellSince = now()
  let isStopping = false
  const onIdle = new Set<() => void>()
  const heldBack = createHeldBack<QueuedPing>(spare, releaseHeldBack)
  let holding: Promise<void> = Promise.resolve()

  function record(ping: Ping, since = now()): Promise<PingResult> {
    return new Promise((settle) => {
      const pending = { ping, since, isRetry: false, settle }
      if (isStopping) settle('unavailable')
      else if (isToHoldBack(ping.publicId)) heldBack.keep(pending)
      else if (isForSpool(ping.publicId)) spare([...takeOlder(ping.publicId), pending])
      else enqueue(pending)
    })
  }

  function recover(): void {
    if (!isWell) wellSince = now()
    isWell = true
  }

  function enqueue(pending: QueuedPing): void {
    if (!queue.add(pending)) makeRoomFor(pending)
    else if (queue.isResting(pending.ping.publicId)) return
    else if (flights.size === 0 || (flights.size === 1 && queue.size() % MIN_SECOND_GROUP === 0 && hasConnection()))
      void fly()
  }

  /** A full queue. Beside a database that answers it is refused: the disk would take what the database has to take soon after. */
  function makeRoomFor(pending: QueuedPing): void {
    if (isHung()) beginSpooling(new Error(`the database has not answered for ${HUNG_MS} ms, and many pings wait`))
    if (isForSpool(pending.ping.publicId)) spare([...takeOlder(pending.ping.publicId), pending])
    else if (!queue.add(pending)) {
      onDisk()?.noteRefusal()
      pending.settle('unavailable')
    }
  }

  const isHung = () =>
    isWell && (onDisk()?.accepts() ?? false) && [...flights].every(({ answeredAt }) => now() - answeredAt >= HUNG_MS)

  function beginRest(): void {
    rest ??= new Promise<void>((resolve) => startTimer(HELD_RETRY_MS, resolve)).then(() => {
      rest = null
      if (areRested() && (flights.size === 0 || (flights.size === 1 && hasConnection()))) void fly()
    })
  }

  const areRested = () => rest === null && queue.resting() > 0

  /** Those that others of their check are held back before, too. */
  function isToHoldBack(publicId: string): boolean {
    return heldBack.has(publicId) || (heldBack.isOn() && !isSpoolInUse() && isForSpool(publicId))
  }

  function releaseHeldBack(pings: readonly QueuedPing[]): void {
    const behind = new Set(pings.filter(({ ping }) => isForSpool(ping.publicId)))
    if (behind.size > 0) spare([...behind])
    for (const pending of pings) if (!behind.has(pending)) enqueue(pending)
  }

  const hasConnection = () => [...flights].some(({ isConnected }) => isConnected)

  const isInFlight = (publicId: string) =>
    [...flights].some(({ group }) => group.some(({ ping }) => ping.publicId === publicId))

  const onDisk = () => spool?.pings() ?? null
  const isSpoolInUse = () => !isWell && (onDisk()?.accepts() ?? false)

  /**
   * Not while a group in flight has a ping of the check, which may be stored or not: the newer one must not come before it. An id that is not known has
   * no ping on disk, and the database says whether it names a check.
   */
  function isForSpool(publicId: string): boolean {
    return (isSpoolInUse() || isHeld(publicId)) && !isInFlight(publicId)
  }

  const isHeld = (publicId: string) => (onDisk()?.holds(publicId) ?? false) && spool!.isKnown(publicId)

  /** Whatever made the check's pings ones for the spool, those that wait come first. */
  function takeOlder(publicId: string): readonly QueuedPing[] {
    return areAnyWaiting() ? queue.takeAll(({ ping }) => ping.publicId === publicId) : []
  }

  const areAnyWaiting = () => queue.size() + queue.resting() > 0

  /** Spools these pings, and behind them what waits for the database and is for the spool now. */
  function spare(pings: readonly SparedPing[]): void {
    const { isKnown } = spool!
    const taken = new Set(pings.map(({ ping }) => ping.publicId))
    const isBehind = ({ ping: { publicId } }: QueuedPing) =>
      (isSpoolInUse() || taken.has(publicId)) && !isInFlight(publicId)
    const all: readonly SparedPing[] = areAnyWaiting() ? [...pings, ...queue.takeAll(isBehind)] : pings
    const known = all.filter(({ ping }) => isKnown(ping.publicId))
    for (const pending of all) if (!isKnown(pending.ping.publicId)) pending.settle('unconfirmed')
    if (known.length > 0) storeOnDisk(onDisk()!, known, giveUp)
  }

  /** From the first failure on. */
  function beginSpooling(error: unknown): void {
    const isFirst = isWell
    isWell = false
    if (!isSpoolInUse()) return
    if (isFirst) spool!.onBegin(error)
    spare([])
  }

  async function fly(): Promise<void> {
    const flight: Flight = { isConnected: false, answeredAt: now(), group: [] }
    flights.add(flight)
    do {
      try {
        await database.session((session) => {
          flight.isConnected = true
          flight.answeredAt = now()
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
        beginSpooling(error)
        if (queue.resting() > 0) beginRest()
        if (!areAnyWaiting()) continue
        const stale = queue.takeOlderThan(now() - limits.retryMs)
        // Without a connection a group fails at each attempt, or it would be tried for ever.
        giveUp(stale.length > 0 || wasConnected ? stale : queue.takeGroup(), error)
      }
      flight.isConnected = false
      // The other flight takes what waits now.
    } while (flights.size === 1 && (queue.size() > 0 || areRested()))
    flights.delete(flight)
    if (flights.size > 0) return
    for (const resolve of onIdle) resolve()
  }

  /** Resolves when nothing waits for this flight. Throws the error that broke the connection, once its group is settled. */
  async function commitAll(session: Session, flight: Flight): Promise<void> {
    let committing = commitNext(session, flight)
    while (flight.group.length > 0) {
      const outcomes = await committing
      flight.answeredAt = now()
      const { group } = flight
      const broken = outcomes.find(isDisconnected)
      // What is spooled must be on its way to the disk before newer pings of the same checks are sent, and these rest behind those of a held row.
      const isSettledFirst =
        (onDisk() !== null && outcomes.some(isOut)) || (spool !== null && outcomes.some(isOfHeldRow))
      // The next group is sent before the responses of this one are written: the database works while this process does.
      if (broken === undefined && !isSettledFirst) committing = commitNext(session, flight)
      else flight.group = []
      settle(group, outcomes)
      if (broken !== undefined) throw broken.error
      if (isSettledFirst) committing = commitNext(session, flight)
    }
  }

  function commitNext(session: Session, flight: Flight): Promise<readonly PingOutcome[]> {
    flight.group = []
    const other = [...flights].find(({ group }) => group.length > 0)
    if (areRested()) {
      flight.group = queue.takeRested(({ ping }) => !isInFlight(ping.publicId))
      // They must not keep others waiting for their rows again.
      if (flight.group.length > 0) return commit(session, flight.group, 'skip locked')
    }
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
    const held: QueuedPing[] = []
    const spared: SparedPing[] = []
    const errors = new Map<unknown, number>()
    const canSpare = onDisk()?.accepts() ?? false
    const areSpared = canSpare && outcomes.some(isOut)
    /** Of a group that was committed in parts, a newer ping of the check may be stored: this one must not come after it. */
    const isInOrder = ({ ping }: QueuedPing, index: number) =>
      !group.some(
        (newer, at) => at > index && typeof outcomes[at] === 'string' && newer.ping.publicId === ping.publicId,
      )
    for (const [index, pending] of group.entries()) {
      const outcome = outcomes[index]!
      if (typeof outcome === 'string') {
        pending.settle(outcome)
        waits.onSettled(pending.since)
      } else if (areSpared && (isOut(outcome) || isOfHeldRow(outcome)))
        spared.push({ ...pending, pingId: outcome.pingId ?? null })
      else if (isOfHeldRow(outcome) && mayWaitOn(pending) && isInOrder(pending, index)) held.push(pending)
      else if (outcome.kind === 'unsent' && !pending.isRetry) again.push({ ...pending, isRetry: true })
      else {
        if (outcome.kind !== 'held') errors.set(outcome.error, (errors.get(outcome.error) ?? 0) + 1)
        pending.settle('unavailable')
      }
    }
    queue.putBack(again)
    if (held.length > 0) {
      queue.rest(held)
      beginRest()
    }
    const isWellNow = isWellAfter(outcomes) ?? isWell
    if (spared.length > 0) spare(spared)
    if (isWellNow) recover()
    else beginSpooling(outcomes.find(isOut)?.error)
    for (const [error, pings] of errors) onError(error, pings)
  }

  const mayWaitOn = ({ since }: QueuedPing) => spool !== null && now() - since < MAX_HELD_MS

  function giveUp(group: readonly QueuedPing[], error: unknown): void {
    if (group.length > 0) {
      onError(error, group.length)
      onDisk()?.noteRefusal()
    }
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
    isSpooling: () => isSpoolInUse() || (onDisk()?.isEmpty() === false && now() - wellSince < MAX_PENDING_MS),
    recovered: recover,
    holdBack(work) {
      const held = heldBack.during(work)
      holding = held.catch(() => {})
      return held
    },
    waiting: () => queue.size() + queue.resting(),
    oldestWaitMs() {
      const groups = [...flights].map(({ group }) => oldestOf(group))
      return Math.max(0, now() - Math.min(queue.oldestSince(), ...groups))
    },
    waits,
    yieldToPings: () => whenIdle(MAX_YIELD_MS),
    async stop() {
      isStopping = true
      await holding
      await whenIdle()
      while (queue.resting() > 0) {
        await rest
        await whenIdle()
      }
      await onDisk()?.flushed()
    },
  }
}

function isOfHeldRow(outcome: PingOutcome): outcome is PingFailure {
  return typeof outcome !== 'string' && outcome.kind === 'held'
}

function isOut(outcome: PingOutcome): outcome is PingFailure {
  return typeof outcome !== 'string' && outcome.kind !== 'held' && outcome.kind !== 'rejected'
}

/** Whether the database stores pings, by the outcomes of a group; null when they show neither. */
function isWellAfter(outcomes: readonly PingOutcome[]): boolean | null {
  if (outcomes.some(isOut)) return false
  return outcomes.includes('stored') || outcomes.includes('run_refused') ? true : null
}
