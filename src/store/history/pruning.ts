/**
 * What history keeps. Each statement deletes a bounded number of rows, and locks only these. The rows are collected as
 * an array of ctids, which PostgreSQL sorts: all deletions have that order, so that two never deadlock. History is not
 * updated, so a ctid is valid for the statement that read it. The materialized `ends` and the inner limits are fences:
 * without them the planner scans the whole history, and looks up the end of a check again for each of its rows.
 */

import { COMPLETIONS, type Instant } from '../../domain/check.ts'
import { LAST_ID } from '../../domain/ids.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import { pingTypeCode } from '../checks/columns.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { PRUNE_LOCK } from '../postgres/locks.ts'

/** False while another replica prunes. The lock is held until the transaction ends. */
export async function tryPruneLock(tx: Queryable): Promise<boolean> {
  const { rows } = await tx.query<{ got: boolean }>('select pg_try_advisory_xact_lock($1) as got', [PRUNE_LOCK])
  return rows[0]!.got
}

/** Keys after `afterKey` that have history in the table, also of removed checks: one look-up for each. */
export async function listHistoryKeys(
  tx: Queryable,
  table: 'pings' | 'flips',
  afterKey: number,
  limit: number,
): Promise<number[]> {
  const { rows } = await tx.query<{ key: number }>(
    `with recursive found (key) as (
        (select h.check_key from ${table} h where h.check_key > $1 order by h.check_key limit 1)
        union all
        select (select h.check_key from ${table} h where h.check_key > f.key order by h.check_key limit 1)
        from found f where f.key is not null)
      select key from found where key is not null limit $2`,
    [afterKey, limit],
  )
  return rows.map((row) => row.key)
}

/**
 * Deletes up to `limit` pings with their bodies and returns their number: of each check those beyond the newest `maxPings` and those
 * older than `oldestId`; all of a check that was removed and cannot come back (tombstones.ts). Kept at any age: the newest completion,
 * the newest start, and the start of each run in the state, as they explain what the check shows, and a repeated start must find its
 * first. The state has their times in whole milliseconds.
 */
export async function prunePings(
  tx: Queryable,
  keys: readonly number[],
  { oldestId, maxPings, limit }: { oldestId: string; maxPings: number; limit: number },
): Promise<number> {
  const { rows } = await tx.query<{ deleted: number }>(
    `with ends as materialized (
        select k.key, coalesce(s.last_ping_at, t.last_ping_at) as last_ping_at, coalesce(s.last_start_at, t.last_start_at) as last_start_at,
          s.runs, case when s.check_key is null and t.check_key is null then '${LAST_ID}'
            else greatest($2::uuid, (select n.id from pings n where n.check_key = k.key order by n.id desc offset $3 limit 1)) end as id
        from unnest($1::int8[]) k (key) left join check_states s on s.check_key = k.key left join tombstones t on t.check_key = k.key),
      gone as (
        delete from pings where ctid = any(array(
          select old.ctid from ends e cross join lateral (
            select p.ctid from pings p cross join lateral date_trunc('milliseconds', p.created_at) at
            where p.check_key = e.key and p.id < e.id
              and not (p.type in (${COMPLETIONS.map(pingTypeCode).join(', ')}) and at is not distinct from e.last_ping_at)
              and not (p.type = ${pingTypeCode('start')} and at is not distinct from e.last_start_at)
              and not (p.type = ${pingTypeCode('start')} and coalesce(e.runs @> jsonb_build_array(jsonb_build_object('startedAt', extract(epoch from at) * 1000)), false))
            limit $4) old
          limit $4))
        returning check_key, id),
      bodies as (delete from ping_bodies b using gone where b.check_key = gone.check_key and b.ping_id = gone.id)
      select count(*) as deleted from gone`,
    [keys, oldestId, maxPings - 1, limit],
  )
  return rows[0]!.deleted
}

/** Deletes up to `limit` flips and returns their number: those older than `oldestId`, but not the newest of a check; all of a check that was removed and cannot come back. */
export async function pruneFlips(
  tx: Queryable,
  keys: readonly number[],
  { oldestId, limit }: { oldestId: string; limit: number },
): Promise<number> {
  const { rowCount } = await tx.query(
    `with ends as materialized (
        select k.key, case when s.check_key is null and t.check_key is null then '${LAST_ID}'
            else least($2::uuid, (select n.id from flips n where n.check_key = k.key order by n.id desc limit 1)) end as id
        from unnest($1::int8[]) k (key) left join check_states s on s.check_key = k.key left join tombstones t on t.check_key = k.key)
      delete from flips where ctid = any(array(
        select old.ctid from ends e cross join lateral (
          select f.ctid from flips f where f.check_key = e.key and f.id < e.id limit $3) old
        limit $3))`,
    [keys, oldestId, limit],
  )
  return rowCount
}

/**
 * Deletes up to `limit` deliveries and returns their number: finished ones older than `oldest`, and all whose channel
 * is gone. One look-up for each channel, as in listHistoryKeys. By id, not by ctid: deliveries are updated, and one
 * that is being retried stays.
 */
export async function pruneDeliveries(tx: Queryable, oldest: Instant, limit: number): Promise<number> {
  const { rowCount } = await tx.query(
    `with recursive seen (channel_id) as (
        (select d.channel_id from deliveries d order by d.channel_id limit 1)
        union all
        select (select d.channel_id from deliveries d where d.channel_id > s.channel_id order by d.channel_id limit 1)
        from seen s where s.channel_id is not null)
      delete from deliveries where id = any(array(
        (select d.id from deliveries d where d.id < $1 and d.status <> 0 limit $2)
        union all
        (select d.id from seen s cross join lateral (
          select d.id from deliveries d where d.channel_id = s.channel_id
            and not exists (select from channels c where c.id = s.channel_id) limit $2) d)
        limit $2))
        and (status <> 0 or not exists (select from channels c where c.id = deliveries.channel_id))`,
    [firstIdAt(oldest), limit],
  )
  return rowCount
}

/** Deletes up to `limit` events older than `oldest` that no delivery needs, and returns their number. */
export async function pruneEvents(tx: Queryable, oldest: Instant, limit: number): Promise<number> {
  const { rowCount } = await tx.query(
    `delete from events where ctid = any(array(
        select e.ctid from events e where e.id < $1 and not exists (select from deliveries d where d.event_id = e.id) limit $2))`,
    [firstIdAt(oldest), limit],
  )
  return rowCount
}

/** Tables whose rows go by age alone: the column with the time of a row, or with its id. */
const AGED = {
  gaps: 'ended_at',
  spools: 'used_at',
  refresh_tokens: 'expires_at',
  sessions: 'expires_at',
  login_addresses: 'last_at',
  rate_windows: 'started_at',
  tombstones: 'deleted_at',
  declared_channels: 'deleted_at',
  silences: 'ends_at',
  audit_log: 'id',
} as const

/**
 * Deletes up to `limit` rows from before `oldest`, but for those that another transaction has locked, as a tombstone
 * that is being revived. Returns their number. The next run prunes the history of a tombstone.
 */
export async function pruneAged(
  tx: Queryable,
  table: keyof typeof AGED,
  oldest: Instant,
  limit: number,
): Promise<number> {
  const column = AGED[table]
  // An array, which PostgreSQL reads once: it may read the rows of `in (...)` again, and so delete more of them.
  const { rowCount } = await tx.query(
    `delete from ${table} where ctid = any(array(
        select ctid from ${table} where ${column} < $1 limit $2 for update skip locked))`,
    [column === 'id' ? firstIdAt(oldest) : timestamp(oldest), limit],
  )
  return rowCount
}
