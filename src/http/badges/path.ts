/** The address of a badge: `/badge/<badge_key>[/<slug>|/tag/<tag>].<svg|json|shields>`. Pure. */

import { type BadgeSubject, isTag } from '../../domain/badge.ts'
import { isSlug } from '../../domain/slug.ts'
import { decodePercent } from '../../runtime/percent.ts'

export type BadgeFormat = 'svg' | 'json' | 'shields'

export const BADGE_PREFIX = '/badge/'

const PATH = /^\/badge\/([A-Za-z0-9]{22})(?:\/tag\/(.+)|\/([^/]+))?\.(svg|json|shields)$/

/** `path`: as in the request; a tag may be percent-encoded. Null for what is no address of a badge. */
export function parseBadgePath(path: string) {
  const [, badgeKey, tag, slug, format] = PATH.exec(path) ?? []
  if (badgeKey === undefined) return null
  const subject = toSubject(tag, slug)
  return subject === null ? null : { badgeKey, subject, format: format as BadgeFormat }
}

function toSubject(tag: string | undefined, slug: string | undefined): BadgeSubject | null {
  if (slug !== undefined) return isSlug(slug) ? { kind: 'check', slug } : null
  if (tag === undefined) return { kind: 'project' }
  const decoded = decodePercent(tag)
  return isTag(decoded) ? { kind: 'tag', tag: decoded } : null
}

/** The address of a badge without its format, below the address of the service. */
export function badgePath(badgeKey: string, subject: BadgeSubject): string {
  const start = `${BADGE_PREFIX}${badgeKey}`
  if (subject.kind === 'check') return `${start}/${subject.slug}`
  return subject.kind === 'tag' ? `${start}/tag/${encodeURIComponent(subject.tag)}` : start
}
