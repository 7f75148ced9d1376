/** Reads of the history of a check's status. Written by saveChanges (change-sets.ts), pruned by pruning.ts. */

import { type FlipReason, type Instant, STATUSES, type StoredStatus } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'

export interface FlipRecord {
  readonly id: string
  /** When it became true; a missed ping is dated at its deadline. */
  readonly at: Instant
  readonly from: StoredStatus | null
  readonly to: StoredStatus
  readonly reason: FlipReason
  /** The ping that caused it, which pruning may have deleted. */
  readonly pingId: string | null
}

type Row = Omit<FlipRecord, 'from' | 'to'> & { from: number | null; to: number }

const COLUMNS = 'f.id, f.at, f.from_status as "from", f.to_status as "to", f.reason, f.ping_id as "pingId"'

function toFlip(row: Row): FlipRecord {
  return { ...row, from: row.from === null ? null : STATUSES[row.from]!, to: STATUSES[row.to]! }
}

/** Up to `limit` flips of a check, newest first, older than `beforeId`; null: from the newest. Ids have the order of the history. */
export async function listFlipRows(
  tx: Queryable,
  key: number,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<FlipRecord[]> {
  const { rows } = await tx.query<Row>({
    name: 'list_flips',
    text: `select ${COLUMNS} from flips f
      where f.check_key = $1 and f.id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
      order by f.id desc limit $3`,
    values: [key, beforeId, limit],
  })
  return rows.map(toFlip)
}

/** Up to `limit` flips of a check, newest first, not older than `fromId`. */
export async function listNewestFlips(
  tx: Queryable,
  key: number,
  { fromId, limit }: { fromId: string; limit: number },
): Promise<FlipRecord[]> {
  const { rows } = await tx.query<Row>({
    name: 'list_newest_flips',
    text: `select ${COLUMNS} from flips f where f.check_key = $1 and f.id >= $2 order by f.id desc limit $3`,
    values: [key, fromId, limit],
  })
  return rows.map(toFlip)
}

/** Deletes up to `limit` flips of a check that is being removed, in physical order (see deletePings). */
export async function deleteFlips(tx: Queryable, key: number, limit: number): Promise<void> {
  const values = [key, limit]
  await tx.query(
    'delete from flips where ctid = any(array(select ctid from flips where check_key = $1 limit $2))',
    values,
  )
}
