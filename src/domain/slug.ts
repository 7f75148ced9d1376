/** Slugs: the short names of checks and projects, as people type them (design, section 3.1). */

import { LIMITS } from './limits.ts'

/** Latin letters that Unicode does not decompose into a letter and an accent. */
const FOLDED: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ħ: 'h',
  ı: 'i',
  ł: 'l',
  ŧ: 't',
  þ: 'th',
}

/** The slug of a name, 1 to 100 characters; `fallback` for a name without a usable character. */
export function deriveSlug(name: string, fallback: 'check' | 'project'): string {
  const letters = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, (letter) => FOLDED[letter] ?? '-')
  return cut(letters.replace(/-+/g, '-').replace(/^-/, ''), LIMITS.slugLength) || fallback
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
