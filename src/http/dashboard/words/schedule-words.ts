/**
 * Schedules in words. cronstrue writes the words of a plain spelling of what domain/cron.ts has read: it reads several
 * spellings in another way (`*\/7`, `?`, `+5`, `1-31` beside a weekday).
 */

import cronstrue from 'cronstrue'
import type { Instant } from '../../../domain/check.ts'
import { type Cron, type Dialect, isEitherDay, nextSlot, parseCron } from '../../../domain/cron.ts'
import { everyWords } from './time-words.ts'

/** What a check stores of its schedule: a period, or an expression and its zone. */
export interface ScheduleTexts {
  readonly periodSeconds: number | null
  readonly schedule: string | null
  readonly timeZone: string | null
  /** Who reads the expression. Default: Kubernetes. */
  readonly dialect?: Dialect | null
}

/** `At 02:00 every day, Berlin`, `Every 15 minutes`. A schedule without short words is shown as written. */
export function scheduleWords({ periodSeconds, schedule, timeZone, dialect }: ScheduleTexts): string {
  if (schedule === null) return periodSeconds === null ? 'No schedule' : everyWords(periodSeconds)
  const zone = timeZone ?? 'UTC'
  return `${cronWords(schedule, zone, dialect ?? 'kubernetes') ?? `Cron schedule ${schedule.trim()}`}, ${cityOf(zone)}`
}

/** Longer words are harder to read than the expression. */
const MOST_CHARACTERS = 140

/** By dialect, zone and expression: a page has 100 rows, and each would take a tenth of a millisecond. */
const known = new Map<string, string | null>()
const MOST_KNOWN = 1_000

function cronWords(schedule: string, zone: string, dialect: Dialect): string | null {
  const key = `${dialect} ${zone} ${schedule}`
  const found = known.get(key)
  if (found !== undefined) return found
  const words = makeCronWords(schedule, zone, dialect)
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(key, words)
  return words
}

function makeCronWords(schedule: string, zone: string, dialect: Dialect): string | null {
  try {
    const plain = spellPlainly(parseCron(schedule, zone, dialect))
    const words = plain.map(describe).join('; and ')
    return plain.length === 0 || words.length > MOST_CHARACTERS ? null : words
  } catch {
    return null
  }
}

const OPTIONS = { use24HourTimeFormat: true } as const

/** Of a plain spelling. */
function describe(fields: PlainFields, index: number): string {
  // Of a plain spelling both days must match.
  const words = cronstrue.toString(fields.join(' '), OPTIONS).replace(', and on ', ', only on ')
  const [, hour, ...days] = fields
  const isEveryDay = hour !== '*' && !hour!.startsWith('*/') && days.every((field) => field === '*')
  const whole = isEveryDay ? `${words}${words.includes(',') ? ',' : ''} every day` : words
  return index === 0 ? whole : `${whole[0]!.toLowerCase()}${whole.slice(1)}`
}

type PlainFields = readonly string[]

/**
 * A spelling that every reader of crontabs reads alike: `*`, `*\/n` where n divides the field, numbers and ranges. Two
 * spellings where one of both days is enough; none for a schedule that names no time.
 */
export function spellPlainly(cron: Cron): PlainFields[] {
  const { minutes, hours, days, months, weekdays } = cron
  const when = [spell(minutes, 0, 59), spell(hours, 0, 23)]
  const months_ = spell(months, 1, 12)
  const day = spell(days, 1, 31)
  const weekday = spell(weekdays, 0, 6)
  if ([...when, months_].includes('')) return []
  if (!isEitherDay(cron)) return day === '' || weekday === '' ? [] : [[...when, day, months_, weekday]]
  if (day === '*' || weekday === '*') return [[...when, '*', months_, '*']]
  const either: PlainFields[] = []
  if (day !== '') either.push([...when, day, months_, '*'])
  if (weekday !== '') either.push([...when, '*', months_, weekday])
  return either
}

function spell({ values }: Cron['minutes'], min: number, max: number): string {
  const size = max - min + 1
  if (values.length === size) return '*'
  const step = (values[1] ?? 0) - (values[0] ?? 0)
  const isStepped =
    values.length > 1 &&
    min === 0 &&
    max > 6 &&
    size % step === 0 &&
    values.length === size / step &&
    values.every((value, index) => value === values[0]! + index * step)
  if (isStepped && values[0] === 0) return `*/${step}`
  if (isStepped && values.length > 6) return `${values[0]}-${max}/${step}`
  return spellRanges(values)
}

/** Three neighbours or more are a range. */
function spellRanges(values: readonly number[]): string {
  const parts: string[] = []
  for (let index = 0; index < values.length; ) {
    let end = index
    while (values[end + 1] === values[end]! + 1) end++
    if (end - index >= 2) parts.push(`${values[index]}-${values[end]}`)
    else parts.push(...values.slice(index, end + 1).map(String))
    index = end + 1
  }
  return parts.join(',')
}

/** Areas whose places are cities. Other names (`US/Pacific`, `Etc/GMT+5`) say less without their area. */
const AREAS = 'Africa America Antarctica Arctic Asia Atlantic Australia Europe Indian Pacific'.split(' ')
const UTC = 'Etc/UTC Etc/UCT Etc/Universal Etc/Zulu UCT Universal Zulu'.split(' ')

/** `Berlin` of `Europe/Berlin`, `New York` of `America/New_York`. */
export function cityOf(zone: string): string {
  if (UTC.includes(zone)) return 'UTC'
  const [area = '', ...places] = zone.split('/')
  const city = places.at(-1)
  return city === undefined || !AREAS.includes(area) ? zone : city.replaceAll('_', ' ')
}

/** The first `count` slots after an instant; fewer where the expression ends. */
export function nextSlots(cron: Cron, after: Instant, count: number): Instant[] {
  const slots: Instant[] = []
  for (let at = nextSlot(cron, after); at !== null && slots.length < count; at = nextSlot(cron, at)) slots.push(at)
  return slots
}
