/**
 * The fields of requests and responses. Each has one rule, whose text follows the field's name in an error, and a description
 * for /openapi.json. Lengths are counted in Unicode code points (design, section 3.1), as JSON Schema counts them.
 */

import { z } from 'zod'
import { isPassword, PASSWORD_LENGTH } from '../../auth/passwords.ts'
import { isEmail } from '../../domain/email.ts'
import { rule } from '../../domain/errors.ts'
import { isUuid } from '../../domain/ids.ts'
import { LIMITS } from '../../domain/limits.ts'
import { decodeCursor, PAGE_LIMIT } from '../../domain/page.ts'

const CONTROL = /\p{Cc}/u
const CONTROL_EXCEPT_LAYOUT = /[^\P{Cc}\t\n\r]/u

interface TextOptions {
  readonly min: number
  readonly max: number
  readonly description: string
  /** Line breaks and tabs are allowed, and nothing is trimmed. */
  readonly isLong?: boolean
}

/** PostgreSQL stores neither NUL nor half a surrogate pair; other control characters spoil logs, terminals and mails. */
function text({ min, max, description, isLong = false }: TextOptions) {
  const refused = isLong ? CONTROL_EXCEPT_LAYOUT : CONTROL
  const length = min === 0 ? `at most ${max}` : `${min} to ${max}`
  const says = rule(
    `must be text of ${length} characters, without control characters${isLong ? ' other than line breaks and tabs' : ''}`,
  )
  const isFit = (value: string) => {
    // The first comparison spares counting a body's worth of characters: a code point has at most two units.
    if (value.length > 2 * max || !value.isWellFormed() || refused.test(value)) return false
    const points = Array.from(value).length
    return points >= min && points <= max
  }
  const string = isLong ? z.string(says) : z.string(says).trim()
  return string.refine(isFit, says).meta({ description, ...(min === 0 ? {} : { minLength: min }), maxLength: max })
}

export const name = (of: string) =>
  text({ min: 1, max: LIMITS.nameLength, description: `Name of the ${of}; surrounding white space is dropped.` })

export const description = () =>
  text({
    min: 0,
    max: LIMITS.descriptionLength,
    isLong: true,
    description: 'Free text: what the job does, whom to ask.',
  })

const SLUG = /^[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?$/

export const slug = (of: string) => {
  const says = rule(
    `must be 1 to ${LIMITS.slugLength} characters of a-z, 0-9, - and _, and begin and end with a letter or digit`,
  )
  return z
    .string(says)
    .refine((value) => value.length <= LIMITS.slugLength && SLUG.test(value), says)
    .meta({
      description: `Short name of the ${of} for addresses and labels, unique within its project or organization. Default: derived from the name.`,
      maxLength: LIMITS.slugLength,
      pattern: SLUG.source,
    })
}

/** A whole number of seconds. JSON has no integers: 60, 60.0 and 6e1 are the same number; "60", 60.5 and null are rejected. */
export const seconds = ({ min, max }: { min: number; max: number }) => {
  const says = rule(`must be an integer from ${min} to ${max}`)
  return z.int(says).min(min, says).max(max, says)
}

/** The id of another object, in a body or a query. */
export const uuid = (description: string) => {
  const says = rule('must be a UUID')
  return z.string(says).refine(isUuid, says).toLowerCase().meta({ format: 'uuid', description })
}

/** The id in a path. A malformed id gets the same error as an unknown one. */
export const idOf = (what: string) =>
  z.object({
    id: z
      .string()
      .refine(isUuid, `${what} not found`)
      .toLowerCase()
      .meta({ format: 'uuid', description: `Id of the ${what}.` }),
  })

/** Only the length is checked here: checks/read-spec.ts reads the expression and the zone. */
const bounded = (what: string, max: number, description: string) => {
  const says = rule(`must be ${what} of at most ${max} characters`)
  return z
    .string(says)
    .refine((value) => value.length <= max, says)
    .meta({ description, maxLength: max })
}

export const schedule = () =>
  bounded(
    'a cron expression',
    LIMITS.scheduleLength,
    'Cron expression of five fields, or a macro such as @hourly, read as a Kubernetes CronJob reads it.',
  )

export const timeZone = () =>
  bounded(
    'the name of an IANA time zone',
    LIMITS.nameLength,
    'IANA time zone in which `schedule` is read. Default: UTC.',
  )

/** A given credential: any text of a bounded length. */
export const credential = (what: string) => {
  const says = rule('must be text of 1 to 1024 characters')
  return z
    .string(says)
    .refine(
      (value) => value.length >= 1 && value.length <= 1_024 && value.isWellFormed() && !value.includes('\0'),
      says,
    )
    .meta({ description: what, minLength: 1, maxLength: 1_024 })
}

export const email = () => {
  const says = rule('must be an e-mail address')
  return z.string(says).trim().refine(isEmail, says).meta({ description: 'E-mail address.', format: 'email' })
}

export const newPassword = () => {
  const { min, max } = PASSWORD_LENGTH
  const says = rule(`must be text of ${min} to ${max} characters`)
  const isFit = (value: string) => isPassword(value) && value.isWellFormed()
  return z
    .string(says)
    .refine(isFit, says)
    .meta({ description: 'Password.', format: 'password', minLength: min, maxLength: max })
}

export const oneOf = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values, rule(`must be one of ${values.join(', ')}`))

/** A moment in a request: ISO 8601 with its offset. Becomes milliseconds since the epoch. */
export const moment = () => {
  const says = rule('must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z')
  return z.iso.datetime({ offset: true, ...says }).transform((value) => Date.parse(value))
}

// Query parameters arrive as text ----------------------------------------------------------------------------------------

/** The largest number of entries; more than 1,000 means 1,000 (design, section 3.2). */
export const limit = (standard: number) => {
  const says = rule('must be an integer of at least 1')
  return z
    .string(says)
    .refine((value) => /^\d+$/.test(value) && Number(value) >= 1, says)
    .transform((value) => Math.min(Number(value), PAGE_LIMIT))
    .default(standard)
    .meta({
      type: 'integer',
      minimum: 1,
      default: standard,
      description: `The largest number of entries to return; values above ${PAGE_LIMIT} mean ${PAGE_LIMIT}.`,
    })
}

export const cursor = () =>
  z
    .string()
    .transform((value, context) => {
      const place = decodeCursor(value)
      if (place === null) context.addIssue('must be the next_cursor of an earlier response')
      return place
    })
    .optional()
    .meta({ description: '`next_cursor` of the previous response: returns the page that follows it.' })

/** Words to search for. Text that PostgreSQL cannot store is rejected. */
export const words = (description: string) => text({ min: 0, max: LIMITS.nameLength, description }).optional()

// Responses --------------------------------------------------------------------------------------------------------------

/** ISO 8601, UTC, milliseconds, Z; written by `toIso`. */
export const instant = (description: string) => z.string().meta({ format: 'date-time', description })

export const nextCursor = () =>
  z.string().optional().meta({ description: 'Present when there are more entries: pass it as `cursor`.' })

/** For lists that are short in practice: a full page by default. */
export const PageQuery = z.object({ limit: limit(PAGE_LIMIT), cursor: cursor() })
