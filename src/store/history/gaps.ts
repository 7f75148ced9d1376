/**
 * Own downtime: the service beat, which says that pings could be stored, and the gaps between beats. The pings of a gap are not lost if each api process
 * had spooled them on disk: such a gap hides nothing. Whether it is one is known when each process has recorded what it spooled.
 */

import type { Gap, Instant } from '../../domain/check.ts'
import { pingSourceCode, pingTypeCode } from '../checks/columns.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

/** A shorter silence is not a gap (design, section 4): a restart, a slow commit. While the beat is older, deadlines are not evaluated. */
export const SHORTEST_GAP_MS = 5_000

/** A process that has not beaten for so long after a gap is gone, and its pings may be lost. */
const AWAITED_MS = 15_000
/** A process that has missed a beat may have spooled pings, also in an outage that is too short for a gap. After `SHORTEST_GAP_MS` and a beat it is gone. */
const MISSED_MS = 2_000
const GONE_MS = SHORTEST_GAP_MS + 1_000
/** Pings that wait in a spool for longer than this do not keep deadlines waiting. */
export const PENDING_MS = 600_000

/** What an api process says of its spool with each beat. */
export interface SpoolReport {
  /** Since when pings wait in it; null: none waits. */
  readonly pendingSince: Instant | null
  /** When a ping was refused last because it was full or broken; null: never. */
  readonly refusedAt: Instant | null
  /**
   * The checks whose pings wait in it for their rows alone. Only their deadlines wait for these pings. Absent: none.
   */
  readonly lockedChecks?: readonly number[]
}

/** `id`: of the process. `spool`: null without one. */
export interface PingBeat {
  readonly id: string
  readonly spool: SpoolReport | null
}

/**
 * Concurrent beats queue here, before they read anything: what they read must include the beat before. A beat waits for
 * the commits of all beats before it, so it may wait longer than a ping waits for a row.
 */
export async function lockBeat(tx: Queryable): Promise<void> {
  await tx.query("set local lock_timeout = '1500ms'")
  await tx.query('select from service_beat for update')
}

/** Moves the beats of the service and of this process, under `lockBeat`. Records and returns the gap since, or null. */
export async function beat(tx: Queryable, { id, spool }: PingBeat): Promise<Gap | null> {
  const { rows } = await tx.query<{ startedAt: Instant; endedAt: Instant }>({
    name: 'beat',
    text: `with last as (select beat_at, greatest(beat_at, clock_timestamp()) as at from service_beat),
      moved as (update service_beat set beat_at = last.at from last),
      own as (insert into ping_beats (id, started_at, beat_at, has_spool, pending_since, refused_at, locked_checks)
        select $2, at, at, $3, $4::timestamptz, $5::timestamptz, $6::int8[] from last
        on conflict (id) do update set beat_at = excluded.beat_at, has_spool = excluded.has_spool,
          pending_since = excluded.pending_since, refused_at = excluded.refused_at,
          locked_checks = excluded.locked_checks, has_stopped = false),
      alive as (select has_spool from ping_beats b, last
        where b.beat_at >= last.beat_at - $1 * interval '1 millisecond' and not b.has_stopped)
      insert into gaps (started_at, ended_at, spooled)
      select beat_at, at, case when (select coalesce(bool_and(has_spool), false) from alive) then null else false end
      from last where at - beat_at >= $1 * interval '1 millisecond'
      returning started_at as "startedAt", ended_at as "endedAt"`,
    values: [
      SHORTEST_GAP_MS,
      id,
      spool !== null,
      toTimestamp(spool?.pendingSince),
      toTimestamp(spool?.refusedAt),
      spool?.lockedChecks ?? [],
    ],
  })
  return rows[0] ?? null
}

const toTimestamp = (at: Instant | null | undefined) => (at === null || at === undefined ? null : timestamp(at))

/** The process has stopped, and has recorded what it spooled: no gap and no deadline waits for the process any more. */
export async function endBeat(tx: Queryable, id: string): Promise<void> {
  await tx.query('update ping_beats set has_stopped = true, pending_since = null where id = $1', [id])
}

