/** Checks by the ping key of their project and their slug (design, section 3.3). */

import type { CheckName } from '../../domain/slug.ts'
import type { Queryable } from '../postgres/database.ts'

/** What a ping key and a slug lead to. */
export interface Named {
  readonly organizationId: string
  readonly projectId: string
  /** Null: the project has no check with the slug. */
  readonly publicId: string | null
}

/** In the order of the names; null where no project has the key. */
export async function findNamed(db: Queryable, names: readonly CheckName[]): Promise<(Named | null)[]> {
  const rows = await db.queryColumns({
    name: 'find_named',
    text: `select n.place, p.organization_id, p.id, c.public_id
      from unnest($1::text[], $2::text[]) with ordinality n (ping_key, slug, place)
      join projects p on p.ping_key = n.ping_key left join checks c on c.project_id = p.id and c.slug = n.slug`,
    values: [names.map(({ pingKey }) => pingKey), names.map(({ slug }) => slug)],
  })
  const found: (Named | null)[] = names.map(() => null)
  for (const [place, organizationId, projectId, publicId] of rows as [number, string, string, string | null][])
    found[place - 1] = { organizationId, projectId, publicId }
  return found
}
