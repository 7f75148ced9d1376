/** Arithmetic on instants: milliseconds since the epoch, UTC, whose fraction carries the microseconds. */

import type { Instant } from './check.ts'

/** PostgreSQL keeps microseconds. */
const MICROSECOND_MS = 0.001

/** The nearest microsecond, as PostgreSQL keeps it. */
export function toMicrosecond(at: Instant): Instant {
  return Math.round(at * 1_000) / 1_000
}

/** `at`, or a microsecond after `before` where that is later: no two entries of one check's history have the same time. */
export function stampAfter(before: Instant, at: Instant): Instant {
  return toMicrosecond(Math.max(at, before + MICROSECOND_MS))
}

/** `before`: null where nothing came before. */
export function latest(before: Instant | null, at: Instant): Instant {
  return before === null ? at : Math.max(before, at)
}

/** Of two instants that may be missing. */
export function earliest(one: Instant | null, other: Instant | null): Instant | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}

const FIRST = Date.parse('0001-01-01T00:00:00Z')
const LAST = Date.parse('9999-12-31T23:59:59.999Z')

/** Whether it lies in the years 1 to 9999 in UTC: PostgreSQL and we write others in forms that the other does not read. */
export const isStorable = (at: Instant): boolean => at >= FIRST && at <= LAST

/** ISO 8601, UTC, with milliseconds. Microseconds are cut off, so that no time is rounded into the future. */
export function toIso(at: Instant): string {
  return new Date(at).toISOString()
}
