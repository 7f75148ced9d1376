/** The slots of a schedule as Debian's cron runs a line of a crontab: vixie cron 3.0pl1 with Debian's handling of changed clocks. */

import { type Cron, matchesDay } from './cron-expression.ts'

const MINUTE_MS = 60_000
const HOUR_MINUTES = 60
const DAY_MINUTES = 24 * HOUR_MINUTES
const DAY_MS = DAY_MINUTES * MINUTE_MS

/** Cron follows clocks that change by more at once without a look at what they skip or repeat. */
const CORRECTED_MS = 3 * HOUR_MINUTES * MINUTE_MS
/** 29 February is on one weekday every 28 years, and over a year such as 2100 after 40: cron waits for that date. */
const SEARCH_DAYS = 41 * 366
/** A look at changes of clocks begins this long before a slot. */
const AHEAD_MS = 2 * DAY_MS

/**
 * The first slot strictly after an instant, both in milliseconds since the epoch; null when none comes.
 *
 * A job whose minute or hour begins with `*` runs whenever the clocks show a time that it names. Any other job runs once at each time of a day
 * that it names: at the first occurrence of a repeated hour, and right after the gap for a time in a skipped hour.
 */
export function nextCronSlot(cron: Cron, afterMs: number): number | null {
  const { zone, minutes, hours } = cron
  const isFixed = !(minutes.isStar || hours.isStar)
  const lastMs = afterMs + SEARCH_DAYS * DAY_MS
  /** The local time up to which the times of a fixed job are over. */
  let isOverUntil = Number.NEGATIVE_INFINITY
  // Repeated hours of earlier changes have passed.
  let stretch = zone.stretchAt(afterMs - CORRECTED_MS)
  while (stretch.fromMs <= lastMs) {
    const { fromMs, untilMs, offsetMs } = stretch
    const isAhead = untilMs > afterMs
    if (isAhead) {
      const from = Math.max(Math.floor(afterMs) + 1, fromMs) + offsetMs
      const local = nextLocal(cron, isFixed ? Math.max(from, isOverUntil) : from)
      if (local === null) return null
      if (local < untilMs + offsetMs) return local - offsetMs
      // No change of clocks matters in the years up to a rare date, but a near one that repeats times before `from`.
      const ahead = zone.stretchAt(Math.max(fromMs, local - offsetMs - AHEAD_MS))
      if (ahead.fromMs > untilMs && untilMs > afterMs + DAY_MS) {
        stretch = ahead
        continue
      }
    }
    const next = zone.stretchAt(untilMs)
    const endLocal = untilMs + offsetMs
    const changeMs = next.offsetMs - offsetMs
    if (changeMs >= CORRECTED_MS || changeMs < -CORRECTED_MS) isOverUntil = Number.NEGATIVE_INFINITY
    else {
      isOverUntil = Math.max(isOverUntil, endLocal)
      const skipped = isFixed && isAhead && changeMs > 0 ? nextLocal(cron, isOverUntil) : null
      if (skipped !== null && skipped < endLocal + changeMs) return untilMs
    }
    stretch = next
  }
  return null
}

/** The first time on a calendar without changes of clocks, from `from` on, that a schedule names; both as if they were UTC. */
function nextLocal(cron: Cron, from: number): number | null {
  const firstMinute = Math.ceil(from / MINUTE_MS)
  let day = Math.floor(firstMinute / DAY_MINUTES)
  let earliest = firstMinute - day * DAY_MINUTES
  for (const lastDay = day + SEARCH_DAYS; day <= lastDay; earliest = 0) {
    const date = new Date(day * DAY_MS)
    if (!cron.months.values.includes(date.getUTCMonth() + 1)) {
      day = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / DAY_MS
      continue
    }
    const minute = matchesDay(cron, date.getUTCDate(), date.getUTCDay()) ? minuteOfDay(cron, earliest) : null
    if (minute !== null) return (day * DAY_MINUTES + minute) * MINUTE_MS
    day += 1
  }
  return null
}

function minuteOfDay({ hours, minutes }: Pick<Cron, 'hours' | 'minutes'>, from: number): number | null {
  for (let at = from; at < DAY_MINUTES; at += 1) {
    const hour = Math.floor(at / HOUR_MINUTES)
    if (!hours.values.includes(hour)) at = (hour + 1) * HOUR_MINUTES - 1
    else if (minutes.values.includes(at % HOUR_MINUTES)) return at
  }
  return null
}
