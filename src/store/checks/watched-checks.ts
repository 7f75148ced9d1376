/** What those who look at the checks of an organization see change without a notice; for checks/watch-changes.ts. */

import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { statusCode } from './columns.ts'

export interface WatchedCheck {
  readonly id: string
  readonly organizationId: string
}

/** A check that is late, and how many its organization has. */
export interface LateCheck extends WatchedCheck {
  readonly expectedAt: Instant
  readonly total: number
}

/**
 * Up to `limit` late checks of each of these organizations, those that became so last first. One read of all states that are not in the index of
 * pings, whatever the number of organizations: rarely.
 */
export async function findLateChecks(
  db: Queryable,
  organizationIds: readonly string[],
  now: Instant,
  limit: number,
): Promise<LateCheck[]> {
  const { rows } = await db.query<{ -readonly [Name in keyof LateCheck]: LateCheck[Name] }>({
    name: 'find_late_checks',
    text: `select id, "organizationId", "expectedAt", total from (
        select c.id, p.organization_id as "organizationId", s.expected_at as "expectedAt",
          count(*) over (partition by p.organization_id)::int4 as total,
          row_number() over (partition by p.organization_id order by s.expected_at desc) as place
        from check_states s join checks c on c.key = s.check_key join projects p on p.id = c.project_id
        where s.status = ${statusCode('up')} and s.expected_at <= $2::timestamptz and p.organization_id = any($1::uuid[])) late
      where place <= $3`,
    values: [organizationIds, timestamp(now), limit],
  })
  return rows
}

/** The time of the newest entry in the history of each of these checks. Unknown ids are left out. */
export async function findStamps(
  db: Queryable,
  ids: readonly string[],
): Promise<(WatchedCheck & { readonly stampedAt: Instant })[]> {
  const { rows } = await db.query<WatchedCheck & { stampedAt: Instant }>({
    name: 'find_stamps',
    text: `select c.id, p.organization_id as "organizationId", s.stamped_at as "stampedAt"
      from checks c join check_states s on s.check_key = c.key join projects p on p.id = c.project_id
      where c.id = any($1::uuid[])`,
    values: [ids],
  })
  return rows
}
