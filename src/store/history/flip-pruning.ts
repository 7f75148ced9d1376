/**
 * What is kept of flips, and of the events and deliveries that they cause, by number; as in pruning.ts. The order is
 * deliveries, events, flips: a delivery that is requested again in between stays, and so do its event and its flip.
 */

import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

/** The keys of checks whose status has changed since then. Scans the states, and no history. */
export async function listFlippedKeys(tx: Queryable, since: Instant): Promise<number[]> {
  const { rows } = await tx.query<{ key: number }>(
    `select check_key as key from check_states where since >= $1::timestamptz order by check_key`,
    [timestamp(since)],
  )
  return rows.map((row) => row.key)
}

/** The keys of checks that have events without a flip (check.late) from this id on. Reads no older event. */
export async function listKeysOfEventsAlone(tx: Queryable, firstId: string): Promise<number[]> {
  const { rows } = await tx.query<{ key: number }>(
    `select distinct check_key as key from events where id >= $1::uuid and flip_id is null and check_key is not null`,
    [firstId],
  )
  return rows.map((row) => row.key)
}

/** The first flip and the first event of a check that are kept by number: older ones may go. */
export interface FlipEnd {
  readonly key: number
  /** Null: there are fewer. */
  readonly flipId: string | null
  readonly eventId: string
}

/** The smallest id of its millisecond: an event is as old as its flip, but the rest of their ids is random. */
const FLOOR = (id: string) => `(left(${id}::text, 13) || '-0000-0000-000000000000')::uuid`

/** Of these checks, the ends of those that have more than `maxFlips` flips, or events. */
export async function listFlipEnds(tx: Queryable, keys: readonly number[], maxFlips: number): Promise<FlipEnd[]> {
  const { rows } = await tx.query<FlipEnd>(
    `select k.key, f.id as "flipId", e.id as "eventId" from unnest($1::int8[]) k (key)
      left join lateral (select n.id from flips n where n.check_key = k.key order by n.id desc offset $2 limit 1) f on true
      left join lateral (select n.id from events n where n.check_key = k.key order by n.id desc offset $2 limit 1) newest on true
      cross join lateral (select greatest(${FLOOR('f.id')}, newest.id) as id) e
      where exists (select from flips o where o.check_key = k.key and o.id < f.id)
        or exists (select from events o where o.check_key = k.key and o.id < e.id)`,
    [keys, maxFlips - 1],
  )
  return rows
}

/** An event has some deliveries, 40 at the most. */
const EVENT_ROWS = 4

/**
 * Deletes what is before these ends: up to `limit` flips, and a part of that number of events with their deliveries. An event with a pending
 * delivery stays with all its deliveries, and so does its flip.
 */
export async function pruneFlipsBefore(
  tx: Queryable,
  ends: readonly FlipEnd[],
  limit: number,
): Promise<{ deleted: number; isDone: boolean }> {
  if (ends.length === 0) return { deleted: 0, isDone: true }
  const most = Math.ceil(limit / EVENT_ROWS)
  const eventIds = await listOldEvents(tx, ends, most)
  const deliveries = await deleteDeliveriesOf(tx, eventIds)
  const gone = await deleteEventsWithout(tx, eventIds)
  const deleted = deliveries + gone.length + (await deleteFlipsOf(tx, ends, gone))
  if (eventIds.length >= most) return { deleted, isDone: false }
  const rest = await deleteFlipsWithout(tx, ends, limit)
  return { deleted: deleted + rest, isDone: rest < limit }
}

const keysOf = (ends: readonly FlipEnd[]) => ends.map(({ key }) => key)

/** Without those that have a pending delivery. These are read once: a join reads all of them for each event. */
async function listOldEvents(tx: Queryable, ends: readonly FlipEnd[], limit: number): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `with pending as materialized (select d.event_id from deliveries d where d.status = 0 and d.check_key = any($1::int8[]))
      select old.id from unnest($1::int8[], $2::uuid[]) x (key, id) cross join lateral (
        select e.id from events e where e.check_key = x.key and e.id < x.id and e.id not in (select event_id from pending)
        order by e.id limit $3) old
      limit $3`,
    [keysOf(ends), ends.map(({ eventId }) => eventId), limit],
  )
  return rows.map((row) => row.id)
}

/** One that is requested again meanwhile stays. */
async function deleteDeliveriesOf(tx: Queryable, eventIds: readonly string[]): Promise<number> {
  if (eventIds.length === 0) return 0
  const text = 'delete from deliveries where event_id = any($1::uuid[]) and status <> 0'
  return (await tx.query(text, [eventIds])).rowCount
}

/** Those that have no delivery any more. Returns the ids of their flips. */
async function deleteEventsWithout(tx: Queryable, eventIds: readonly string[]): Promise<(string | null)[]> {
  if (eventIds.length === 0) return []
  const { rows } = await tx.query<{ flipId: string | null }>(
    `delete from events where ctid = any(array(
        select e.ctid from events e where e.id = any($1::uuid[]) and not exists (select from deliveries d where d.event_id = e.id)))
      returning flip_id as "flipId"`,
    [eventIds],
  )
  return rows.map(({ flipId }) => flipId)
}

async function deleteFlipsOf(
  tx: Queryable,
  ends: readonly FlipEnd[],
  flipIds: readonly (string | null)[],
): Promise<number> {
  if (flipIds.length === 0) return 0
  const { rowCount } = await tx.query(
    `delete from flips where ctid = any(array(
        select f.ctid from unnest($1::int8[], $2::uuid[]) x (key, id)
        join flips f on f.check_key = x.key and f.id < x.id and f.id = any($3::uuid[])))`,
    [keysOf(ends), ends.map(({ flipId }) => flipId), flipIds],
  )
  return rowCount
}

/** Flips without an event, of checks whose old events are gone but for those with pending deliveries. Their list is read once: no index finds the event of a flip. */
async function deleteFlipsWithout(tx: Queryable, ends: readonly FlipEnd[], limit: number): Promise<number> {
  const { rowCount } = await tx.query(
    `with kept as materialized (
        select e.flip_id from events e where e.check_key = any($1::int8[]) and e.flip_id is not null)
      delete from flips where ctid = any(array(
        select old.ctid from unnest($1::int8[], $2::uuid[]) x (key, id) cross join lateral (
          select f.ctid from flips f where f.check_key = x.key and f.id < x.id and f.id not in (select flip_id from kept) limit $3) old
        limit $3))`,
    [keysOf(ends), ends.map(({ flipId }) => flipId), limit],
  )
  return rowCount
}
