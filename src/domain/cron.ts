/**
 * Cron schedules with the meaning they have in a Kubernetes CronJob: that of robfig/cron v3.0.1, standard parser, DST included.
 *
 * Why not a library: of 3,515 rows that robfig/cron itself computed (test/fixtures/cron-slots), croner 11.0.1 has 490 wrong with
 * `sloppyRanges` (999 without), and cron-parser 5.10.5 has 798. Around changes of clocks alone it is 256 and 311 of 1,875 rows:
 * both move a slot of the skipped hour where Kubernetes leaves it out, and run one of the repeated hour once where Kubernetes
 * runs it twice. An adapter cannot correct that. The rest are expressions: both treat a star with step 1 as a restriction and reject
 * `1,,2` and `+5`, and both accept 7 as Sunday, `L` and `#`, which Kubernetes rejects.
 */

import { LIMITS } from './limits.ts'
import { findTimeZone, type TimeZone } from './time-zone.ts'

export { isTimeZone } from './time-zone.ts'

/** The values that a field names, by value. `isStar`: one of its parts is a `*` or `?` without a step above 1. */
interface Field {
  readonly values: readonly boolean[]
  readonly isStar: boolean
}

/** A parsed schedule in its zone. Only this file reads its fields. */
export interface Cron {
  readonly minutes: Field
  readonly hours: Field
  readonly days: Field
  readonly months: Field
  readonly weekdays: Field
  readonly zone: TimeZone
}

/** An expression or zone that Kubernetes rejects too, or that has no meaning here. The message says what would be right. */
export class InvalidSchedule extends Error {
  override readonly name = 'InvalidSchedule'
}

interface FieldRule {
  readonly name: string
  readonly min: number
  readonly max: number
  /** Names of the values, the first for `min`. */
  readonly names: readonly string[]
  readonly example: string
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

const RULES: readonly FieldRule[] = [
  { name: 'minute', min: 0, max: 59, names: [], example: '0, 0,30 or */15' },
  { name: 'hour', min: 0, max: 23, names: [], example: '2, 8-18 or */6' },
  { name: 'day of month', min: 1, max: 31, names: [], example: '*, 1,15 or 1-7' },
  { name: 'month', min: 1, max: 12, names: MONTHS, example: '*, JAN,JUL or 1-6' },
  { name: 'day of week', min: 0, max: 6, names: WEEKDAYS, example: '*, MON-FRI or 0 (Sunday)' },
]

const MACROS: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
])

/** Go's white space; that of JavaScript differs by two characters. */
const WHITE_SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/

/**
 * Parses five fields or a macro such as `@daily` (design, section 3.1). Accepts what Kubernetes accepts, with two exceptions: `@every`,
 * whose slots depend on the time of the question, and a zone within the expression. Throws only InvalidSchedule; its message follows
 * the words `schedule` or `spec.schedule`, and other fields stand in it as in `invalidField`.
 */
export function parseCron(expression: string, timeZone: string): Cron {
  if (expression.length > LIMITS.scheduleLength)
    throw new InvalidSchedule(`must have at most ${LIMITS.scheduleLength} characters: shorten it`)
  const zone = findTimeZone(timeZone)
  if (zone === undefined)
    throw new InvalidSchedule(
      `cannot be read in the time zone ${quote(timeZone)}: give a {timeZone} like Europe/Berlin`,
    )
  const fields = expandMacro(expression).split(WHITE_SPACE).filter(Boolean)
  if (fields.length !== RULES.length)
    throw new InvalidSchedule(
      `must have 5 fields (minute, hour, day of month, month, day of week) and has ${fields.length}: give one like "30 2 * * *"`,
    )
  const [minutes, hours, days, months, weekdays] = RULES.map((rule, index) => parseField(fields[index]!, rule))
  return { minutes: minutes!, hours: hours!, days: days!, months: months!, weekdays: weekdays!, zone }
}

function expandMacro(expression: string): string {
  const prefix = /^\s*((?:CRON_)?TZ)=/.exec(expression)
  if (prefix !== null)
    throw new InvalidSchedule(`must not begin with ${prefix[1]}=: give the zone as {timeZone}, beside the schedule`)
  if (!/^\s*@/.test(expression)) return expression
  if (/^\s*@every\b/.test(expression))
    throw new InvalidSchedule(
      'must not be @every, which has no fixed times of day: give a period ({periodSeconds}) instead of a schedule',
    )
  const expanded = MACROS.get(expression)
  if (expanded === undefined)
    throw new InvalidSchedule(
      `is ${quote(expression)}, which is no macro: give one of ${[...MACROS.keys()].join(', ')}, in lower case and without spaces`,
    )
  return expanded
}

/** Empty parts are skipped, as robfig/cron does: `,` names no value at all. */
function parseField(text: string, rule: FieldRule): Field {
  const values = new Array<boolean>(rule.max + 1).fill(false)
  let isStar = false
  for (const part of text.split(',').filter(Boolean)) {
    const { from, to, step, isAny } = parsePart(part, rule)
    for (let value = from; value <= to; value += step) values[value] = true
    isStar ||= isAny && step === 1
  }
  return { values, isStar }
}

