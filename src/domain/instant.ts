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

/** ISO 8601, UTC, with milliseconds. Microseconds are cut off, so that no time is rounded into the future. */
export function toIso(at: Instant): string {
  return new Date(at).toISOString()
}
