/** Instants as PostgreSQL's text, in both directions. */

import type { Instant } from '../../domain/check.ts'
import { toIso } from '../../domain/instant.ts'

/** An instant as the text of a `timestamptz` parameter, to the microsecond. Null stays null. Throws RangeError for NaN and infinity. */
export function timestamp(at: Instant | null): string | null {
  if (at === null) return null
  const us = Math.round(at * 1_000)
  const ms = Math.floor(us / 1_000)
  return toIso(ms).replace('Z', `${String(us - ms * 1_000).padStart(3, '0')}Z`)
}

/** The calendar repeats after 400 years. */
const YEARS_400_MS = 146_097 * 86_400_000

/** Milliseconds of `2026-11-21 13:38:11.123456+00`, the only form of our era in a session in UTC; NaN for `infinity`. */
export function parseInstant(text: string): number {
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  // Date.UTC takes the years 0 to 99 for years of the last century.
  const [shown, laterMs] = year < 100 ? [year + 400, YEARS_400_MS] : [year, 0]
  const minute = Date.UTC(shown, twoDigits(text, 5) - 1, twoDigits(text, 8), twoDigits(text, 11), twoDigits(text, 14))
  let us = twoDigits(text, 17) * 1_000_000
  // Trailing zeros are left out: each digit is worth a tenth of the one before it.
  for (let at = 20, worth = 100_000; worth >= 1; at += 1, worth /= 10) {
    const digit = text.charCodeAt(at) - 48
    if (!(digit >= 0 && digit <= 9) || text.charCodeAt(19) !== 46 /* . */) break
    us += digit * worth
  }
  return minute - laterMs + us / 1_000
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - 48) * 10 + text.charCodeAt(at + 1) - 48
}
