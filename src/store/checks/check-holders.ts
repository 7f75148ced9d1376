/** Who has what an imported check would bring along: its public id, or its push token. Of the whole installation: both are unique in it. */

import type { Queryable } from '../postgres/database.ts'

export interface Holder {
  readonly organizationId: string
  readonly projectId: string
  readonly projectName: string
  readonly projectSlug: string
}

const HOLDER =
  'p.organization_id as "organizationId", p.id as "projectId", p.name as "projectName", p.slug as "projectSlug"'

/** By public id, in lower case. A removed check that its resource can get back counts. */
export function findHoldersOfPublicIds(db: Queryable, publicIds: readonly string[]): Promise<Map<string, Holder>> {
  return find(
    db,
    `select h.public_id::text as what, ${HOLDER} from (
        select public_id, project_id from checks where public_id = any($1::uuid[])
        union all select public_id, project_id from tombstones where public_id = any($1::uuid[])) h
      join projects p on p.id = h.project_id`,
    publicIds,
  )
}

/** By push token. */
export function findHoldersOfTokens(db: Queryable, tokens: readonly string[]): Promise<Map<string, Holder>> {
  return find(
    db,
    `select t.token as what, ${HOLDER} from push_tokens t join checks c on c.key = t.check_key join projects p on p.id = c.project_id
      where t.token = any($1::text[])`,
    tokens,
  )
}

async function find(db: Queryable, text: string, wanted: readonly string[]): Promise<Map<string, Holder>> {
  const { rows } = await db.query<Holder & { what: string }>(text, [wanted])
  return new Map(rows.map(({ what, ...holder }) => [what, holder]))
}
