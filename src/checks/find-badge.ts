/** What a badge shows (design, section 3.7). Its address has no other credential than the badge key of a project. */

import type { BadgeSubject } from '../domain/badge.ts'
import { createAskInTurn } from '../store/ask-in-turn.ts'
import { type BadgeRow, findCheckBadges, findGroupBadges } from '../store/checks/badges.ts'
import type { Context } from '../store/context.ts'

export type Badge = BadgeRow

/** Null for an unknown key, slug or tag. Throws AppError `unavailable`, or the error of PostgreSQL. */
export type FindBadge = (badgeKey: string, subject: BadgeSubject) => Promise<Badge | null>

/** One statement of each kind is in flight at a time, and asks once for what many ask: a page that is visited often costs one connection. */
export function createFindBadge({ database, clock }: Pick<Context, 'database' | 'clock'>): FindBadge {
  const findCheck = createAskInTurn(
    once((asked: readonly { badgeKey: string; slug: string }[]) => findCheckBadges(database, asked, clock.now())),
  )
  const findGroup = createAskInTurn(
    once((asked: readonly { badgeKey: string; tag: string | null }[]) => findGroupBadges(database, asked, clock.now())),
  )
  return (badgeKey, subject) =>
    subject.kind === 'check'
      ? findCheck({ badgeKey, slug: subject.slug })
      : findGroup({ badgeKey, tag: subject.kind === 'tag' ? subject.tag : null })
}

/** `find` for questions of which some are the same. */
function once<Question, Answer>(
  find: (questions: readonly Question[]) => Promise<readonly Answer[]>,
): (questions: readonly Question[]) => Promise<readonly Answer[]> {
  return async (questions) => {
    const keys = questions.map((question) => JSON.stringify(question))
    const distinct = new Map(questions.map((question, place) => [keys[place]!, question]))
    const answers = (await find([...distinct.values()])).values()
    const found = new Map([...distinct.keys()].map((key) => [key, answers.next().value!]))
    return keys.map((key) => found.get(key)!)
  }
}
