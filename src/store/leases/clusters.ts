/** The cluster that is registered under a name, and reconciles under it (design, section 6). */

import type { Queryable } from '../postgres/database.ts'

/**
 * Registers the cluster with this uid under the name, or renews its registration. False when another cluster is registered and was seen
 * within `holderSeconds`. By the database's clock, so that controllers with wrong clocks agree; by clock_timestamp(), because
 * the statement may have waited for the row.
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

/** Null when no cluster was registered under the name yet. */
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

/** Up to `limit` clusters that were ever registered, by name. */
export async function listClusters(db: Queryable, limit: number): Promise<{ name: string; seenSecondsAgo: number }[]> {
  const { rows } = await db.query<{ name: string; seenSecondsAgo: number }>(
    `select name, greatest(0, extract(epoch from clock_timestamp() - seen_at))::float8 as "seenSecondsAgo" from clusters
      order by name limit $1`,
    [limit],
  )
  return rows
}
