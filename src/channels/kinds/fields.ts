/** What the configs of several kinds have in common: URLs whose secrets are hidden when they are shown, and lists. */

import { z } from 'zod'
import { invalidField, rule } from '../../domain/errors.ts'
import { isDecodable } from '../../runtime/percent.ts'

export const MAX_URL_LENGTH = 2_048
const HIDDEN = '…'
const URL_RULE = `must be an http or https URL of at most ${MAX_URL_LENGTH} characters, without white space and without #`
/** URL repairs a line break in the middle and missing slashes without a word. They are most likely mistakes, so they are rejected. */
const WEB_URL = /^https?:\/\/[^\s\p{C}/\\][^\s\p{C}]*$/iu

/** The `config` of one kind; fields that it does not have are rejected. */
export function configOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, rule('must be an object'))
}

/** The same for documents, in a form that every regular expression library reads. `without`: a character that is not allowed either. */
const documentedPattern = (without: string) => {
  const excluded = `\\s\\x00-\\x20\\x7f-\\x9f#${without}`
  return `^[hH][tT][tT][pP][sS]?://[^/\\\\${excluded}][^${excluded}]*$`
}

/** An http or https URL. `extra`: a further condition, its words after those of the rule, and a character that it excludes. */
export function webUrl(
  description: string,
  extra?: { readonly words: string; readonly holds: (url: string) => boolean; readonly without: string },
) {
  const error = rule(extra === undefined ? URL_RULE : `${URL_RULE}, and ${extra.words}`)
  const isFit = (text: string) => isWebUrl(text) && (extra?.holds(text) ?? true)
  return z
    .string(error)
    .refine(isFit, error)
    .meta({
      description,
      maxLength: MAX_URL_LENGTH,
      pattern: documentedPattern(extra?.without ?? ''),
    })
}

function isWebUrl(text: string): boolean {
  if (text.length > 2 * MAX_URL_LENGTH || Array.from(text).length > MAX_URL_LENGTH || !WEB_URL.test(text)) return false
  if (!URL.canParse(text)) return false
  const { username, password } = new URL(text)
  // Credentials are sent decoded, in a header.
  return !text.includes('#') && isDecodable(username) && isDecodable(password)
}

/**
 * A text that is secret as a whole: `hideAll` shows it as `…`, and `reveal` keeps it where it comes back as that.
 * `pattern`: of the whole text; `error`: what the text must be.
 */
export function secretText(pattern: RegExp, error: string, description: string) {
  return z
    .string(rule(error))
    .refine((text) => text === HIDDEN || pattern.test(text), rule(error))
    .meta({
      description: `${description}. It is a secret: responses show …, and … keeps its value.`,
      pattern: `^(?:${HIDDEN}|${pattern.source.replace(/^\^|\$$/g, '')})$`,
    })
}

export const hideAll = (_: string): string => HIDDEN

/** A list of 1 to `max` items. Duplicates are removed. */
export function listOf<Item extends z.ZodType>(item: Item, max: number, what: string) {
  const error = rule(`must be a list of 1 to ${max} ${what}`)
  return z
    .array(item, error)
    .min(1, error)
    .max(max, error)
    .transform((values) => [...new Set(values)])
}

/** Scheme, credentials, host and path, query. A regular expression, because URL would normalize what is shown. */
const URL_PARTS = /^(https?:\/\/)([^/?#\\]*@)?([^?#]*)(\?[^#]*)?/i

/** The URL with `…` instead of its credentials and its query. */
export function hideCredentials(url: string): string {
  return url.replace(
    URL_PARTS,
    (_, scheme: string, credentials: string | undefined, rest: string, query: string | undefined) =>
      `${scheme}${credentials === undefined ? '' : `${HIDDEN}@`}${rest}${query === undefined ? '' : `?${HIDDEN}`}`,
  )
}

/** The origin of the URL, and `…`. Takes a URL with hidden credentials, too. */
export function hidePath(url: string): string {
  return `${new URL(url.replace(`${HIDDEN}@`, '')).origin}/${HIDDEN}`
}

/**
 * The URL that `given` stands for: a stored one when `given` is how `hide` shows it, else `given` itself. So a client
 * can send back the config that it has read. Throws AppError `invalid_request` for any other URL that contains `…`.
 * `field`: its path in `config`.
 */
export function reveal(given: string, stored: readonly string[], hide: (url: string) => string, field: string): string {
  const kept = stored.find((url) => hide(url) === given)
  if (kept !== undefined) return kept
  if (!given.includes(HIDDEN)) return given
  const message = `must be written out: ${HIDDEN} stands for what is not shown, and the rest is not as it was`
  throw invalidField(`config.${field}`, message)
}
