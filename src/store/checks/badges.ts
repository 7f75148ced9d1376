/** What badges show, by the badge keys of projects: how many checks have each status, and a name. Neither ids nor texts of pings. */

import type { StatusCounts } from '../../domain/badge.ts'
import { type Instant, SHOWN_STATUSES, type ShownStatus } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { shownStatusSql } from './columns.ts'

export interface BadgeRow {
  /** The name of the check, the tag, or the name of the project. */
  readonly label: string
  readonly counts: StatusCounts
}

/** Both are read at `now`. In the order of the questions; null for an unknown key or slug. */
export async function findCheckBadges(
  db: Queryable,
  asked: readonly { readonly badgeKey: string; readonly slug: string }[],
  now: Instant,
): Promise<(BadgeRow | null)[]> {
  const rows = await db.queryColumns({
    name: 'find_check_badges',
    text: `select n.place, c.name, ${shownStatusSql('$3::timestamptz')}
      from unnest($1::text[], $2::text[]) with ordinality n (badge_key, slug, place)
      join projects p on p.badge_key = n.badge_key join checks c on c.project_id = p.id and c.slug = n.slug
      join check_states s on s.check_key = c.key`,
    values: [asked.map(({ badgeKey }) => badgeKey), asked.map(({ slug }) => slug), timestamp(now)],
  })
  const found: (BadgeRow | null)[] = asked.map(() => null)
  for (const [place, label, status] of rows as [number, string, ShownStatus][])
    found[place - 1] = { label, counts: { ...NONE, [status]: 1 } }
  return found
}

/** All checks of the project, or those with the tag. Null for an unknown key, and for a tag that no check of the project has. */
export async function findGroupBadges(
  db: Queryable,
  asked: readonly { readonly badgeKey: string; readonly tag: string | null }[],
  now: Instant,
): Promise<(BadgeRow | null)[]> {
  const counts = SHOWN_STATUSES.map((status) => `count(*) filter (where status = '${status}')`)
  const rows = await db.queryColumns({
    name: 'find_group_badges',
    text: `select n.place, coalesce(n.tag, p.name), m.*
      from unnest($1::text[], $2::text[]) with ordinality n (badge_key, tag, place) join projects p on p.badge_key = n.badge_key
      cross join lateral (select ${counts.join(', ')} from (
        select ${shownStatusSql('$3::timestamptz')} as status from checks c join check_states s on s.check_key = c.key
        where c.project_id = p.id and (n.tag is null or c.tags @> array[n.tag])) shown) m`,
    values: [asked.map(({ badgeKey }) => badgeKey), asked.map(({ tag }) => tag), timestamp(now)],
  })
  const found: (BadgeRow | null)[] = asked.map(() => null)
  for (const [place, label, ...numbers] of rows as [number, string, ...number[]][]) {
    const isEmpty = numbers.every((count) => count === 0)
    if (isEmpty && asked[place - 1]!.tag !== null) continue
    const counts = Object.fromEntries(SHOWN_STATUSES.map((status, index) => [status, numbers[index]!]))
    found[place - 1] = { label, counts: counts as StatusCounts }
  }
  return found
}

const NONE: StatusCounts = { new: 0, up: 0, late: 0, down: 0, paused: 0 }
