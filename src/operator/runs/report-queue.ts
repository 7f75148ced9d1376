/**
 * What waits to be recorded, in the order of its coming; what is newer of the same run replaces what is older, and has its own place: behind
 * what other runs reported in between. Bounded: above its limit nothing is taken, and the caller finds it again in the caches.
 */

import type { JobReport } from '../../checks/jobs/job-report.ts'
import { keyOf } from '../../kubernetes/objects.ts'

export interface ReportQueue {
  /** Returns false when it is full. */
  add(report: JobReport): boolean
  /** Whether a report of this id waits, and is not taken. */
  has(id: string): boolean
  /** The oldest that are not paused, at most `count`; they count as waiting until done() or again(). */
  take(count: number, now: number): readonly Waiting[]
  done(taken: readonly Waiting[]): void
  /** They wait again, before all others, but for those that a newer report of the same run replaces. `isCounted`: the attempt has failed. */
  again(taken: readonly Waiting[], isCounted: boolean): void
  /** No report of this HeartbeatCheck is taken for a while. */
  pause(resource: JobReport['resource'], pause: Pause): void
  /** Ends all pauses. */
  resume(): void
  /** When a pause ends first. Null: there is none. */
  resumesAt(): number | null
  /** Whether there is something to take. */
  hasWork(now: number): boolean
  isEmpty(): boolean
  /** Resolves when all that waits at the call is recorded, but for what is not awaited. */
  whenDrained(): Promise<void>
}

export interface Waiting {
  readonly report: JobReport
  readonly order: number
  /** How many attempts have failed. */
  readonly failures: number
}

export interface Pause {
  readonly until: number
  /** Whether whenDrained() waits for its reports. */
  readonly isAwaited: boolean
}

/** A report without a text is about 300 bytes. */
const BYTES_OF_ONE = 500
/** Of reports without texts; some 20 MB in all. */
const MAX_WEIGHT = 40_000

export function createReportQueue(maxWeight = MAX_WEIGHT): ReportQueue {
  // Those of again() come first. An `order` is that of the first report of its run: whenDrained() waits for what replaces it.
  const waiting = new Map<string, Waiting>()
  const first = new Map<string, Waiting>()
  const taken = new Set<Waiting>()
  /** By the key of the HeartbeatCheck. */
  const pauses = new Map<string, Pause>()
  const drained = new Set<{ readonly order: number; readonly resolve: () => void }>()
  let weight = 0
  let lastOrder = 0

  const pauseOf = ({ report }: Waiting) => (pauses.size === 0 ? undefined : pauses.get(keyOf(report.resource)))
  const isAwaited = (one: Waiting) => pauseOf(one)?.isAwaited !== false

  function endPauses(now: number): void {
    for (const [key, { until }] of pauses) if (until <= now) pauses.delete(key)
  }

  function oldest(): number {
    let order = Number.POSITIVE_INFINITY
    for (const one of taken) order = Math.min(order, one.order)
    for (const one of first.values()) if (isAwaited(one)) order = Math.min(order, one.order)
    for (const one of waiting.values()) if (isAwaited(one)) order = Math.min(order, one.order)
    return order
  }

  function settle(): void {
    if (drained.size === 0) return
    const order = oldest()
    for (const waiter of drained) {
      if (waiter.order >= order) continue
      drained.delete(waiter)
      waiter.resolve()
    }
  }

  return {
    add(report) {
      const key = idOf(report)
      const older = first.get(key) ?? waiting.get(key)
      const added = weightOf(report) - (older === undefined ? 0 : weightOf(older.report))
      if (weight + added > maxWeight) return false
      weight += added
      if (older === undefined) lastOrder += 1
      first.delete(key)
      waiting.delete(key)
      waiting.set(key, { report, order: older?.order ?? lastOrder, failures: 0 })
      return true
    },
    has: (id) => first.has(id) || waiting.has(id),
    take(count, now) {
      endPauses(now)
      const found: Waiting[] = []
      for (const line of [first, waiting]) {
        for (const [key, one] of line) {
          if (found.length >= count) return found
          if (pauseOf(one) !== undefined) continue
          line.delete(key)
          found.push(one)
          taken.add(one)
        }
      }
      return found
    },
    done(ended) {
      for (const one of ended) {
        taken.delete(one)
        weight -= weightOf(one.report)
      }
      settle()
    },
    again(ended, isCounted) {
      for (const one of ended) {
        taken.delete(one)
        const key = idOf(one.report)
        const newer = waiting.get(key)
        if (newer === undefined) first.set(key, isCounted ? { ...one, failures: one.failures + 1 } : one)
        else {
          weight -= weightOf(one.report)
          waiting.set(key, { ...newer, order: one.order })
        }
      }
      settle()
    },
    pause(resource, pause) {
      pauses.set(keyOf(resource), pause)
      settle()
    },
    resume() {
      pauses.clear()
    },
    resumesAt() {
      const times = [...pauses.values()].map(({ until }) => until)
      return times.length === 0 ? null : times.reduce((one, other) => Math.min(one, other))
    },
    hasWork(now) {
      endPauses(now)
      for (const line of [first, waiting]) for (const one of line.values()) if (pauseOf(one) === undefined) return true
      return false
    },
    isEmpty: () => first.size + waiting.size + taken.size === 0,
    whenDrained() {
      return new Promise((resolve) => {
        drained.add({ order: lastOrder, resolve })
        settle()
      })
    },
  }
}

/** What reports a run to a check: those of one id replace one another. */
export function idOf({ resource, runId, entries }: JobReport): string {
  return `${keyOf(resource)}/${runId ?? `success ${entries[0]?.at}`}`
}

function weightOf({ entries }: JobReport): number {
  return entries.reduce((sum, entry) => sum + ('body' in entry ? entry.body.length / BYTES_OF_ONE : 0), 1)
}