/**
 * Decides of each gap whether its pings were spooled, as soon as that is known: each process that worked when the gap
 * began has beaten since, has refused no ping, and has recorded what it spooled. Returns what was decided. Removes the
 * beats of processes that are long gone.
 */
export async function settleGaps(tx: Queryable): Promise<{ isSpooled: boolean; gap: Gap }[]> {
  const { rows } = await tx.query<Gap & { isSpooled: boolean }>({
    name: 'settle_gaps',
    text: `with gone as (delete from ping_beats where beat_at < now() - interval '1 day'),
      judged as (
        select g.id, g.ended_at,
          coalesce(bool_or(not b.has_spool or b.refused_at >= g.started_at), false) as is_lost,
          coalesce(bool_or(b.beat_at < g.ended_at), true) as is_awaited,
          coalesce(bool_or(b.pending_since is not null), false) as is_pending
        from gaps g left join ping_beats b
          on b.started_at < g.ended_at
          and b.beat_at >= case when b.has_stopped then g.ended_at else g.started_at - $1 * interval '1 millisecond' end
        where g.spooled is null group by g.id),
      settled as (select id, case
          when is_lost then false
          when is_awaited then case when ended_at < now() - $2 * interval '1 millisecond' then false end
          when is_pending then case when ended_at < now() - $3 * interval '1 millisecond' then false end
          else true end as spooled
        from judged)
      update gaps g set spooled = settled.spooled from settled where settled.id = g.id and settled.spooled is not null
      returning g.spooled as "isSpooled", g.started_at as "startedAt", g.ended_at as "endedAt"`,
    values: [SHORTEST_GAP_MS, AWAITED_MS, PENDING_MS],
  })
  return rows.map(({ isSpooled, startedAt, endedAt }) => ({ isSpooled, gap: { startedAt, endedAt } }))
}

/** SQL: no ping that came in before is still on its way to the database, as far as is known. */
export const NOTHING_SPOOLED = `not exists (select from gaps where spooled is null) and not exists (
  select from ping_beats where pending_since > now() - interval '${PENDING_MS} milliseconds' and beat_at > now() - interval '${AWAITED_MS} milliseconds'
  or has_spool and not has_stopped and beat_at between now() - interval '${GONE_MS} milliseconds' and now() - interval '${MISSED_MS} milliseconds')`

/** SQL: the keys of checks whose pings wait on a disk for their rows. */
export const LOCKED_CHECKS = `array(select unnest(locked_checks) from ping_beats
  where beat_at > now() - interval '${AWAITED_MS} milliseconds')`

/** Gaps that ended at or after `since`, oldest first, without those whose pings were spooled. */
export async function listGaps(tx: Queryable, since: Instant): Promise<Gap[]> {
  const { rows } = await tx.query<Gap>({
    name: 'list_gaps',
    text: `select started_at as "startedAt", ended_at as "endedAt" from gaps where ended_at >= $1::timestamptz and spooled is not true order by started_at`,
    values: [timestamp(since)],
  })
  return rows.map(({ startedAt, endedAt }) => ({ startedAt: Math.floor(startedAt), endedAt: Math.ceil(endedAt) }))
}

/** A gap as people see it. `isSpooled`: its pings were stored on disk, so it hides nothing; null: not yet known. */
export interface ShownGap extends Gap {
  readonly isSpooled: boolean | null
}

/** Up to `limit` gaps that ended at or after `since`, the newest ones, oldest first. */
export async function listNewestGaps(tx: Queryable, since: Instant, limit: number): Promise<ShownGap[]> {
  const { rows } = await tx.query<ShownGap>({
    name: 'list_newest_gaps',
    text: `select started_at as "startedAt", ended_at as "endedAt", spooled as "isSpooled" from gaps
      where ended_at >= $1::timestamptz order by ended_at desc limit $2`,
    values: [timestamp(since), limit],
  })
  return rows.reverse()
}

/** Since when pings wait on the disk of a process that works; null: none waits. */
export async function findOldestSpooled(tx: Queryable): Promise<Instant | null> {
  const { rows } = await tx.query<{ since: Instant | null }>(
    `select min(pending_since) as since from ping_beats where beat_at > now() - interval '${AWAITED_MS} milliseconds'`,
  )
  return rows[0]!.since
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
