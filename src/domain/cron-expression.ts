/**
 * Cron expressions in two dialects, since two programs start the jobs. `cron`: Debian's cron, by crontab(5), for a check whose job pings from a
 * crontab. `kubernetes`: a CronJob, by robfig/cron v3.0.1 with its standard parser, for the check of a HeartbeatCheck.
 *
 * Why not a library: of 3,515 rows that robfig/cron itself computed (test/fixtures/cron-slots), croner 11.0.1 has 490
 * wrong, and cron-parser 5.10.5 has 798. Most are slots of skipped and repeated hours, which no adapter can correct.
 */

import { LIMITS } from './limits.ts'
import { findTimeZone, type TimeZone } from './time-zone.ts'

export const DIALECTS = ['cron', 'kubernetes'] as const
export type Dialect = (typeof DIALECTS)[number]

/** `isStar`: in `cron` the field begins with `*`; in `kubernetes` a part is `*` or `?`, without a step above 1. */
export interface Field {
  /** The values that the field names, ascending. */
  readonly values: readonly number[]
  readonly isStar: boolean
}

/** A parsed schedule in its zone. */
export interface Cron {
  readonly dialect: Dialect
  readonly minutes: Field
  readonly hours: Field
  readonly days: Field
  readonly months: Field
  /** 0 is Sunday. */
  readonly weekdays: Field
  readonly zone: TimeZone
}

/** An expression or zone that its dialect rejects too, or that has no meaning here. The message says what would be right. */
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

const BEFORE_WEEKDAY: readonly FieldRule[] = [
  { name: 'minute', min: 0, max: 59, names: [], example: '0, 0,30 or */15' },
  { name: 'hour', min: 0, max: 23, names: [], example: '2, 8-18 or */6' },
  { name: 'day of month', min: 1, max: 31, names: [], example: '*, 1,15 or 1-7' },
  { name: 'month', min: 1, max: 12, names: MONTHS, example: '*, JAN,JUL or 1-6' },
]
const WEEKDAY = { name: 'day of week', min: 0, names: WEEKDAYS }
const RULES: Readonly<Record<Dialect, readonly FieldRule[]>> = {
  cron: [...BEFORE_WEEKDAY, { ...WEEKDAY, max: 7, example: '*, MON-FRI or 0 or 7 (Sunday)' }],
  kubernetes: [...BEFORE_WEEKDAY, { ...WEEKDAY, max: 6, example: '*, MON-FRI or 0 (Sunday)' }],
}

const MACROS: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
])

