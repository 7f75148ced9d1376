/** The checks of `npm run bench:flood`, written by SQL: no API could make a million of them in time. */

import { writeFileSync } from 'node:fs'
import type { Database } from '../../src/store/postgres/database.ts'
import { PROJECT_ID } from '../../test/support/service-process.ts'

/** In one statement. */
const PART = 50_000

/** Makes `count` armed checks that were up a moment ago and are due in hours, each with a ping. */
export async function seedArmed(database: Database, count: number): Promise<void> {
  for (let first = 1; first <= count; first += PART)
    await database.query(
      `with made as (
          insert into checks (id, public_id, project_id, name, slug, created_at)
          select gen_random_uuid(), gen_random_uuid(), $1, 'check ' || n, 'check-' || n, now() from generate_series($2::int, $3::int) n
          returning key),
        pinged as (
          insert into pings (id, check_key, type, source, created_at) select gen_random_uuid(), key, 0, 0, now() from made)
        insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at, last_ping_at, expected_at, due_at, wake_at)
        select key, 21600, 0, 1, now(), now(), now(), t.due, t.due, t.due
        from made cross join lateral (select now() + interval '5 hours' + random() * interval '1 hour' where key > 0) t (due)`,
      [PROJECT_ID, first, Math.min(count, first + PART - 1)],
    )
  await database.query('vacuum analyze')
}

/** The keys and public ids, in the order of the keys. */
export async function listChecks(database: Database): Promise<{ key: number; publicId: string }[]> {
  const text = 'select key, public_id as "publicId" from checks order by key'
  return (await database.query<{ key: number; publicId: string }>(text)).rows
}

export function writeIds(path: string, checks: readonly { publicId: string }[]): string {
  writeFileSync(path, checks.map(({ publicId }) => publicId).join('\n'))
  return path
}

/**
 * Takes what happened before out of the database, and makes the checks up to `lastKey` due: `perSecond` of them in each second that follows `inMs`.
 * Returns the time of the first deadline.
 */
export async function makeDue(
  database: Database,
  { lastKey, perSecond, inMs }: { lastKey: number; perSecond: number; inMs: number },
): Promise<number> {
  const { rows } = await database.query<{ first: number }>(
    `with begun as materialized (select clock_timestamp() + $3 * interval '1 millisecond' as at),
      -- Not in the order of the keys, or a batch would have neighbours only.
      due as (select check_key, begun.at + (row_number() over (order by hashint8(check_key)) - 1) / $2::float8 * interval '1 second' as at
        from check_states, begun where check_key <= $1),
      made as (update check_states s set status = 1, since = now(), changes = null, notified = null, quiet_at = null, incident_since = null,
          expected_at = due.at, due_at = due.at, wake_at = due.at
        from due where s.check_key = due.check_key)
      select at as first from begun`,
    [lastKey, perSecond, inMs],
  )
  await forget(database)
  await database.query('vacuum analyze check_states')
  return rows[0]!.first
}

/** Removes what was written, so that nothing is left to deliver. */
export async function forget(database: Database): Promise<void> {
  await database.query('truncate deliveries, events, flips')
}

export async function isOverdue(database: Database): Promise<boolean> {
  const text = 'select from check_states where wake_at <= clock_timestamp() order by wake_at limit 1'
  return (await database.query(text)).rowCount > 0
}

export interface Written {
  readonly flips: number
  /** Checks with a flip. */
  readonly checks: number
  readonly deliveries: number
  readonly lastAt: number
  /** From the deadline to the flip, in seconds. */
  readonly lagP99: number
  readonly lagWorst: number
}

export async function readWritten(database: Database, lastKey: number): Promise<Written> {
  const { rows } = await database.query<Written>(
    `select count(*) as flips, count(distinct check_key) as checks, max(detected_at) as "lastAt",
        (select count(*) from deliveries where type = 'check.down') as deliveries,
        percentile_disc(0.99) within group (order by extract(epoch from detected_at - at))::float8 as "lagP99",
        max(extract(epoch from detected_at - at))::float8 as "lagWorst"
      from flips where reason = 'missed' and check_key <= $1`,
    [lastKey],
  )
  return rows[0]!
}

/** At `points` times from the first deadline to the last flip: how many flips, and how late the newest of them were. */
export async function readCourse(
  database: Database,
  { from, to, points }: { from: number; to: number; points: number },
): Promise<{ seconds: number; flips: number; lag: number }[]> {
  const { rows } = await database.query<{ seconds: number; flips: number; lag: number }>(
    `with f as (select least($3::int, greatest(1, width_bucket(extract(epoch from detected_at), $1::float8, $2::float8, $3::int))) as part,
        extract(epoch from detected_at - at)::float8 as lag from flips where reason = 'missed')
      select part * ($2::float8 - $1::float8) / $3::int as seconds, sum(count(*)) over (order by part)::float8 as flips, max(lag) as lag
      from f group by part order by part`,
    [from / 1_000, to / 1_000 + 0.001, points],
  )
  return rows
}
