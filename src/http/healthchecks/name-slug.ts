import { LIMITS } from '../../domain/limits.ts'
import { deriveSlug, isSlug } from '../../domain/slug.ts'

/**
 * The slug that healthchecks makes of a name in versions 1 and 2 (`slugify` of Django), because jobs ping by it:
 * `db_backup` stays, where our own rule writes `db-backup`. Our own rule for a name that it makes nothing of.
 */
export function slugOfName(name: string): string {
  const ascii = name.normalize('NFKD').replace(/\P{ASCII}/gu, '')
  const words = ascii.toLowerCase().replace(/[^\w\s-]/g, '')
  const slug = strip(words.replace(/[-\s]+/g, '-'))
  // Decomposed letters may be more than the name had.
  const short = strip(slug.slice(0, LIMITS.slugLength))
  return isSlug(short) ? short : deriveSlug(name, 'check')
}

const strip = (text: string) => text.replace(/^[-_]+|[-_]+$/g, '')
