/** Reads of the history of pings. Written by saveChanges (change-sets.ts), pruned by pruning.ts. */

import { type Instant, PING_SOURCES, PING_TYPES, type PingSource, type PingType } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'

export interface PingRecord {
  readonly id: string
  readonly type: PingType
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly runId: string | null
  readonly source: PingSource
  readonly createdAt: Instant
  /** The bytes that were sent; null for none. */
  readonly body: Buffer | null
}

/** Up to `limit` pings of a check, newest first, older than `beforeId`; null: from the newest. Ids have the order of the history. */
export async function listPingRows(
  tx: Queryable,
  key: number,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<PingRecord[]> {
  const { rows } = await tx.query<Omit<PingRecord, 'type' | 'source'> & { type: number; source: number }>({
    name: 'list_pings',
    text: `select p.id, p.type, p.exit_code as "exitCode", p.duration_ms as "durationMs", p.run_id as "runId", p.source,
        p.created_at as "createdAt", b.body
      from pings p left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id
      where p.check_key = $1 and p.id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
      order by p.id desc limit $3`,
    values: [key, beforeId, limit],
  })
  return rows.map((row) => ({ ...row, type: PING_TYPES[row.type]!, source: PING_SOURCES[row.source]! }))
}

/**
 * Deletes up to `limit` pings of a check that is being removed, with their bodies. Rows are taken in their physical order
 * (PostgreSQL sorts an array of ctids), as pruning takes them, so that the two never wait for each other in a circle.
 */
export async function deletePings(tx: Queryable, key: number, limit: number): Promise<void> {
  await tx.query(
    `with gone as (
        delete from pings where ctid = any(array(select ctid from pings where check_key = $1 limit $2)) returning id)
      delete from ping_bodies b using gone where b.check_key = $1 and b.ping_id = gone.id`,
    [key, limit],
  )
}
