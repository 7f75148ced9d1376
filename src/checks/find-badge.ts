/** What a badge shows (design, section 3.7). Its address has no other credential than the badge key of a project. */

import type { BadgeSubject } from '../domain/badge.ts'
import { createFindInTurn } from '../store/ask-in-turn.ts'
import { type BadgeRow, findCheckBadges, findGroupBadges } from '../store/checks/badges.ts'
import type { Context } from '../store/context.ts'

/** Null for an unknown key, slug or tag. Throws AppError `unavailable`, or the error of PostgreSQL. */
export type FindBadge = (badgeKey: string, subject: BadgeSubject) => Promise<BadgeRow | null>

/** One statement of each kind is in flight at a time, and asks once for what many ask: a page that is visited often costs one connection. */
export function createFindBadge({ database, clock }: Pick<Context, 'database' | 'clock'>): FindBadge {
  const findCheck = inTurn((asked: { badgeKey: string; slug: string }[]) =>
    findCheckBadges(database, asked, clock.now()),
  )
  const findGroup = inTurn((asked: { badgeKey: string; tag: string | null }[]) =>
    findGroupBadges(database, asked, clock.now()),
  )
  return (badgeKey, subject) =>
    subject.kind === 'check'
      ? findCheck({ badgeKey, slug: subject.slug })
      : findGroup({ badgeKey, tag: subject.kind === 'tag' ? subject.tag : null })
}

function inTurn<Question>(find: (asked: Question[]) => Promise<(BadgeRow | null)[]>) {
  const findKey = createFindInTurn(async (keys) => {
    const found = await find(keys.map((key) => JSON.parse(key)))
    return new Map(keys.map((key, place) => [key, found[place]!]))
  })
  return (question: Question) => findKey(JSON.stringify(question))
}
