/** Which cluster reconciles under a name (design, section 6). */

import type { Queryable } from '../postgres/database.ts'

/**
 * Takes or keeps the name for the cluster with this uid. False: another one holds it, and was seen within `holderSeconds`. By
 * the database's clock, so controllers with wrong ones agree; clock_timestamp(), since the row may have been waited for.
 */
export async function takeClusterName(
  db: Queryable,
  { name, uid, holderSeconds }: { name: string; uid: string; holderSeconds: number },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into clusters as c (name, uid, seen_at) values ($1, $2, clock_timestamp())
      on conflict (name) do update set uid = excluded.uid, seen_at = excluded.seen_at
        where c.uid = excluded.uid or c.seen_at < clock_timestamp() - $3 * interval '1 second'`,
    [name, uid, holderSeconds],
  )
  return rowCount === 1
}

/** Null: nobody took the name yet. */
export async function findClusterHolder(
  db: Queryable,
  name: string,
): Promise<{ uid: string; seenSecondsAgo: number } | null> {
  const { rows } = await db.query<{ uid: string; seenSecondsAgo: number }>(
    `select uid, greatest(0, extract(epoch from clock_timestamp() - seen_at))::float8 as "seenSecondsAgo" from clusters
      where name = $1`,
    [name],
  )
  return rows[0] ?? null
}
