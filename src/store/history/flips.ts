/** Reads of the history of a check's status. Written by new-flips.ts, pruned by pruning.ts. */

import { type FlipReason, type Instant, STATUSES, type StoredStatus } from '../../domain/check.ts'
import { LAST_ID } from '../../domain/ids.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface FlipRecord {
  readonly id: string
  /** When it became true; a missed ping is dated at its deadline. */
  readonly at: Instant
  readonly from: StoredStatus | null
  readonly to: StoredStatus
  readonly reason: FlipReason
  /** The ping that caused it, which pruning may have deleted. */
  readonly pingId: string | null
  /** Why, in words, of a missed or failed run of a CronJob. Left out where it is not known. */
  readonly detail?: string | null
  /** The name of the Job that it is about. Left out where there is none. */
  readonly job?: string | null
}

export type FlipRow = Omit<FlipRecord, 'from' | 'to' | 'detail' | 'job'> & {
  from: number | null
  to: number
  detail: string | null
  job: string | null
}

/** Of the table `f`. */
export const FLIP_COLUMNS =
  'f.id, f.at, f.from_status as "from", f.to_status as "to", f.reason, f.ping_id as "pingId", f.detail, f.job'

export function toFlip({ detail, job, ...row }: FlipRow): FlipRecord {
  return {
    ...row,
    from: row.from === null ? null : STATUSES[row.from]!,
    to: STATUSES[row.to]!,
    ...(detail === null ? {} : { detail }),
    ...(job === null ? {} : { job }),
  }
}

export interface FlipRange {
  /** Ids have the order of the history: older than this one; null: from the newest. */
  readonly beforeId: string | null
  /** From this time on, and before this time. */
  readonly since: Instant | null
  readonly until: Instant | null
}

/** Up to `limit` flips of a check, newest first. */
export async function listFlipRows(
  tx: Queryable,
  key: number,
  { beforeId, since, until }: FlipRange,
  limit: number,
): Promise<FlipRecord[]> {
  const { rows } = await tx.query<FlipRow>({
    name: 'list_flips',
    // An id carries the time when the flip was detected, which is not before `at`: ids limit what is read.
    text: `select ${FLIP_COLUMNS} from flips f
      where f.check_key = $1 and f.id < coalesce($2, '${LAST_ID}'::uuid)
        and f.id >= $3 and f.at >= coalesce($4, '-infinity'::timestamptz) and f.at < coalesce($5, 'infinity'::timestamptz)
      order by f.id desc limit $6`,
    values: [key, beforeId, firstIdAt(since ?? 0), timestamp(since), timestamp(until), limit],
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

export interface LastDown {
  readonly detail: string | null
  readonly job: string | null
}

/** What the newest flip of a check to `down` says; null: the history has none. */
export async function findLastDown(tx: Queryable, key: number): Promise<LastDown | null> {
  const { rows } = await tx.query<LastDown>(
    'select detail, job from flips where check_key = $1 and to_status = $2 and from_status is distinct from to_status order by id desc limit 1',
    [key, STATUSES.indexOf('down')],
  )
  return rows[0] ?? null
}
