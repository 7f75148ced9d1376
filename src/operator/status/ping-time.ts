/**
 * When `status.lastPingTime` is written: together with another change of the status, or alone at most every max(60 s,
 * half the interval of the job).
 */

import type { Instant } from '../../domain/check.ts'
import { parseCron } from '../../domain/cron.ts'
import { intervalMsOf } from '../../domain/schedule.ts'

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
const LAST_PING_STEP_MS = 60_000
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