/** Between fields. Kubernetes: Go's white space; that of JavaScript differs by two characters. */
const WHITE_SPACE: Readonly<Record<Dialect, RegExp>> = {
  cron: /[\t ]+/,
  kubernetes: /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/,
}
/** What neither a field nor the white space beside it has. The message of a field of Kubernetes shows controls by their codes. */
const FOREIGN: Readonly<Record<Dialect, RegExp>> = {
  cron: /[^\t -~]/u,
  kubernetes: /[^\0-~\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u,
}

/**
 * Parses five fields or a macro such as `@daily` (design, section 3.1). Accepts what the dialect's program accepts, with these exceptions:
 * `@every`, whose slots depend on the time of the question, `@reboot`, a zone within the expression, and what cron silently reads as something
 * else than is written (`5/15`, `1,,2`). Throws only InvalidSchedule; its message follows the words `schedule` or `spec.schedule`, and other
 * fields stand in it as in `invalidField`.
 */
export function parseCron(expression: string, timeZone: string, dialect: Dialect): Cron {
  if (expression.length > LIMITS.scheduleLength)
    throw new InvalidSchedule(`must have at most ${LIMITS.scheduleLength} characters: shorten it`)
  const zone = findTimeZone(timeZone)
  if (zone === undefined)
    throw new InvalidSchedule(
      `cannot be read in the time zone ${quote(timeZone)}: give a {timeZone} like Europe/Berlin`,
    )
  const text = dialect === 'cron' ? expression.replace(/^[\t-\r ]+|[\t-\r ]+$/g, '') : expression
  rejectForeign(text, dialect, expression.indexOf(text))
  const fields = expandMacro(text, dialect).split(WHITE_SPACE[dialect]).filter(Boolean)
  const rules = RULES[dialect]
  if (fields.length !== rules.length) {
    const isLong = dialect === 'cron' && fields.length > rules.length
    throw new InvalidSchedule(
      `must have 5 fields (minute, hour, day of month, month, day of week) and has ${fields.length}: give one like "30 2 * * *"${isLong ? ', without a field of seconds and without a command' : ''}`,
    )
  }
  const parse = (rule: FieldRule, index: number) => parseField(fields[index]!, rule, dialect === 'cron')
  const [minutes, hours, days, months, weekdays] = rules.map(parse)
  return { dialect, minutes: minutes!, hours: hours!, days: days!, months: months!, weekdays: weekdays!, zone }
}

/** Many of these characters cannot be seen, or look like others: so the message has their code and their place. */
function rejectForeign(text: string, dialect: Dialect, skipped: number): void {
  const found = FOREIGN[dialect].exec(text)
  if (found === null) return
  const [character] = found
  const code = `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
  const shown = /^[\p{L}\p{N}\p{P}\p{S}]$/u.test(character) ? `${quote(character)} (${code})` : code
  const after = found.index === 0 ? '' : `, after ${quote(text.slice(0, found.index))}`
  throw new InvalidSchedule(
    `has ${shown} as character ${skipped + found.index + 1}${after}: only A-Z, a-z, 0-9, * , - / @ and plain spaces are allowed, so remove or replace it`,
  )
}

function expandMacro(expression: string, dialect: Dialect): string {
  const prefix = /^\s*((?:CRON_)?TZ)=/.exec(expression)
  if (prefix !== null)
    throw new InvalidSchedule(`must not begin with ${prefix[1]}=: give the zone as {timeZone}, beside the schedule`)
  if (!/^\s*@/.test(expression)) return expression
  if (/^\s*@every\b/.test(expression))
    throw new InvalidSchedule(
      'must not be @every, which has no fixed times of day: give a period ({periodSeconds}) instead of a schedule',
    )
  if (dialect === 'cron' && expression === '@reboot')
    throw new InvalidSchedule(
      'must not be @reboot, which has no times: give a period ({periodSeconds}) within which the job pings',
    )
  const expanded = MACROS.get(expression)
  if (expanded === undefined)
    throw new InvalidSchedule(
      `is ${quote(expression)}, which is no macro: give one of ${[...MACROS.keys()].join(', ')}, in lower case and without spaces`,
    )
  return expanded
}

type Reject = (problem: string) => InvalidSchedule

function rejectorOf(part: string, rule: FieldRule): Reject {
  return (problem) =>
    new InvalidSchedule(
      `has ${quote(part)} as ${rule.name}: ${problem}; give values from ${rule.min} to ${rule.max}, such as ${rule.example}`,
    )
}

interface Part {
  readonly from: number
  readonly to: number
  readonly step: number
}

/**
 * `isStar` leaves the choice to the other field: in `cron` where the field begins with `*`, whatever its step and its
 * further parts are; in `kubernetes` where a part is `*` or `?` without a step above 1. Empty parts are skipped in
 * `kubernetes`, as robfig/cron does: `,` names no value at all.
 */
function parseField(text: string, rule: FieldRule, isCron: boolean): Field {
  const values = new Set<number>()
  const parts = text.split(',').filter((part) => isCron || part !== '')
  let isStar = isCron && text.startsWith('*')
  for (const part of parts) {
    const { from, to, step, isAny } = parsePart(part, rule, isCron)
    for (let value = from; value <= to; value += step) values.add(value)
    if (!isCron && isAny && step === 1) isStar = true
  }
  if (rule.names === WEEKDAYS && values.delete(7)) values.add(0)
  return { values: [...values].sort((a, b) => a - b), isStar }
}

/**
 * `*`, `5` and `5-9`, `*` and `5-9` with an optional `/step`. In `kubernetes` also `?`, and `5/15`, which runs to the
 * end of the field; the end of a range after a star is ignored.
 */
function parsePart(part: string, rule: FieldRule, isCron: boolean): Part & { isAny: boolean } {
  const reject = rejectorOf(part, rule)
  if (part === '') throw reject('a comma has a value on each side')
  if (isCron && part === '?') throw reject('cron has no ?, so write *')
  const read = isCron ? parseDigits : parseNumber
  const [range = '', stepText, ...moreSteps] = part.split('/')
  const [low = '', high, ...moreEnds] = range.split('-')
  const isAny = low === '*' || (low === '?' && !isCron)
  let from = rule.min
  let to = rule.max
  if (isAny && isCron && high !== undefined) throw reject('a star is no end of a range')
  if (!isAny) {
    from = parseValue(low, rule, read, reject)
    if (high !== undefined) to = parseValue(high, rule, read, reject)
    else if (isCron || stepText === undefined) to = from
    if (moreEnds.length > 0) throw reject('a range has one hyphen')
    if (isCron && high === undefined && stepText !== undefined)
      throw reject(`a step goes with * or a range, so write ${low}-${rule.max}/${stepText}`)
  }
  const step = stepText === undefined ? 1 : read(stepText, reject)
  if (moreSteps.length > 0) throw reject('a step has one slash')
  rejectLimits({ from, to, step }, rule, reject)
  return { from, to, step, isAny }
}

function rejectLimits({ from, to, step }: Part, rule: FieldRule, reject: Reject): void {
  if (from < rule.min) throw reject(`${from} is too small`)
  const isWeekday = rule.names === WEEKDAYS
  if (Math.max(from, to) > rule.max)
    throw reject(`${Math.max(from, to)} is too large${isWeekday && rule.max === 6 ? ', and Sunday is 0 or SUN' : ''}`)
  const sunday = isWeekday && rule.max === 7 && to === 0 ? ', and Sunday at its end is 7' : ''
  if (from > to) throw reject(`the range ends before it begins, so write it as two, joined by a comma${sunday}`)
  if (step === 0) throw reject('a step is 1 or more')
}

type ReadNumber = (text: string, reject: Reject) => number

function parseValue(text: string, rule: FieldRule, read: ReadNumber, reject: Reject): number {
  const index = rule.names.indexOf(text.toLowerCase())
  return index === -1 ? read(text, reject) : rule.min + index
}

/** As Go's strconv.Atoi, without negative numbers: accepts a sign and leading zeros, rejects more than 64 bits. */
const parseNumber: ReadNumber = (text, reject) => {
  if (!/^[+-]?[0-9]+$/.test(text)) throw reject(describeNoNumber(text))
  if (BigInt(text) > 2n ** 63n - 1n || BigInt(text) < 0n) throw reject(`${text} is out of range`)
  return Number(text)
}

const parseDigits: ReadNumber = (text, reject) => {
  if (/^[0-9]+$/.test(text)) return Number(text)
  throw reject(
    /^[0-9]*[LW]|#/i.test(text) ? `${quote(text)} is not cron's: it has no L, W or #` : describeNoNumber(text),
  )
}

function describeNoNumber(text: string): string {
  return text === '' ? 'a number is missing beside the - or /' : `${quote(text)} is not a number`
}

/** In JSON, so that messages have no control characters. */
function quote(text: string): string {
  return JSON.stringify(text)
}

/** Whether a day of the month or a weekday is enough for a slot. With a star on one side a slot takes both. */
export function isEitherDay({ days, weekdays }: Pick<Cron, 'days' | 'weekdays'>): boolean {
  return !(days.isStar || weekdays.isStar)
}

/** Whether a schedule names the day of a month and a weekday. */
export function matchesDay(cron: Pick<Cron, 'days' | 'weekdays'>, day: number, weekday: number): boolean {
  const isDay = cron.days.values.includes(day)
  const isWeekday = cron.weekdays.values.includes(weekday)
  return isEitherDay(cron) ? isDay || isWeekday : isDay && isWeekday
}
