/** Own downtime: the service beat, which says that pings could be taken, and the gaps between beats. */

import type { Gap, Instant } from '../../domain/check.ts'
import { pingSourceCode, pingTypeCode } from '../checks/columns.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

/** A shorter silence is not a gap (design, section 4): a restart, a slow commit. While the beat is older, deadlines are not evaluated. */
export const SHORTEST_GAP_MS = 5_000

/** Moves the beat of the whole service. Records and returns the gap since the last one, or null. Concurrent beats queue on the row, so a gap is recorded once. */
export async function beat(tx: Queryable): Promise<Gap | null> {
  const { rows } = await tx.query<{ startedAt: Instant; endedAt: Instant }>({
    name: 'beat',
    text: `with last as (select beat_at, clock_timestamp() as at from service_beat for update),
      moved as (update service_beat s set beat_at = greatest(s.beat_at, last.at) from last)
      insert into gaps (started_at, ended_at)
      select beat_at, at from last where at - beat_at >= $1 * interval '1 millisecond'
      returning started_at as "startedAt", ended_at as "endedAt"`,
    values: [SHORTEST_GAP_MS],
  })
  return rows[0] ?? null
}

/** Gaps that ended at or after `since`, oldest first. */
export async function listGaps(tx: Queryable, since: Instant): Promise<Gap[]> {
  const { rows } = await tx.query<Gap>({
    name: 'list_gaps',
    text: `select started_at as "startedAt", ended_at as "endedAt" from gaps where ended_at >= $1::timestamptz order by started_at`,
    values: [timestamp(since)],
  })
  return rows.map(({ startedAt, endedAt }) => ({ startedAt: Math.floor(startedAt), endedAt: Math.ceil(endedAt) }))
}

/** Up to `limit` gaps that ended at or after `since`, the newest ones, oldest first. */
export async function listNewestGaps(tx: Queryable, since: Instant, limit: number): Promise<Gap[]> {
  const { rows } = await tx.query<Gap>({
    name: 'list_newest_gaps',
    text: `select started_at as "startedAt", ended_at as "endedAt" from gaps where ended_at >= $1::timestamptz order by ended_at desc limit $2`,
    values: [timestamp(since), limit],
  })
  return rows.reverse()
}

/** Writes what a ping writes, for a transaction that is rolled back. Fails when pings cannot be stored: a full disk accepts the beat's own row. */
export async function rehearsePing(tx: Queryable): Promise<void> {
  await tx.query(
    `insert into pings (id, check_key, type, source, created_at)
      values (gen_random_uuid(), 0, ${pingTypeCode('success')}, ${pingSourceCode('http')}, now())`,
  )
  // Writes nothing, but fails while a migration has the table locked.
  await tx.query('update check_states set since = since where false')
}
