/** Makes texts of another monitor fit our rules, and says what that cost. */

import { isTag } from '../domain/badge.ts'
import { TAGS } from '../domain/check.ts'
import { LIMITS } from '../domain/limits.ts'
import { cleanOutput, isVisible, toOneLine } from '../domain/plain-text.ts'
import { deriveSlug, isSlug } from '../domain/slug.ts'

/** A line of at most 100 characters; `fallback` for one that shows nothing. */
export function fitName(given: string, fallback: string, notes: string[]): string {
  const line = toOneLine(given)
  const name = Array.from(line).slice(0, LIMITS.nameLength).join('').trim()
  if (name.length < line.length) notes.push(`the name is cut to ${LIMITS.nameLength} characters`)
  return isVisible(name) ? name : fallback
}

/** Null for a blank one. */
export function fitDescription(given: string, notes: string[]): string | null {
  const points = Array.from(cleanOutput(given))
  if (points.length > LIMITS.descriptionLength)
    notes.push(`the description is cut to ${LIMITS.descriptionLength} characters`)
  return points.slice(0, LIMITS.descriptionLength).join('') || null
}

export function fitTags(given: readonly string[], notes: string[]): string[] {
  const different = [...new Set(given)]
  const tags = different.filter(isTag).slice(0, TAGS.max)
  const lost = different.filter((tag) => !tags.includes(tag))
  if (lost.length > 0) notes.push(`tags are left out: ${toOneLine(lost.join(', '))}`)
  return tags
}

/** `given` if it is one of ours, else one made of it, or of the name where there is none. */
export function fitSlug(given: string, name: string, notes: string[]): string {
  if (given === '') return deriveSlug(name, 'check')
  if (isSlug(given)) return given
  const slug = deriveSlug(given, 'check')
  notes.push(`the slug ${toOneLine(given)} becomes ${slug}`)
  return slug
}

/** Within the limits; a note where it is not the same. */
export function fitSeconds(
  given: number,
  { min, max }: { readonly min: number; readonly max: number },
  what: string,
  notes: string[],
): number {
  const seconds = Math.min(max, Math.max(min, Math.round(given)))
  if (seconds !== given) notes.push(`the ${what} of ${given} s becomes ${seconds} s`)
  return seconds
}
