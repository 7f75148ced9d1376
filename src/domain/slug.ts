/** Slugs: the short name of a check within its project, as people type it. (Design, section 3.1.) */

import { LIMITS } from './limits.ts'

/** Latin letters that Unicode does not take apart into a letter and an accent. */
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

/** The slug that a name leads to, 1-100 characters. A name without any usable character gives `fallback`. */
export function deriveSlug(name: string, fallback: 'check' | 'project'): string {
  const letters = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]/g, (letter) => FOLDED[letter] ?? '-')
  return cut(letters.replace(/-+/g, '-').replace(/^-/, ''), LIMITS.slugLength) || fallback
}

/** The `nth` choice for a check whose slug is taken: `backup`, `backup-2`, `backup-3` ...; never over 100 characters. */
export function withSuffix(slug: string, nth: number): string {
  if (nth === 1) return slug
  const suffix = `-${nth}`
  return cut(slug, LIMITS.slugLength - suffix.length) + suffix
}

/** No slug ends in a separator, wherever it was cut. */
function cut(slug: string, length: number): string {
  return slug.slice(0, length).replace(/[-_]+$/, '')
}
