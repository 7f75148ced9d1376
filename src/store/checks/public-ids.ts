/** The public ids of all checks with their keys, page by page, for a process that keeps them in memory (checks/ping/known-checks.ts). */

import type { Queryable } from '../postgres/database.ts'

export interface PublicIdPage {
  /** For each check, in the order of keys: its public id, 16 bytes, and its key, 8 bytes, as PostgreSQL sends them. */
  readonly packed: Buffer
  readonly count: number
  /** The greatest key of the page. */
  readonly lastKey: number
}

/** Bytes of a check in `packed`, and where its key begins. */
export const PACKED_BYTES = 24
export const PACKED_KEY_AT = 16

/** Up to `limit` checks with greater keys; null for none. One value: rows would cost this process ten times as much. */
export async function readPublicIds(db: Queryable, afterKey: number, limit: number): Promise<PublicIdPage | null> {
  const [row] = await db.queryColumns({
    name: 'read_known_ids',
    text: `select count(*)::int4, max(key), string_agg(uuid_send(public_id) || int8send(key), '')
      from (select key, public_id from checks where key > $1 order by key limit $2) page`,
    values: [afterKey, limit],
  })
  const [count, lastKey, packed] = row as [number, number | null, Buffer | null]
  return lastKey === null || packed === null ? null : { packed, count, lastKey }
}
