/**
 * Up to when all Jobs of each area are recorded (table seen_areas). An area is what one watch covers
 * (domain/watch-area.ts).
 */

import type { Instant } from '../../domain/check.ts'
import { ofResource, type Resource } from '../checks/checks.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

/** The name of the cluster of an area, in SQL. */
export function clusterOfSql(area: string): string {
  return `split_part(${area}, '/', 1)`
}

export interface Seen {
  readonly cluster: string
  /**
   * All areas that are watched. Others of the cluster are forgotten: what happens there is not seen any more, and no
   * fault.
   */
  readonly watched: readonly string[]
  /** Those of which all is recorded. */
  readonly areas: readonly string[]
  readonly until: Instant
  /**
   * HeartbeatChecks of these areas of which something is not recorded: the deadlines of their checks wait on. Default:
   * none.
   */
  readonly held?: readonly Pick<Resource, 'namespace' | 'name'>[]
}

/** Never goes back: a leader that was paused may write after the next one. */
export async function saveSeen(tx: Queryable, { cluster, watched, areas, until, held = [] }: Seen): Promise<void> {
  await tx.query({
    name: 'save_jobs_seen',
    text: `with forgotten as (delete from seen_areas where cluster = $1 and area <> all($2::text[]))
      insert into seen_areas as a (area, cluster, seen_at, held)
      select area, $1, $4::timestamptz, array(
          select c.key from unnest($5::text[], $6::text[]) h (namespace, name) cross join lateral (
            select key from checks where ${ofResource('checks', '$1', 'h.namespace', 'h.name')} limit 1) c)
        from unnest($3::text[]) area order by area
      on conflict (area) do update set seen_at = excluded.seen_at, held = excluded.held where a.seen_at < excluded.seen_at`,
    values: [
      cluster,
      watched,
      areas,
      timestamp(until),
      held.map(({ namespace }) => namespace),
      held.map(({ name }) => name),
    ],
  })
}

/**
 * Saves which areas of the cluster were never seen although HeartbeatChecks there follow a source, since when they are
 * watched: so that an alert can say it. Those that were seen, or that are known, stay as they are.
 */
export async function saveUnseen(db: Queryable, cluster: string, areas: readonly string[]): Promise<void> {
  await db.query({
    name: 'save_jobs_unseen',
    text: `with forgotten as (delete from seen_areas where cluster = $1 and area <> all($2::text[]) and ${NEVER_SEEN})
      insert into seen_areas (area, cluster, seen_at, watched_since)
      select given.area, $1, to_timestamp(0), clock_timestamp() from unnest($2::text[]) given (area)
        where not exists (select from seen_areas a where a.area = given.area) order by given.area
      on conflict do nothing`,
    values: [cluster, areas],
  })
}

/** No deadline is before that time. */
const NEVER_SEEN = 'seen_at = to_timestamp(0)'

export interface SeenCluster {
  readonly cluster: string
  /**
   * Of that area of the cluster which was seen last the longest ago; since when it is watched, if it was never seen.
   */
  readonly seenAt: Instant
}

/**
 * The clusters in which a check follows a source, at most `limit`; with `seconds`, those whose time is older. Areas in
 * which no check does do not count, unless they were never seen: then the HeartbeatChecks there have no checks yet.
 */
export async function listSeen(db: Queryable, limit: number, seconds: number | null = null): Promise<SeenCluster[]> {
  const { rows } = await db.query<SeenCluster>({
    name: 'list_jobs_seen',
    text: `select a.cluster, min(greatest(a.seen_at, a.watched_since)) as "seenAt" from seen_areas a
      where ($2::int8 is null or greatest(a.seen_at, a.watched_since) < clock_timestamp() - $2 * interval '1 second')
        and (${NEVER_SEEN} or a.area in (select s.job_area from cron_jobs j join check_states s on s.check_key = j.check_key))
      group by a.cluster order by a.cluster limit $1`,
    values: [limit, seconds],
  })
  return rows
}

/** Null: the area was seen within the last `seconds`, or is not watched. */
export async function findUnseen(db: Queryable, area: string, seconds: number): Promise<SeenCluster | null> {
  const { rows } = await db.query<SeenCluster>({
    name: 'find_jobs_unseen',
    text: `select cluster, greatest(seen_at, watched_since) as "seenAt" from seen_areas
      where area = $1 and greatest(seen_at, watched_since) < clock_timestamp() - $2 * interval '1 second'`,
    values: [area, seconds],
  })
  return rows[0] ?? null
}
