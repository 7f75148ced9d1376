/**
 * Silences (design, section 4, "Silences"): times in which no channel is notified of the checks that they cover, once,
 * or again and again.
 */

import type { Instant } from './check.ts'
import type { Span } from './circumstances.ts'
import { type Cron, nextSlot } from './cron.ts'
import { lastSlotBetween } from './schedule.ts'

/** A silence that holds once lasts as long, or longer. */
export const SHORTEST_MS = 1_000

/** When a silence holds: once, or for some time from each slot of a schedule on. */
export type SilenceTimes = Span | { readonly cron: Cron; readonly durationMs: number }

/** When the silence that holds at `now` began and ends; null: none holds. Windows that overlap are one. */
export function spanAt(times: SilenceTimes, now: Instant): Span | null {
  if (!('cron' in times)) return times.from <= now && now < times.until ? times : null
  const { cron, durationMs } = times
  const from = nextSlot(cron, now - durationMs)
  if (from === null || from > now) return null
  return { from, until: (lastSlotBetween(cron, from - 1, now + 1) ?? from) + durationMs }
}

/** When the silence begins next after `now`; null: not again. */
export function nextStart(times: SilenceTimes, now: Instant): Instant | null {
  if ('cron' in times) return nextSlot(times.cron, now)
  return times.from > now ? times.from : null
}

/** Whether a silence will never hold again. */
export function isOver(times: SilenceTimes, now: Instant): boolean {
  return spanAt(times, now) === null && nextStart(times, now) === null
}
