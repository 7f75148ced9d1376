/** Own downtime: the service beat that says "we could take pings", and the gaps between beats. */

import type { Gap, Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'

/** Shorter silences are none (design, section 4): restarts of one part, a slow commit. Also how old a beat may be for deadlines to count. */
export const SHORTEST_GAP_MS = 5_000

/**
 * Moves the beat of the whole service on, whichever replica it comes from, and records the gap since the one before if there
 * was one. Concurrent beats queue on the row, so a gap is recorded once.
 */
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
    text: `select started_at as "startedAt", ended_at as "endedAt" from gaps where ended_at >= to_timestamp($1 / 1000.0) order by started_at`,
    values: [since],
  })
  return rows.map(({ startedAt, endedAt }) => ({ startedAt: Math.floor(startedAt), endedAt: Math.ceil(endedAt) }))
}

/** Writes as a ping writes, and takes it back: tells whether pings could be stored now (a full disk lets the beat's own row pass). */
export async function rehearsePing(tx: Queryable): Promise<void> {
  await tx.query(
    'insert into pings (id, check_key, type, source, created_at) values (gen_random_uuid(), 0, 0, 0, now())',
  )
  // Writes nothing; but where a migration has the table locked, pings cannot be stored either.
  await tx.query('update check_states set since = since where false')
}
