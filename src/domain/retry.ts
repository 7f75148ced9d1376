/** When a delivery is retried, and when it is given up (design, section 5). */

import type { Instant } from './check.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** The wait after the first attempt, the second, ...; the last one repeats. */
const WAITS_MS = [5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR] as const
const JITTER = 0.1

export const PATIENCE_MS = 24 * HOUR
/** How long a receiver is tried that refuses: it, or its proxy, may be restarting. */
export const REFUSED_MS = HOUR
/** How long a claim lasts: longer than any attempt. After that another replica can claim the delivery. */
export const CLAIM_MS = 30 * SECOND
/** Attempts that each delivery gets, however long it has waited behind another one, or for a replica. */
const MIN_ATTEMPTS = 5

export interface Attempted {
  /** The number of this attempt, from 1, since the delivery was created or retried by hand. */
  readonly attempt: number
  readonly giveUpAt: Instant
  /** Since when the receiver has refused each attempt, this one too; null when it does not refuse. */
  readonly refusedAt?: Instant | null
  readonly now: Instant
  /** The receiver's Retry-After. */
  readonly retryAfterMs: number | null
  /** 0 to 1, for the jitter. */
  readonly random: number
}

/** The time of the next attempt; null: given up. Retry-After can make the wait longer, but not beyond the end. */
export function nextAttemptAt({
  attempt,
  giveUpAt,
  refusedAt = null,
  now,
  retryAfterMs,
  random,
}: Attempted): Instant | null {
  const endAt = refusedAt === null ? giveUpAt : Math.min(giveUpAt, refusedAt + REFUSED_MS)
  const isOver = now >= endAt
  if (isOver && attempt >= MIN_ATTEMPTS) return null
  const waitMs = WAITS_MS[Math.min(attempt, WAITS_MS.length) - 1] ?? WAITS_MS[0]
  const jitteredMs = waitMs * (1 - JITTER + 2 * JITTER * random)
  // The last attempt is at the end, not an hour before it.
  return isOver ? now + jitteredMs : Math.min(now + Math.max(jitteredMs, retryAfterMs ?? 0), endAt)
}
