/** Times and lengths of time in words, and lengths as users type them. */

import { formatDuration } from '../../../channels/kinds/event-text.ts'
import type { CheckRecord } from '../../../checks/find-checks.ts'
import type { Instant } from '../../../domain/check.ts'
import { toIso } from '../../../domain/instant.ts'
import { isTimeZone } from '../../../domain/time-zone.ts'
import { type Html, html } from '../html.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

// Not `yesterday`, which would be said of 24 to 48 hours.
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' })

/** From this length on, in these units. */
const UNITS = [
  [730 * DAY_MS, 365 * DAY_MS, 'year'],
  [60 * DAY_MS, 30 * DAY_MS, 'month'],
  [DAY_MS, DAY_MS, 'day'],
  [HOUR_MS, HOUR_MS, 'hour'],
  [MINUTE_MS, MINUTE_MS, 'minute'],
] as const

/** `3 minutes ago`, `in 2 hours`, `just now`. The script has the same words (assets/dashboard.js). */
export function relativeWords(at: Instant, now: Instant): string {
  const ms = at - now
  const [, size, unit] = UNITS.find(([from]) => Math.abs(ms) >= from) ?? []
  if (size !== undefined && unit !== undefined) return relative.format(Math.trunc(ms / size), unit)
  return ms > 0 ? 'in less than a minute' : ms > -10 * SECOND_MS ? 'just now' : 'less than a minute ago'
}

/** `2026-11-23 03:12:05 UTC`. */
export function exactWords(at: Instant): string {
  return `${toIso(at).slice(0, 19).replace('T', ' ')} UTC`
}

/** A time relative to now. The script refreshes it. On hover it shows the exact form. */
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
  return formatDuration(Math.max(ms, MINUTE_MS) / SECOND_MS)
}

/** What is said of a time: its clock time, and its exact form. */
export type ClockWords = (at: Instant) => string

/**
 * Times as the clocks of a zone show them: `03:12 CET` of today, `21 Nov, 03:12 CET` of this year, else with the year.
 * In UTC where this machine does not know the zone.
 */
export function clockOf(zone: string, now: Instant): ClockWords {
  const { time, date, year } = formatsOf(isTimeZone(zone) ? zone : 'UTC')
  const [today, thisYear] = [year.format(now) + date.format(now), year.format(now)]
  return (at) => {
    const [inYear, onDay] = [year.format(at), date.format(at)]
    if (inYear + onDay === today) return time.format(at)
    return `${onDay}${inYear === thisYear ? '' : ` ${inYear}`}, ${time.format(at)}`
  }
}

/** `Tue, 24 Nov 2026, 02:00 CET`. The offset's name tells the two readings of a repeated hour apart. */
export function timeInZone(at: Instant, zone: string): string {
  return formatsOf(zone).whole.format(at)
}

interface Formats {
  readonly whole: Intl.DateTimeFormat
  readonly time: Intl.DateTimeFormat
  readonly date: Intl.DateTimeFormat
  readonly year: Intl.DateTimeFormat
}

/** Making one takes 50 times as long as using it. Bounded by the number of zones. */
const formats = new Map<string, Formats>()

function formatsOf(zone: string): Formats {
  let found = formats.get(zone)
  if (found === undefined) {
    const format = (options: Intl.DateTimeFormatOptions) =>
      new Intl.DateTimeFormat('en-GB', { ...options, timeZone: zone })
    const time = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' } as const
    const date = { day: 'numeric', month: 'short' } as const
    const year = { year: 'numeric' } as const
    found = {
      whole: format({ weekday: 'short', ...date, ...year, ...time }),
      time: format(time),
      date: format(date),
      year: format(year),
    }
    formats.set(zone, found)
  }
  return found
}

export type When = (at: Instant) => Html

/** `21 Nov, 02:05 CET, 2 days ago`, in the zone of the check's schedule: on a phone nothing shows on hover. */
export function whenOf({ spec }: Pick<CheckRecord, 'spec'>, now: Instant): When {
  const clock = clockOf(spec.timeZone ?? 'UTC', now)
  return (at) => html`<span class="clock-time">${clock(at)} <small class="muted">${ago(at, now)}</small></span>`
}

/** `short`: how users write it too. */
const LENGTHS = [
  { name: 'week', seconds: 604_800, short: 'w wk wks' },
  { name: 'day', seconds: 86_400, short: 'd' },
  { name: 'hour', seconds: 3_600, short: 'h hr hrs' },
  { name: 'minute', seconds: 60, short: 'm min mins' },
  { name: 'second', seconds: 1, short: 's sec secs' },
] as const

const countWords = (count: number, name: string) => `${count} ${name}${count === 1 ? '' : 's'}`

/** Exact: `1 hour 30 minutes`, `45 seconds`, `2 weeks`. Weeks stand alone: ten days are `10 days`. */
export function spellDuration(seconds: number): string {
  if (seconds === 0) return '0 seconds'
  const parts: string[] = []
  let rest = seconds
  for (const { name, seconds: size } of LENGTHS) {
    if (name === 'week' && rest % size !== 0) continue
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(countWords(count, name))
  }
  return parts.join(' ')
}

/** `Every 15 minutes`, `Every hour`, `Every 1 hour 30 minutes`. */
export function everyWords(seconds: number): string {
  const one = LENGTHS.find((unit) => unit.seconds === seconds)
  return `Every ${one === undefined ? spellDuration(seconds) : one.name}`
}

/** `2 hours`, `1 day`, `less than a minute`: the largest unit up to a day, the rest dropped. */
export function roughly(ms: number): string {
  if (ms < MINUTE_MS) return 'less than a minute'
  const { name, seconds } = LENGTHS.slice(1).find(({ seconds }) => ms >= seconds * SECOND_MS)!
  return countWords(Math.floor(ms / (seconds * SECOND_MS)), name)
}

/** `in 2 hours`, `now` at and after its time. */
export const inWords = (at: Instant, now: Instant): string => (at <= now ? 'now' : relativeWords(at, now))

const SECONDS_OF: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ...LENGTHS.flatMap(({ name, seconds, short }) =>
    [name, `${name}s`, ...short.split(' ')].map((word): [string, number] => [word, seconds]),
  ),
])

// Each takes a text in one way alone, so that no text takes long.
const PART = /(\d+(?:\.\d+)?)\s*([a-z]*)/y
const BETWEEN = /\s*(?:,|and\b)?\s*/y

/** More is no length of time that a user types. */
const MOST_CHARACTERS = 100

/**
 * Seconds: `15 min`, `1h30m`, `1 hour 30 minutes`, `1.5 h`; a number alone is seconds, as in the API. Null for other
 * text, and for a length that is no whole number of seconds.
 */
export function parseDuration(text: string): number | null {
  const given = text.trim().toLowerCase()
  if (given.length > MOST_CHARACTERS) return null
  let sum = 0
  let at = 0
  for (;;) {
    const [part, number, unit] = matchAt(PART, given, at) ?? []
    const size = SECONDS_OF.get(unit ?? '')
    if (part === undefined || size === undefined || (unit === '' && part !== given)) return null
    sum += Number(number) * size
    at += part.length
    if (at === given.length) break
    at += matchAt(BETWEEN, given, at)![0].length
  }
  // 1.1 h is 3960.0000000000005 s.
  const whole = Math.round(sum)
  return Math.abs(sum - whole) < 1e-6 ? whole : null
}

function matchAt(sticky: RegExp, text: string, at: number): RegExpExecArray | null {
  sticky.lastIndex = at
  return sticky.exec(text)
}
