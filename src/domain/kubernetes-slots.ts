/** The slots of a schedule as Kubernetes runs a CronJob: by robfig/cron, changes of clocks included. */

import { type Cron, matchesDay } from './cron-expression.ts'
import type { TimeZone } from './time-zone.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** How far robfig/cron searches, in calendar years. */
const SEARCH_YEARS = 5

/**
 * The first slot strictly after an instant, both in milliseconds since the epoch; null when the next five years have
 * none. The search follows robfig/cron's SpecSchedule.Next step by step, detours included, because Kubernetes runs by
 * them. One exception: in a zone that skips a whole day Next would never return, and this search steps over that day.
 */
export function nextKubernetesSlot(cron: Cron, afterMs: number): number | null {
  const { minutes, hours, months, zone } = cron
  if (minutes.values.length === 0 || hours.values.length === 0) return null
  let at = (Math.floor(afterMs / SECOND_MS) + 1) * SECOND_MS
  let local = at + zone.offsetAt(at)
  const lastYear = new Date(local).getUTCFullYear() + SEARCH_YEARS
  /** The first step clears the smaller fields; after that `at` is at the beginning of its field. */
  let isCleared = false

  const clearTo = (clearedLocal: number): void => {
    if (!isCleared) moveTo(toInstant(zone, clearedLocal))
    isCleared = true
  }
  const moveTo = (instant: number): void => {
    at = instant
    local = at + zone.offsetAt(at)
  }

  // Each loop advances until its field matches. When the field wraps around, the search goes back to the month.
  const advanceMonth = (): boolean => {
    while (!months.values.includes(monthOf(local))) {
      clearTo(startOfMonth(local))
      moveTo(toInstant(zone, addMonth(local)))
      if (monthOf(local) === 1) return true
    }
    return false
  }
  const advanceDay = (): boolean => {
    while (!matchesDay(cron, dayOf(local), weekdayOf(local))) {
      clearTo(local - mod(local, DAY_MS))
      const next = toInstant(zone, local + DAY_MS)
      moveTo(next > at ? next : at + DAY_MS)
      // Where clocks change at midnight the step lands on 23:00 or 01:00.
      const hour = hourOf(local)
      if (hour !== 0) moveTo(at + (hour > 12 ? 24 - hour : -hour) * HOUR_MS)
      if (dayOf(local) === 1) return true
    }
    return false
  }
  const advanceHour = (): boolean => {
    while (!hours.values.includes(hourOf(local))) {
      clearTo(local - mod(local, HOUR_MS))
      moveTo(at + HOUR_MS)
      if (hourOf(local) === 0) return true
    }
    return false
  }
  const advanceMinute = (): boolean => {
    while (!minutes.values.includes(minuteOf(local))) {
      if (!isCleared) moveTo(at - mod(at, MINUTE_MS))
      isCleared = true
      moveTo(at + MINUTE_MS)
      if (minuteOf(local) === 0) return true
    }
    return false
  }

  while (new Date(local).getUTCFullYear() <= lastYear) {
    if (advanceMonth() || advanceDay() || advanceHour() || advanceMinute()) continue
    const second = mod(local, MINUTE_MS)
    if (second === 0) return at
    isCleared = true
    moveTo(at + MINUTE_MS - second)
  }
  return null
}

/** As Go's time.Date. A skipped or repeated local time has two readings, and the one that Go picks decides the slots after it. */
function toInstant(zone: TimeZone, local: number): number {
  return local - zone.offsetAt(local - zone.offsetAt(local))
}

const monthOf = (local: number): number => new Date(local).getUTCMonth() + 1
const dayOf = (local: number): number => new Date(local).getUTCDate()
const weekdayOf = (local: number): number => new Date(local).getUTCDay()
const hourOf = (local: number): number => mod(Math.floor(local / HOUR_MS), 24)
const minuteOf = (local: number): number => mod(Math.floor(local / MINUTE_MS), 60)

function startOfMonth(local: number): number {
  const date = new Date(local)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

function addMonth(local: number): number {
  return new Date(local).setUTCMonth(monthOf(local))
}

function mod(value: number, divisor: number): number {
  return value - Math.floor(value / divisor) * divisor
}
