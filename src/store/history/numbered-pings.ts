import type { Queryable } from '../postgres/database.ts'

/** Up to `limit` ids, newest first, and the number of the newest: one statement, so that no ping comes between. */
export async function findNumberedIds(
  db: Queryable,
  key: number,
  limit: number,
): Promise<{ ids: string[]; total: number }> {
  const { rows } = await db.query<{ ids: string[]; total: number }>({
    name: 'find_numbered_ids',
    text: `select s.pings_total as total,
        array(select p.id from pings p where p.check_key = s.check_key order by p.id desc limit least($2, s.pings_total)) as ids
      from check_states s where s.check_key = $1`,
    values: [key, limit],
  })
  return rows[0] ?? { ids: [], total: 0 }
}