/** `*`, `5`, `5-9`, each with an optional `/step`; `5/15` runs to the end of the field. After a star the end of a range is ignored. */
function parsePart(part: string, rule: FieldRule): { from: number; to: number; step: number; isAny: boolean } {
  const reject = (problem: string): InvalidSchedule =>
    new InvalidSchedule(
      `has ${quote(part)} as ${rule.name}: ${problem}; give values from ${rule.min} to ${rule.max}, such as ${rule.example}`,
    )
  const [range = '', stepText, ...moreSteps] = part.split('/')
  const [low = '', high, ...moreEnds] = range.split('-')
  const isAny = low === '*' || low === '?'
  let from = rule.min
  let to = rule.max
  if (!isAny) {
    from = parseValue(low, rule, reject)
    if (high !== undefined) to = parseValue(high, rule, reject)
    else if (stepText === undefined) to = from
    if (moreEnds.length > 0) throw reject('a range has one hyphen')
  }
  const step = stepText === undefined ? 1 : parseNumber(stepText, reject)
  if (moreSteps.length > 0) throw reject('a step has one slash')
  if (from < rule.min) throw reject(`${from} is too small`)
  if (Math.max(from, to) > rule.max)
    throw reject(`${Math.max(from, to)} is too large${rule.names === WEEKDAYS ? ', and Sunday is 0 or SUN' : ''}`)
  if (from > to) throw reject('the range ends before it begins, so write it as two, joined by a comma')
  if (step === 0) throw reject('a step is 1 or more')
  return { from, to, step, isAny }
}

function parseValue(text: string, rule: FieldRule, reject: (problem: string) => Error): number {
  const index = rule.names.indexOf(text.toLowerCase())
  return index === -1 ? parseNumber(text, reject) : rule.min + index
}

/** As Go's strconv.Atoi, without negative numbers: accepts a sign and leading zeros, rejects more than 64 bits. */
function parseNumber(text: string, reject: (problem: string) => Error): number {
  if (!/^[+-]?[0-9]+$/.test(text))
    throw reject(text === '' ? 'a number is missing beside the - or /' : `${quote(text)} is not a number`)
  if (BigInt(text) > 2n ** 63n - 1n || BigInt(text) < 0n) throw reject(`${text} is out of range`)
  return Number(text)
}

/** In JSON, so that messages have no control characters. */
function quote(text: string): string {
  return JSON.stringify(text)
}

/** The values that a schedule names, each list ascending: its meaning without its spelling. */
export interface CronValues {
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly days: readonly number[]
  readonly months: readonly number[]
  /** 0 is Sunday. */
  readonly weekdays: readonly number[]
  /** Whether one of `days` and `weekdays` is enough for a slot. Otherwise it takes both. */
  readonly isEitherDay: boolean
}

/** For descriptions of a schedule. */
export function valuesOf({ minutes, hours, days, months, weekdays }: Cron): CronValues {
  const list = ({ values }: Field) => values.flatMap((isNamed, value) => (isNamed ? [value] : []))
  return {
    minutes: list(minutes),
    hours: list(hours),
    days: list(days),
    months: list(months),
    weekdays: list(weekdays),
    isEitherDay: !(days.isStar || weekdays.isStar),
  }
}

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** How far robfig/cron searches, in calendar years. */
const SEARCH_YEARS = 5

/**
 * The first slot strictly after an instant, both in milliseconds since the epoch; null when the five years that follow have none.
 *
 * It follows robfig/cron's SpecSchedule.Next step by step, detours included, because Kubernetes runs by them: from the month down to
 * the minute each field is advanced until it matches, and a field that wraps around sends the search back to the month. A slot in a
 * skipped hour is left out, a slot in a repeated hour comes twice. One exception: in a zone that skips a whole day Next would never
 * return, and we step over that day.
 */
export function nextSlot({ minutes, hours, days, months, weekdays, zone }: Cron, afterMs: number): number | null {
  if (!minutes.values.includes(true) || !hours.values.includes(true)) return null
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
    while (!months.values[monthOf(local)]) {
      clearTo(startOfMonth(local))
      moveTo(toInstant(zone, addMonth(local)))
      if (monthOf(local) === 1) return true
    }
    return false
  }
  const advanceDay = (): boolean => {
    while (!matchesDay(days, weekdays, local)) {
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
    while (!hours.values[hourOf(local)]) {
      clearTo(local - mod(local, HOUR_MS))
      moveTo(at + HOUR_MS)
      if (hourOf(local) === 0) return true
    }
    return false
  }
  const advanceMinute = (): boolean => {
    while (!minutes.values[minuteOf(local)]) {
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

/** With a star on one side the other side decides; without a star one of the two is enough. */
function matchesDay(days: Field, weekdays: Field, local: number): boolean {
  const isDay = days.values[dayOf(local)] === true
  const isWeekday = weekdays.values[weekdayOf(local)] === true
  return days.isStar || weekdays.isStar ? isDay && isWeekday : isDay || isWeekday
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
