/** The pings that those who look at one check see without a notice; for checks/watch-changes.ts. */

import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'

interface Stamp {
  readonly id: string
  readonly organizationId: string
  readonly stampedAt: Instant
}

/** The time of the newest entry in the history of each of these checks. Unknown ids are left out. */
export async function findStamps(db: Queryable, ids: readonly string[]): Promise<Stamp[]> {
  const { rows } = await db.query<Stamp>({
    name: 'find_stamps',
    text: `select c.id, p.organization_id as "organizationId", s.stamped_at as "stampedAt"
      from checks c join check_states s on s.check_key = c.key join projects p on p.id = c.project_id
      where c.id = any($1::uuid[])`,
    values: [ids],
  })
  return rows
}
