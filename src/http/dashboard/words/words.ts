/** Times, lengths of time and statuses in everyday words. */

import type { Instant, ShownStatus } from '../../../domain/check.ts'
import { toIso } from '../../../domain/instant.ts'
import { type Html, html } from '../html.ts'
import { icon } from '../icons.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

// Not `yesterday`, which would be said of 24 to 48 hours.
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' })

/** `3 minutes ago`, `in 2 hours`, `now`. The script has the same words (assets/dashboard.js). */
export function relativeWords(at: Instant, now: Instant): string {
  const ms = at - now
  const size = Math.abs(ms)
  if (size < MINUTE_MS)
    return ms > 0 ? 'in less than a minute' : size < 10 * SECOND_MS ? 'just now' : 'less than a minute ago'
  if (size < HOUR_MS) return relative.format(Math.trunc(ms / MINUTE_MS), 'minute')
  if (size < DAY_MS) return relative.format(Math.trunc(ms / HOUR_MS), 'hour')
  if (size < 60 * DAY_MS) return relative.format(Math.trunc(ms / DAY_MS), 'day')
  if (size < 730 * DAY_MS) return relative.format(Math.trunc(ms / (30 * DAY_MS)), 'month')
  return relative.format(Math.trunc(ms / (365 * DAY_MS)), 'year')
}

/** `2026-11-23 03:12:05 UTC`. */
export function exactWords(at: Instant): string {
  return `${toIso(at).slice(0, 19).replace('T', ' ')} UTC`
}

/** A time relative to now; its exact form shows on hover. The script refreshes it, and shows the exact form in the zone of the browser. */
export function ago(at: Instant, now: Instant): Html {
  return html`<time datetime="${toIso(at)}" title="${exactWords(at)}">${relativeWords(at, now)}</time>`
}

/** `850 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`: at most two units. */
export function durationWords(ms: number): string {
  // Rounded before the unit is chosen: 999.7 ms are a second, and 59.7 s are a minute.
  if (Math.round(ms) < SECOND_MS) return `${Math.round(ms)} ms`
  const tenths = Math.round(ms / 100)
  if (tenths < 100) return `${tenths / 10} s`
  const seconds = Math.round(ms / SECOND_MS)
  if (seconds < 60) return `${seconds} s`
  const all = Math.max(ms, MINUTE_MS)
  const units = [
    ['d', DAY_MS],
    ['h', HOUR_MS],
    ['min', MINUTE_MS],
    ['s', SECOND_MS],
  ] as const
  const first = units.findIndex(([, unit]) => all >= unit)
  const [name, unit] = units[first]!
  const second = units[first + 1]
  const whole = Math.floor(all / unit)
  const rest = second === undefined ? 0 : Math.floor((all - whole * unit) / second[1])
  return rest === 0 ? `${whole} ${name}` : `${whole} ${name} ${rest} ${second![0]}`
}

/** Messages of AppErrors begin in lower case and have no full stop. */
export function sentence(message: string): string {
  return `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`
}

export const STATUS_WORDS: Readonly<Record<ShownStatus, string>> = {
  new: 'New',
  up: 'Up',
  late: 'Late',
  down: 'Down',
  paused: 'Paused',
}

/** The status by shape, word and colour. */
export function statusBadge(status: ShownStatus): Html {
  return html`<span class="status status-${status}">${icon(status)} ${STATUS_WORDS[status]}</span>`
}

/** A text of a job, a user or a manifest, whose direction does not change the text around it. */
export function isolated(text: string): Html {
  return html`<bdi>${text}</bdi>`
}
