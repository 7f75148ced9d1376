/**
 * The fields of a check in requests of healthchecks' API, with the types, limits and error texts of healthchecks (its
 * Management API, v3). Unknown fields are ignored, and the first wrong field is reported.
 */

import { isTag } from '../../domain/badge.ts'
import { TAGS } from '../../domain/check.ts'
import { comes, parseCron } from '../../domain/cron.ts'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { isVisible } from '../../domain/plain-text.ts'
import { isSlug } from '../../domain/slug.ts'
import { isTimeZone } from '../../domain/time-zone.ts'

const UNIQUE_FIELDS = ['name', 'slug', 'tags', 'timeout', 'grace'] as const
export type UniqueField = (typeof UNIQUE_FIELDS)[number]

export interface Spec {
  readonly channels?: string
  readonly desc?: string
  /** Seconds, as `timeout`. */
  readonly grace?: number
  readonly manual_resume?: boolean
  /** Without white space at its ends; empty if no character is visible. */
  readonly name?: string
  readonly schedule?: string
  readonly slug?: string
  readonly tags?: readonly string[]
  readonly timeout?: number
  readonly tz?: string
  readonly unique?: readonly UniqueField[]
}

/** Returns what follows the field's name in an error, or null. */
type Rule = (value: unknown) => string | null

const MIN_SECONDS = 60
const MAX_SECONDS = 31_536_000
const MAX_KEYWORDS = 200
const MAX_SCHEDULE = 100
const CONTROL = /\p{Cc}/u
const CONTROL_EXCEPT_LAYOUT = /[^\P{Cc}\t\n\r]/u

const seconds: Rule = (value) => {
  if (typeof value !== 'number' || !Number.isInteger(value)) return 'is not a number'
  if (value < MIN_SECONDS) return 'is too small'
  return value > MAX_SECONDS ? 'is too large' : null
}

const boolean: Rule = (value) => (typeof value === 'boolean' ? null : 'is not a boolean')

function string(max = Number.POSITIVE_INFINITY, forbidden = CONTROL): Rule {
  return (value) => {
    if (typeof value !== 'string') return 'is not a string'
    if (value.length > max && Array.from(value).length > max) return 'is too long'
    return !value.isWellFormed() || forbidden.test(value) ? 'has characters that cannot be stored' : null
  }
}

/** Has no counterpart here: only the default of healthchecks is accepted, of a value that `rule` accepts. */
function only(standard: '' | false, rule: Rule): Rule {
  return (value) =>
    rule(value) ?? (value === standard ? null : `is not supported here: only ${JSON.stringify(standard)} is accepted`)
}
const noKeywords = only('', string(MAX_KEYWORDS))
const noFilter = only(false, boolean)

const slug: Rule = (value) => {
  const fault = string(LIMITS.slugLength)(value)
  if (fault !== null) return fault
  // Ours also begin and end with a letter or digit; an empty one is none.
  return value === '' || isSlug(value as string) ? null : 'does not match pattern'
}

const schedule: Rule = (value) => {
  const fault = string(MAX_SCHEDULE)(value)
  if (fault !== null) return fault
  const text = value as string
  if (text.trim().split(/\s+/).length !== 5)
    return 'is not a valid cron or OnCalendar expression (OnCalendar is not supported here)'
  return isCron(text) ? null : 'is not a valid cron or OnCalendar expression'
}

function isCron(text: string): boolean {
  try {
    return comes(parseCron(text.trim(), 'UTC', 'cron'))
  } catch {
    return false
  }
}

const timeZone: Rule = (value) => {
  if (typeof value !== 'string') return 'is not a string'
  return value.length <= LIMITS.nameLength && isTimeZone(value) ? null : 'is not a valid timezone'
}

const tags: Rule = (value) => {
  if (typeof value !== 'string') return 'is not a string'
  const words = toTags(value)
  if (words.length > TAGS.max) return `has more than ${TAGS.max} tags`
  return words.every(isTag)
    ? null
    : 'has a tag with other characters than A-Z, a-z, 0-9, _, ., :, / and -, or with more than 50'
}

const toTags = (text: string): string[] => [...new Set(text.split(/\s+/).filter((word) => word !== ''))]

const methods: Rule = (value) => {
  if (value !== '' && value !== 'POST') return 'has unexpected value'
  return value === '' ? null : 'is not supported here: only "" is accepted'
}

/** In the order in which healthchecks reports them. */
const RULES = {
  channels: string(),
  desc: string(LIMITS.descriptionLength, CONTROL_EXCEPT_LAYOUT),
  failure_kw: noKeywords,
  filter_subject: noFilter,
  filter_body: noFilter,
  filter_http_body: noFilter,
  filter_default_fail: noFilter,
  grace: seconds,
  manual_resume: boolean,
  methods,
  name: string(LIMITS.nameLength),
  schedule,
  slug,
  start_kw: noKeywords,
  subject: noKeywords,
  subject_fail: noKeywords,
  success_kw: noKeywords,
  tags,
  timeout: seconds,
  tz: timeZone,
} as const satisfies Record<string, Rule>

export function jsonFault(text: string): AppError {
  return new AppError('invalid_request', `json validation error: ${text}`)
}

/** Throws AppError `invalid_request` with the text of healthchecks. */
export function readSpec(body: Readonly<Record<string, unknown>>): Spec {
  for (const [name, rule] of Object.entries(RULES)) {
    const fault = Object.hasOwn(body, name) ? rule(body[name]) : null
    if (fault !== null) throw jsonFault(`${name} ${fault}`)
  }
  const own = <Value>(name: string, read: (value: never) => Value = (value) => value) =>
    Object.hasOwn(body, name) ? { [name]: read(body[name] as never) } : {}
  return {
    ...own('channels'),
    ...own('desc'),
    ...own('grace'),
    ...own('manual_resume'),
    ...own('name', (text: string) => (isVisible(text) ? text.trim() : '')),
    ...own('schedule', (text: string) => text.trim()),
    ...own('slug'),
    ...own('tags', toTags),
    ...own('timeout'),
    ...own('tz'),
    ...own('unique', readUnique),
  }
}

function readUnique(value: unknown): readonly UniqueField[] {
  if (!Array.isArray(value)) throw jsonFault('unique is not an array')
  const isKnown = (item: unknown) => (UNIQUE_FIELDS as readonly unknown[]).includes(item)
  if (!value.every(isKnown)) throw jsonFault("an item in 'unique' has unexpected value")
  return value
}
