/**
 * The fields of requests and responses. Each has one rule, whose text follows the field's name in an error, and a description
 * for /openapi.json. Lengths are counted in Unicode code points (design, section 3.1), as JSON Schema counts them.
 */

import { z } from 'zod'
import { ASCII_EMAIL_RULE, isAscii, isEmail, toUserEmail, USER_EMAIL_RULE } from '../../domain/email.ts'
import { rule } from '../../domain/errors.ts'
import { isUuid } from '../../domain/ids.ts'
import { isStorable } from '../../domain/instant.ts'
import { LIMITS } from '../../domain/limits.ts'
import { decodeCursor, PAGE_LIMIT } from '../../domain/page.ts'
import { findPasswordFault, GIVEN_LENGTH, PASSWORD_LENGTH } from '../../domain/password.ts'
import { isVisible } from '../../domain/plain-text.ts'
import { isSlug, SLUG, SLUG_RULE } from '../../domain/slug.ts'

const CONTROL = /\p{Cc}/u
const CONTROL_EXCEPT_LAYOUT = /[^\P{Cc}\t\n\r]/u

/** The same for the document, in a form that every regular expression library reads. */
const NO_CONTROL = '[^\\x00-\\x1f\\x7f-\\x9f]'
const NO_CONTROL_EXCEPT_LAYOUT = '[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]'
/** White space is dropped at both ends, and something must be left. The document does not say that it must be visible. */
const NOT_BLANK = `^${NO_CONTROL}*[^\\x00-\\x1f\\x7f-\\x9f\\s]${NO_CONTROL}*$`

/** An object with a name in the document. Of a request other fields are rejected, of a response they are dropped. */
export const shape = <Shape extends z.ZodRawShape>(id: string, fields: Shape) => z.object(fields).meta({ id })
export const strictShape = <Shape extends z.ZodRawShape>(id: string, fields: Shape) =>
  z.strictObject(fields).meta({ id })

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
    return points >= min && points <= max && (min === 0 || isVisible(value))
  }
  const string = isLong ? z.string(says) : z.string(says).trim()
  const pattern = isLong ? `^${NO_CONTROL_EXCEPT_LAYOUT}*$` : min === 0 ? `^${NO_CONTROL}*$` : NOT_BLANK
  return string
    .refine(isFit, says)
    .meta({ description, ...(min === 0 ? {} : { minLength: min }), maxLength: max, pattern })
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

export const comment = () =>
  text({ min: 0, max: LIMITS.commentLength, description: 'Why, for the others who see the check.' })

function stringThat(isFit: (value: string) => boolean, text: string) {
  const says = rule(text)
  return z.string(says).refine(isFit, says)
}

export const slug = (of: string) =>
  stringThat(isSlug, SLUG_RULE).meta({
    description: `Short name of the ${of} for addresses and labels, unique within its project or organization. Default: derived from the name.`,
    maxLength: LIMITS.slugLength,
    pattern: SLUG.source,
  })

/** A whole number. JSON has no integers: 60, 60.0 and 6e1 are the same number; "60", 60.5 and null are rejected. */
export const integerWithin = ({ min, max }: { min: number; max: number }) => {
  const says = rule(`must be an integer from ${min} to ${max}`)
  return z.int(says).min(min, says).max(max, says)
}

export const uuid = (description: string) =>
  stringThat(isUuid, 'must be a UUID').toLowerCase().meta({ format: 'uuid', description })

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
const bounded = (what: string, max: number, description: string) =>
  stringThat((value) => value.length <= max, `must be ${what} of at most ${max} characters`).meta({
    description,
    maxLength: max,
  })

export const schedule = () =>
  bounded(
    'a cron expression',
    LIMITS.scheduleLength,
    'Cron expression of five fields, or a macro such as @hourly, read as Debian cron reads it (crontab(5)).',
  )

export const timeZone = () =>
  bounded(
    'the name of an IANA time zone',
    LIMITS.nameLength,
    'IANA time zone in which `schedule` is read. Default: UTC.',
  )

/** A given credential: any text of a bounded length that PostgreSQL can store. */
export const credential = (what: string) => {
  const hasLength = (value: string) =>
    value.length >= 1 && value.length <= 2 * GIVEN_LENGTH && Array.from(value).length <= GIVEN_LENGTH
  return stringThat(hasLength, `must be text of 1 to ${GIVEN_LENGTH} characters`)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), rule('must be text without the NUL character'))
    .meta({ description: what, minLength: 1, maxLength: GIVEN_LENGTH, pattern: '^[^\\x00]*$' })
}

/** ASCII characters that an address of a user may have, those before the @ without those that quote, and labels behind it. */
const EMAIL = '^[!#-;=?A-~]{1,64}@[!#-\\-/-;=?A-~]+(\\.[!#-\\-/-;=?A-~]+)*$'

/** Of a user; becomes lower case. */
export const email = () =>
  z
    .string(rule(USER_EMAIL_RULE))
    .trim()
    .refine(isAscii, { error: ASCII_EMAIL_RULE, abort: true })
    .refine(isEmail, USER_EMAIL_RULE)
    .meta({
      description: 'E-mail address, of ASCII characters. It is stored in lower case.',
      format: 'email',
      maxLength: 254,
      pattern: EMAIL,
    })
    .transform((value) => toUserEmail(value) ?? value)

