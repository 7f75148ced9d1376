/** When a delivery is tried again, and when it is given up (design, section 5). */

import type { Instant } from './check.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** After the first attempt, the second, ...; the last wait is used from then on. */
const WAITS_MS = [5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR] as const
const JITTER = 0.1

export const PATIENCE_MS = 24 * HOUR
/** Whoever takes a delivery has it for so long, longer than any attempt. After that it is anybody's again. */
export const CLAIM_MS = 30 * SECOND
/**
 * However old a delivery is: what waited behind another one of its check, or for a replica that was away, gets a few tries over
 * some minutes too.
 */
const FEWEST_ATTEMPTS = 5

export interface Attempted {
  /** This attempt was the n-th since the delivery was made or asked for again. */
  readonly attempt: number
  readonly giveUpAt: Instant
  readonly now: Instant
  /** What the receiver asked for (Retry-After). */
  readonly retryAfterMs: number | null
  /** 0 .. 1 */
  readonly random: number
}

/** The time of the next attempt; null: given up. A receiver may ask for a longer wait, not for one beyond the end. */
export function nextAttemptAt({ attempt, giveUpAt, now, retryAfterMs, random }: Attempted): Instant | null {
  const isOver = now >= giveUpAt
  if (isOver && attempt >= FEWEST_ATTEMPTS) return null
  const waitMs = WAITS_MS[Math.min(attempt, WAITS_MS.length) - 1] ?? WAITS_MS[0]
  const jitteredMs = waitMs * (1 - JITTER + 2 * JITTER * random)
  // The last try is at the end of the patience, not an hour before it.
  return isOver ? now + jitteredMs : Math.min(now + Math.max(jitteredMs, retryAfterMs ?? 0), giveUpAt)
}
