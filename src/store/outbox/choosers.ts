/** The checks that chose a channel. A check that has chosen none of them (null) notifies all. */

import { lockStates } from '../checks/states.ts'
import type { Queryable } from '../postgres/database.ts'

/**
 * Checks that leave out a channel in one transaction: their pings wait until the transaction ends, some 20 ms. A statement
 * for all checks can exceed its timeout.
 */
const UNCHOSEN_AT_ONCE = 100

/**
 * Locks up to 100 checks that chose some of these channels, and returns their keys. The transaction holds no lock of a
 * channel yet: a change of a check locks the check before the channels that it chooses.
 */
export async function lockChoosers(tx: Queryable, ids: readonly string[]): Promise<number[]> {
  const { rows } = await tx.query<{ key: number }>('select key from checks where channels && $1::uuid[] limit $2', [
    ids,
    UNCHOSEN_AT_ONCE,
  ])
  const keys = rows.map(({ key }) => key)
  if (keys.length > 0) await lockStates(tx, keys)
  return keys
}

/** Takes the channels out of the lists of these checks, which are locked. A check that is left with none notifies all channels. */
export async function unchoose(tx: Queryable, ids: readonly string[], keys: readonly number[]): Promise<void> {
  if (keys.length === 0) return
  await tx.query(
    `update checks set channels = nullif(array(
          select u.id from unnest(channels) with ordinality u (id, place) where u.id <> all($1::uuid[]) order by place), '{}')
      where key = any($2::int8[]) and channels && $1::uuid[]`,
    [ids, keys],
  )
}

export async function hasChoosers(db: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await db.query('select from checks where channels @> array[$1::uuid] limit 1', [id])
  return rowCount > 0
}

/** How many checks chose this channel and no other one. */
export async function countDependents(db: Queryable, id: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*) as count from checks where channels @> array[$1::uuid] and channels <@ array[$1::uuid]',
    [id],
  )
  return rows[0]!.count
}

/** The checks of other projects that chose the channel: how many, and the names of the first three. */
export async function findChoosersElsewhere(
  db: Queryable,
  id: string,
  projectId: string,
): Promise<{ count: number; names: string[] }> {
  const { rows } = await db.query<{ count: number; names: string[] }>(
    `select count(*) as count, coalesce((array_agg(name order by name, key))[:3], '{}') as names
      from checks where channels @> array[$1::uuid] and project_id <> $2`,
    [id, projectId],
  )
  return rows[0]!
}