/** That it is not the user's e-mail address is checked where that is known. */
export const newPassword = () => {
  const { min, max } = PASSWORD_LENGTH
  return z
    .string(rule(`must be text of ${min} to ${max} characters`))
    .superRefine((value, context) => {
      const fault = findPasswordFault(value, null)
      if (fault !== null) context.addIssue(fault)
    })
    .meta({
      description: 'Password: neither the e-mail address nor one of the most common ones.',
      format: 'password',
      minLength: min,
      maxLength: max,
    })
}

export const oneOf = <const Values extends readonly [string, ...string[]]>(values: Values) =>
  z.enum(values, rule(`must be one of ${values.join(', ')}`))

/** A moment in a request: ISO 8601 with its offset. Becomes milliseconds since the epoch. */
export const moment = () => {
  const says = rule('must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z')
  return z.iso
    .datetime({ offset: true, ...says })
    .transform((value) => Date.parse(value))
    .refine(isStorable, 'must lie in the years 1 to 9999 in UTC')
}

// Query parameters arrive as text ----------------------------------------------------------------------------------------

/** The largest number of entries; more than 1,000 means 1,000 (design, section 3.2). */
export const limit = (standard: number) =>
  stringThat((value) => /^\d+$/.test(value) && Number(value) >= 1, 'must be an integer of at least 1')
    .transform((value) => Math.min(Number(value), PAGE_LIMIT))
    .default(standard)
    .meta({
      type: 'integer',
      minimum: 1,
      default: standard,
      description: `The largest number of entries to return; values above ${PAGE_LIMIT} mean ${PAGE_LIMIT}. A page ends at about 1 MB, too, with fewer entries then.`,
    })

/**
 * The lists that have pages, with the ids of their schemas. A cursor begins with the name of its list, so that it is
 * not taken for one of another.
 */
const LISTS = {
  checks: 'CheckList',
  pings: 'PingList',
  flips: 'FlipList',
  channels: 'ChannelList',
  deliveries: 'DeliveryList',
  silences: 'SilenceList',
  projects: 'ProjectList',
  api_keys: 'ApiKeyList',
  users: 'UserList',
  sessions: 'SessionList',
  audit: 'AuditList',
} as const
export type List = keyof typeof LISTS

const EARLIER = 'must be the next_cursor of an earlier response'
const isList = (name: string): name is List => Object.hasOwn(LISTS, name)

/** What stands behind the name of the list. */
const textOf = (list: List) =>
  z.string().transform((value, context) => {
    // Without a name the list is this one.
    const [, of = list, text] = /^(?:([a-z_]+)\.)?([\w-]{51,})$/.exec(value) ?? []
    if (text !== undefined && of === list) return text
    context.addIssue(text !== undefined && isList(of) ? `${EARLIER} of this list, not of the list ${of}` : EARLIER)
    return z.NEVER
  })

const describeCursor = (list: List, length: string) => ({
  description: '`next_cursor` of the previous response: returns the page that follows it.',
  minLength: list.length + 52,
  pattern: `^${list}\\.[A-Za-z0-9_-]{${length}}$`,
})

/** Of a list with orders of its own, which reads the text. */
export const cursorText = (list: List) => textOf(list).optional().meta(describeCursor(list, '51,'))

export const cursor = (list: List) =>
  textOf(list)
    .transform((text, context) => {
      const place = decodeCursor(text)
      if (place === null) context.addIssue(EARLIER)
      return place
    })
    .optional()
    .meta(describeCursor(list, '51,71'))

/** Words to search for. Text that PostgreSQL cannot store is rejected. */
export const words = (description: string) => text({ min: 0, max: LIMITS.nameLength, description }).optional()

// Responses --------------------------------------------------------------------------------------------------------------

export const string = (description: string) => z.string().meta({ description })
export const stringOrNull = (description: string) => z.string().nullable().meta({ description })
export const integer = (description: string) => z.int().meta({ description })
export const integerOrNull = (description: string) => z.int().nullable().meta({ description })
export const id = (description?: string) => z.string().meta({ format: 'uuid', description })
export const idOrNull = (description?: string) => z.string().nullable().meta({ format: 'uuid', description })

/** ISO 8601, UTC, milliseconds, Z; written by `toIso`. */
export const instant = (description: string) => z.string().meta({ format: 'date-time', description }).brand<'instant'>()

export const creator = () =>
  z
    .object({ kind: z.enum(['user', 'api_key']), id: id(), name: z.string() })
    .nullable()
    .meta({
      description:
        "Who created it, by the e-mail address or the key's name of that moment. Null: the first start, or a sign-in with an identity provider.",
    })

/** The name of the entries of a list in its response. */
export const entriesOf = (list: List) => (list === 'audit' ? 'entries' : list)

export const listOf = (list: List, entry: z.ZodType) =>
  z
    .object({
      [entriesOf(list)]: z.array(entry),
      next_cursor: stringOrNull('Pass it as `cursor` to get the next page. Null: there are no more entries.'),
    })
    .meta({ id: LISTS[list] })

/** `limit` and `cursor`. `standard`: entries without a `limit`; a full page for lists that are short in practice. */
export const page = (list: List, standard = PAGE_LIMIT) => ({ limit: limit(standard), cursor: cursor(list) })

export const pageQuery = (list: List, standard?: number) => z.object(page(list, standard))
