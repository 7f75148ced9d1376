/** The public ids of all checks with their keys, page by page, for a process that keeps them in memory (checks/ping/known-checks.ts). */

import type { Queryable } from '../postgres/database.ts'
import { plainSpecHash } from './plain-pings.ts'

export interface PublicIdPage {
  /**
   * For each check its public id as text, its key, and the hash of its spec where its next success is likely to be
   * plain (plain-pings.ts), or 0; numbers with the highest byte first.
   */
  readonly packed: Buffer
  readonly count: number
  /** The greatest key of the page. */
  readonly lastKey: number
}

/** Bytes of each in `packed`. A key has 48 bits, as many as Node reads at once, and so has a hash. */
export const PACKED = { id: 36, key: 6, specHash: 6 }

/** Up to `limit` checks with greater keys; null for none. One value: rows would cost this process ten times as much. */
export async function readPublicIds(db: Queryable, afterKey: number, limit: number): Promise<PublicIdPage | null> {
  const [row] = await db.queryColumns({
    name: 'read_known_ids',
    text: `select count(*)::int4, max(key), string_agg(textsend(public_id::text) || substr(int8send(key), 3) || substr(int8send(spec_hash), 3), '')
      from (select key, public_id, ${plainSpecHash('key')} as spec_hash from checks
        where key > $1 order by key limit $2) page`,
    values: [afterKey, limit],
  })
  const [count, lastKey, packed] = row as [number, number | null, Buffer | null]
  return lastKey === null || packed === null ? null : { packed, count, lastKey }
}
