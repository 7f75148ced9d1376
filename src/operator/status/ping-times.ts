/**
 * When `status.lastPingTime` is written: together with another change of the status, or alone at most every max(60 s, half the
 * interval of the job), and for all resources together five times a second, the oldest time first. A job that pings each
 * minute would otherwise cost a write of etcd each minute, which goes to every watcher too.
 *
 * The same turns are for a job that became late, or is on time again: that is no flip, and a job that needs some seconds after its slot
 * is late in each interval. Every second turn is for these, so that neither kind waits for all of the other.
 *
 * A poll offers what is due. Each resource gets a turn, 200 ms after the last one. Its next reconcile takes the turn, whatever it finds, and
 * ends it, whether it succeeds or not: a turn that nothing ends would keep the others waiting.
 */

import type { Instant } from '../../domain/check.ts'
import { parseCron } from '../../domain/cron.ts'
import { intervalMsOf } from '../../domain/schedule.ts'
import type { Clock } from '../../runtime/clock.ts'
import { createRate } from '../../runtime/rate.ts'

export interface PingTimes {
  /** Replaces what was offered before. Turns that were not taken since then end. */
  offer(due: readonly DuePingTime[]): void
  /** Offers one more, until the next offer(): behind those of before, unless there are too many. */
  add(due: DuePingTime): void
  /** Whether the reconcile that begins may write the status of this resource for a minor change alone. Call end() after it. */
  take(key: string): boolean
  /** The reconcile has ended: its turn, if it had one, is over. */
  end(key: string): void
  /** Resolves when no more turns are given. */
  stop(): Promise<void>
}

export interface DuePingTime {
  readonly key: string
  /** The time that the status shows; null: none, or something else is to be shown. */
  readonly shownAt: Instant | null
  /** Only for a job that became late or is on time again: since when. */
  readonly turnedAt?: Instant
}

export interface PingTimesOptions {
  readonly clock: Clock
  /** Returns false when the resource cannot be reconciled now: its turn goes to the next one. */
  readonly enqueue: (key: string) => boolean
}

const PER_SECOND = 5
/** More turns than this are not open at once: they would be taken together when a stalled API server goes on. */
const MAX_OPEN = 5
/** More than can have a turn until the next poll. */
const MAX_OFFERED = 500

export function createPingTimes({ clock, enqueue }: PingTimesOptions): PingTimes {
  const stopping = new AbortController()
  const rate = createRate(clock, PER_SECOND)
  /** Turns that wait for their reconciles. */
  const open = new Set<string>()
  /** Turns of reconciles in progress. */
  const taken = new Set<string>()
  /** The kind that is next comes first. */
  let offered: [readonly DuePingTime[], readonly DuePingTime[]] = [[], []]
  let isRunning = false
  let running: Promise<void> | undefined

  function begin(): void {
    if (isRunning || stopping.signal.aborted) return
    isRunning = true
    running = giveTurns()
  }

  async function giveTurns(): Promise<void> {
    while (offered.some(({ length }) => length > 0) && !stopping.signal.aborted) {
      await rate.take(stopping.signal)
      if (open.size + taken.size < MAX_OPEN && !stopping.signal.aborted) giveNext()
    }
    isRunning = false
  }

  function giveNext(): void {
    for (;;) {
      const [first, second] = offered
      const [next, ...rest] = first.length > 0 ? first : second
      if (next === undefined) return
      offered = first.length > 0 ? [second, rest] : [first, rest]
      open.add(next.key)
      if (enqueue(next.key)) return
      open.delete(next.key)
    }
  }

  return {
    offer(due) {
      open.clear()
      const oldest = (changes: readonly DuePingTime[]) =>
        changes.toSorted((a, b) => ageOf(a) - ageOf(b)).slice(0, MAX_OFFERED)
      offered = [oldest(due.filter(isTurn)), oldest(due.filter((change) => !isTurn(change)))]
      begin()
    },
    add(due) {
      const [first, second] = offered
      const isOffered = offered.some((changes) => changes.some(({ key }) => key === due.key))
      if (isOffered || open.has(due.key) || second.length >= MAX_OFFERED) return
      offered = [first, [...second, due]]
      begin()
    },
    take(key) {
      const hasTurn = open.delete(key)
      if (hasTurn) taken.add(key)
      return hasTurn
    },
    end: (key) => void taken.delete(key),
    async stop() {
      stopping.abort()
      await running
    },
  }
}

const isTurn = ({ turnedAt }: DuePingTime) => turnedAt !== undefined
const ageOf = ({ shownAt, turnedAt }: DuePingTime) => turnedAt ?? shownAt ?? Number.NEGATIVE_INFINITY

/** What decides about the interval of a job, of a specification or of a HeartbeatCheck. */
export interface Interval {
  readonly periodSeconds?: number | null | undefined
  readonly schedule?: string | null | undefined
  readonly timeZone?: string | null | undefined
}

/** Whether `lastPingTime`, as shown, may be replaced alone. */
export function isPingTimeDue(shownAt: Instant | null, at: Instant, job: Interval): boolean {
  if (shownAt === null) return true
  const sinceMs = Math.abs(at - shownAt)
  return sinceMs >= LAST_PING_STEP_MS && sinceMs >= intervalMs(job) / 2
}

/** The time of the last ping follows pings at most this often. */
export const LAST_PING_STEP_MS = 60_000
const MAX_SCHEDULES = 1_000
/** A poll compares thousands of resources, most of them with one of a few schedules. */
const intervals = new Map<string, number>()

/** 0 when it has none. */
function intervalMs({ periodSeconds, schedule, timeZone }: Interval): number {
  if (periodSeconds != null) return periodSeconds * 1_000
  if (schedule == null) return 0
  const id = `${timeZone ?? 'UTC'} ${schedule}`
  const known = intervals.get(id)
  if (known !== undefined) return known
  const ms = parseInterval(schedule, timeZone ?? 'UTC')
  intervals.set(id, ms)
  if (intervals.size > MAX_SCHEDULES) intervals.delete(intervals.keys().next().value!)
  return ms
}

function parseInterval(schedule: string, timeZone: string): number {
  try {
    return intervalMsOf({ kind: 'cron', cron: parseCron(schedule, timeZone, 'kubernetes') })
  } catch {
    // A specification that is not valid is not in effect.
    return 0
  }
}
