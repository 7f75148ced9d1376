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
type UniqueField = (typeof UNIQUE_FIELDS)[number]

/** Returns the value of a field. `fault` makes the error from what follows the field's name. */
type Read<Value> = (value: unknown, fault: (what: string) => AppError) => Value

const MIN_SECONDS = 60
const MAX_SECONDS = 31_536_000
const MAX_KEYWORDS = 200
const MAX_SCHEDULE = 100
const CONTROL = /\p{Cc}/u
const CONTROL_EXCEPT_LAYOUT = /[^\P{Cc}\t\n\r]/u

const seconds: Read<number> = (value, fault) => {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw fault('is not a number')
  if (value < MIN_SECONDS) throw fault('is too small')
  if (value > MAX_SECONDS) throw fault('is too large')
  return value
}

const boolean: Read<boolean> = (value, fault) => {
  if (typeof value !== 'boolean') throw fault('is not a boolean')
  return value
}

function string(max = Number.POSITIVE_INFINITY, forbidden = CONTROL): Read<string> {
  return (value, fault) => {
    if (typeof value !== 'string') throw fault('is not a string')
    if (value.length > max && Array.from(value).length > max) throw fault('is too long')
    if (!value.isWellFormed() || forbidden.test(value)) throw fault('has characters that cannot be stored')
    return value
  }
}

/** Has no counterpart here: only the default of healthchecks is accepted. */
function only<Value>(standard: Value, read: Read<Value>): Read<undefined> {
  return (value, fault) => {
    if (read(value, fault) !== standard)
      throw fault(`is not supported here: only ${JSON.stringify(standard)} is accepted`)
  }
}
const noKeywords = only('', string(MAX_KEYWORDS))
const noFilter = only(false, boolean)

/** Without white space at its ends; empty if no character is visible. */
const name: Read<string> = (value, fault) => {
  const text = string(LIMITS.nameLength)(value, fault)
  return isVisible(text) ? text.trim() : ''
}

const slug: Read<string> = (value, fault) => {
  const text = string(LIMITS.slugLength)(value, fault)
  // Ours also begin and end with a letter or digit; an empty one is none.
  if (text !== '' && !isSlug(text)) throw fault('does not match pattern')
  return text
}

const schedule: Read<string> = (value, fault) => {
  const text = string(MAX_SCHEDULE)(value, fault).trim()
  if (text.split(/\s+/).length !== 5)
    throw fault('is not a valid cron or OnCalendar expression (OnCalendar is not supported here)')
  if (!isCron(text)) throw fault('is not a valid cron or OnCalendar expression')
  return text
}

function isCron(text: string): boolean {
  try {
    return comes(parseCron(text, 'UTC', 'cron'))
  } catch {
    return false
  }
}

const timeZone: Read<string> = (value, fault) => {
  if (typeof value !== 'string') throw fault('is not a string')
  if (value.length > LIMITS.nameLength || !isTimeZone(value)) throw fault('is not a valid timezone')
  return value
}

const tags: Read<readonly string[]> = (value, fault) => {
  if (typeof value !== 'string') throw fault('is not a string')
  const words = [...new Set(value.split(/\s+/).filter((word) => word !== ''))]
  if (words.length > TAGS.max) throw fault(`has more than ${TAGS.max} tags`)
  if (words.every(isTag)) return words
  throw fault('has a tag with other characters than A-Z, a-z, 0-9, _, ., :, / and -, or with more than 50')
}

const methods: Read<'' | 'POST'> = (value, fault) => {
  if (value !== '' && value !== 'POST') throw fault('has unexpected value')
  return value
}

const unique: Read<readonly UniqueField[]> = (value, fault) => {
  if (!Array.isArray(value)) throw fault('is not an array')
  const isKnown = (item: unknown) => (UNIQUE_FIELDS as readonly unknown[]).includes(item)
  if (!value.every(isKnown)) throw jsonFault("an item in 'unique' has unexpected value")
  return value
}

/** In the order in which healthchecks reports them. */
const FIELDS = {
  channels: string(),
  desc: string(LIMITS.descriptionLength, CONTROL_EXCEPT_LAYOUT),
  failure_kw: noKeywords,
  filter_subject: noFilter,
  filter_body: noFilter,
  filter_http_body: noFilter,
  filter_default_fail: noFilter,
  grace: seconds,
  manual_resume: boolean,
  methods: only('', methods),
  name,
  schedule,
  slug,
  start_kw: noKeywords,
  subject: noKeywords,
  subject_fail: noKeywords,
  success_kw: noKeywords,
  tags,
  timeout: seconds,
  tz: timeZone,
  unique,
} as const satisfies Record<string, Read<unknown>>

/** Without the fields that a request leaves out. */
export type Spec = { readonly [Name in keyof typeof FIELDS]?: ReturnType<(typeof FIELDS)[Name]> }

export function jsonFault(text: string): AppError {
  return new AppError('invalid_request', `json validation error: ${text}`)
}

/** Throws AppError `invalid_request` with the text of healthchecks. */
export function readSpec(body: Readonly<Record<string, unknown>>): Spec {
  const given = Object.entries(FIELDS).filter(([name]) => Object.hasOwn(body, name))
  return Object.fromEntries(
    given.map(([name, read]) => [name, read(body[name], (what) => jsonFault(`${name} ${what}`))]),
  )
}
