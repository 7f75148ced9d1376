/** Slugs: the short names of checks and projects, as people type them (design, section 3.1). */

import anyAscii from 'any-ascii'
import { LIMITS } from './limits.ts'

/** What any-ascii writes inside of a word for letters that Latin does not have. */
const APOSTROPHES = /['`]/g

/** Up to `LIMITS.slugLength` characters. */
export const SLUG = /^[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?$/
export const SLUG_RULE = `must be 1 to ${LIMITS.slugLength} characters of a-z, 0-9, - and _, and begin and end with a letter or digit`

export const isSlug = (text: string) => text.length <= LIMITS.slugLength && SLUG.test(text)

/** How pings name a check that they do not know the public id of. */
export interface CheckName {
  /** Of the project: 22 letters and digits. */
  readonly pingKey: string
  readonly slug: string
}

/** Of the project that the first start creates. */
export const FIRST_PROJECT_SLUG = 'default'

/** The slug of a name, 1 to 100 characters; `fallback` for a name without a letter or digit. Other scripts are written in Latin letters. */
export function deriveSlug(name: string, fallback: 'check' | 'project'): string {
  // Symbols and emojis separate words; any-ascii would write their names.
  const words = name.normalize('NFC').replace(/[^\p{L}\p{M}\p{N}]+/gu, '-')
  const latin = anyAscii(words).toLowerCase().replace(APOSTROPHES, '')
  return cut(latin.replace(/[^a-z0-9]+/g, '-').replace(/^-/, ''), LIMITS.slugLength) || fallback
}

/** The `nth` choice for a slug that is taken: `backup`, `backup-2`, `backup-3` ...; at most 100 characters. */
export function withSuffix(slug: string, nth: number): string {
  if (nth === 1) return slug
  const suffix = `-${nth}`
  return cut(slug, LIMITS.slugLength - suffix.length) + suffix
}

/** Cuts, and removes separators from the end: no slug ends with one. */
function cut(slug: string, length: number): string {
  return slug.slice(0, length).replace(/[-_]+$/, '')
}
