/** The checks that follow a source. */

import {
  COMPLETIONS,
  type Instant,
  PING_TYPES,
  type PingType,
  STATUSES,
  type StoredStatus,
} from '../../domain/check.ts'
import { JOB_TIME_MS } from '../../domain/followed.ts'
import { LAST_ID } from '../../domain/ids.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import { ofResource, type Resource } from '../checks/checks.ts'
import { pingSourceCode, pingTypeCode, statusCode } from '../checks/columns.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { clusterOfSql } from './seen-areas.ts'

export interface FollowingCheck {
  readonly key: number
  readonly createdAt: Instant
}

/** The check of each resource, in their order; null: it has none, or one that follows no source. */
export async function findFollowing(tx: Queryable, resources: readonly Resource[]): Promise<(FollowingCheck | null)[]> {
  const { rows } = await tx.query<{ key: number | null; createdAt: Instant }>({
    name: 'find_following',
    text: `select c.key, c.created_at as "createdAt"
      from unnest($1::text[], $2::text[], $3::text[]) with ordinality i (cluster, namespace, name, place)
      left join lateral (
        select c.key, c.created_at from checks c where ${ofResource('c', 'i.cluster', 'i.namespace', 'i.name')}
          and exists (select from check_states s where s.check_key = c.key and ${clusterOfSql('s.job_area')} = i.cluster) limit 1) c on true
      order by i.place`,
    values: [
      resources.map(({ cluster }) => cluster),
      resources.map(({ namespace }) => namespace),
      resources.map(({ name }) => name),
    ],
  })
  return rows.map(({ key, createdAt }) => (key === null ? null : { key, createdAt }))
}

export interface RunOfCheck {
  readonly key: number
  /** Null: a success that only its CronJob knows. */
  readonly runId: string | null
  /** When it ended, or else started. */
  readonly at: Instant
  /** When it ran, as its Job says, if `StoredRun.overruledAt` is wanted. `until`: null while it runs. */
  readonly span?: { readonly from: Instant; readonly until: Instant | null } | null
}

/** What the history has of a run. */
export interface StoredRun {
  /** The types of its pings that Jobs reported. */
  readonly jobTypes: readonly PingType[]
  /** The types of its pings that its container sent with the run's id. */
  readonly httpTypes: readonly PingType[]
  /** Without a run id: a Job of this check succeeded at that time, whichever of the two clocks is ahead. */
  readonly hasSuccess: boolean
  /** It is older than the history of its check goes back, so that it may have been recorded and pruned. */
  readonly isPruned: boolean
  /** It is an open run of its check. */
  readonly isOpen: boolean
  /**
   * The last completion that a container sent within the span of the run, without the id of a Job, if that is no
   * success, and if no other Job ran then whose end is stored.
   */
  readonly overruledAt: Instant | null
}

/** So far the clock of a cluster may be ahead of the database's. CronJobs start a Job once a minute at most. */
const CLOCKS_MS = 60_000

const SUCCESS = pingTypeCode('success')
const START = pingTypeCode('start')
const ENDS = COMPLETIONS.map(pingTypeCode).join(', ')
const LOG = pingTypeCode('log')
const JOB = pingSourceCode('job')

/**
 * Of each of these runs, in their order; under the locks of their checks, if `overruledAt` is to be right. Pings that
 * pruning keeps at any age do not say how far the history goes back, unless there are no others. A success whose time
 * is no whole second was ahead of the database's clock (checks/jobs/to-change.ts): it is the same success up to
 * CLOCKS_MS later.
 */
export async function readStoredRuns(tx: Queryable, runs: readonly RunOfCheck[]): Promise<StoredRun[]> {
  const rows = await tx.queryColumns({
    name: 'read_stored_runs',
    text: `select
        array(select p.type from pings p where p.check_key = i.key and p.run_id = i.run_id and p.source = ${JOB}),
        array(select p.type from pings p where p.check_key = i.key and p.run_id = i.run_id and p.source <> ${JOB}),
        i.run_id is null and exists (select from pings p where p.check_key = i.key and p.id >= i.clocks_id and p.id < i.to_id
          and p.source = ${JOB} and (p.id >= i.from_id and p.type in (${SUCCESS}, ${LOG})
            or p.type = ${SUCCESS} and date_trunc('second', p.created_at) <> date_trunc('milliseconds', p.created_at))),
        coalesce(i.at < o.created_at
          and s.pings_total > (select count(*) from pings p where p.check_key = i.key), false),
        coalesce(s.runs @> jsonb_build_array(jsonb_build_object('id', i.run_id)), false),
        -- Not looked up where the check has seen no completion since the run began: nearly all Jobs are the only ones that report.
        case when s.last_ping_at >= i.began_at then (
          select h.created_at from (
            select p.type, p.created_at from pings p where p.check_key = i.key and p.id >= i.began_id and p.id < i.until_id
              and p.source <> ${JOB} and p.type in (${ENDS})
              and (p.run_id = any($2::uuid[])) is not true
              and not exists (select from pings j where j.check_key = i.key and j.run_id = p.run_id and j.source = ${JOB})
            order by p.id desc limit 1) h
          where h.type <> ${SUCCESS} and not exists (
            select from pings e where e.check_key = i.key and e.id >= i.began_id and e.source = ${JOB} and e.type <> ${START}
              and e.run_id <> i.run_id and e.created_at >= date_trunc('second', h.created_at) and exists (
                select from pings b where b.check_key = i.key and b.run_id = e.run_id and b.type = ${START} and b.created_at <= h.created_at)))
        end
      from unnest($1::int8[], $2::uuid[], $3::timestamptz[], $4::uuid[], $5::uuid[], $6::uuid[], $7::timestamptz[], $8::uuid[], $9::uuid[])
        with ordinality i (key, run_id, at, from_id, to_id, clocks_id, began_at, began_id, until_id, place)
      left join lateral (
        select s.pings_total, s.last_ping_at, s.last_start_at, s.runs from check_states s where s.check_key = i.key limit 1) s on true
      left join lateral (
        select coalesce(
          (select p.created_at from pings p cross join lateral date_trunc('milliseconds', p.created_at) at
            where p.check_key = i.key
              and not (p.type in (${ENDS}) and at is not distinct from s.last_ping_at)
              and not (p.type = ${START} and (at is not distinct from s.last_start_at
                or coalesce(s.runs @> jsonb_build_array(jsonb_build_object('startedAt', extract(epoch from at) * 1000)), false)))
            order by p.id limit 1),
          (select p.created_at from pings p where p.check_key = i.key order by p.id desc limit 1)) as created_at) o on true
      order by i.place`,
    values: [
      runs.map(({ key }) => key),
      runs.map(({ runId }) => runId),
      runs.map(({ at }) => timestamp(at)),
      runs.map(({ at }) => firstIdAt(at)),
      runs.map(({ at }) => firstIdAt(at + 1)),
      runs.map(({ at }) => firstIdAt(Math.max(0, at - CLOCKS_MS))),
      runs.map(({ span }) => timestamp(span?.from ?? null)),
      runs.map(({ span }) => (span ? firstIdAt(span.from) : null)),
      runs.map(({ span }) => (span ? lastIdOf(span.until) : null)),
    ],
  })
  return rows.map((row) => {
    const [jobCodes, httpCodes, hasSuccess, isPruned, isOpen, overruledAt] = row as StoredRunRow
    const toTypes = (codes: readonly number[]) => codes.map((code) => PING_TYPES[code]!)
    return { jobTypes: toTypes(jobCodes), httpTypes: toTypes(httpCodes), hasSuccess, isPruned, isOpen, overruledAt }
  })
}

type StoredRunRow = [number[], number[], boolean, boolean, boolean, Instant | null]

/** The smallest id after the second in which a run ended. */
function lastIdOf(until: Instant | null): string {
  return until === null ? LAST_ID : firstIdAt(until + JOB_TIME_MS)
}

export interface FollowedCheck {
  readonly key: number
  readonly resource: Resource
  /** The name of its CronJob. Null: not known yet. */
  readonly source: string | null
  readonly createdAt: Instant
  readonly status: StoredStatus
  readonly dueAt: Instant | null
  /** Its grace time: its slot is so long before dueAt. */
  readonly graceMs: number
  /** Ids of the open runs that Jobs have started; not those that the container's own pings have. */
  readonly openJobRuns: readonly string[]
  /** The due time that its stored detail explains (markSeen). Null: none. */
  readonly explainedFor: Instant | null
}

type FollowedRow = Omit<FollowedCheck, 'resource' | 'status'> & Resource & { status: number }

const FOLLOWED = `c.key, c.kubernetes_cluster as cluster, c.kubernetes_namespace as namespace, c.kubernetes_name as name,
  c.created_at as "createdAt", s.status, s.due_at as "dueAt", s.grace_seconds * 1000::int8 as "graceMs", j.name as source, j.waiting_for as "explainedFor",
  -- A ping that was pruned was the Job's: few containers send their own.
  array(select r ->> 'id' from jsonb_array_elements(coalesce(s.runs, '[]')) r where r ->> 'id' is not null and not exists (
    select from pings p where p.check_key = s.check_key and p.run_id = (r ->> 'id')::uuid and p.type = ${START} and p.source <> ${JOB})) as "openJobRuns"`
const BY_KEY = `cross join lateral (select * from checks where key = s.check_key limit 1) c
  left join lateral (select name, waiting_for from cron_jobs where check_key = s.check_key limit 1) j on true`

function toFollowed({ cluster, namespace, name, status, ...row }: FollowedRow): FollowedCheck {
  return { ...row, resource: { cluster, namespace, name }, status: STATUSES[status]! }
}

const PAGE = 1_000

/** A page of the checks that follow a source of the cluster, with a greater key than `after`, in the order of keys. */
export async function listFollowed(db: Queryable, cluster: string, after = 0): Promise<FollowedCheck[]> {
  const { rows } = await db.query<FollowedRow>({
    name: 'list_followed',
    text: `select ${FOLLOWED} from (
        select s.* from check_states s where ${clusterOfSql('s.job_area')} = $1 and s.check_key > $2 order by s.check_key limit $3) s ${BY_KEY}
      where c.kubernetes_name is not null order by s.check_key`,
    values: [cluster, after, PAGE],
  })
  return rows.map(toFollowed)
}

/** Up to `limit` checks of these areas that are due at or before `until`, the most urgent first. */
export async function listFollowedDue(
  db: Queryable,
  areas: readonly string[],
  until: Instant,
  limit = PAGE,
): Promise<FollowedCheck[]> {
  const { rows } = await db.query<FollowedRow>({
    name: 'list_followed_due',
    text: `select ${FOLLOWED} from (
        select s.* from unnest($1::text[]) area cross join lateral (
          -- Never later than the due time: the index has it.
          select * from check_states where job_area = area and wake_at <= $2::timestamptz and due_at <= $2::timestamptz
          order by wake_at limit $3) s
        order by s.wake_at limit $3) s ${BY_KEY}
      where c.kubernetes_name is not null order by s.due_at, s.check_key`,
    values: [areas, timestamp(until), limit],
  })
  return rows.map(toFollowed)
}

/**
 * Those of these areas with a check that is to be looked at by `until`; or within `aheadMs` after that, if half of its
 * grace time has passed: then the reason is looked for why its run has not started.
 */
export async function listDueAreas(
  db: Queryable,
  areas: readonly string[],
  until: Instant,
  aheadMs: number,
): Promise<string[]> {
  const { rows } = await db.query<{ area: string }>({
    name: 'list_due_areas',
    text: `select area from unnest($1::text[]) area where exists (
        select from check_states where job_area = area and wake_at <= $3::timestamptz
          and (wake_at <= $2::timestamptz or due_at - grace_seconds * interval '0.5 second' <= $2::timestamptz))`,
    values: [areas, timestamp(until), timestamp(until + aheadMs)],
  })
  return rows.map(({ area }) => area)
}

/** An open run whose deadline has passed, and that takes its check down. */
export interface OverdueRun {
  readonly resource: Resource
  /** The name of its CronJob. */
  readonly source: string
  readonly runId: string
  readonly deadlineAt: Instant
}

/** Open runs whose deadline has passed at `until`, one of a check, but for those that are explained (markSeen). */
export async function listOverdueRuns(
  db: Queryable,
  areas: readonly string[],
  until: Instant,
  limit = PAGE,
): Promise<OverdueRun[]> {
  const { rows } = await db.query<Omit<OverdueRun, 'resource'> & Resource>({
    name: 'list_overdue_runs',
    text: `select c.kubernetes_cluster as cluster, c.kubernetes_namespace as namespace, c.kubernetes_name as name, j.name as source,
        r.id as "runId", r.at as "deadlineAt"
      from unnest($1::text[]) area cross join lateral (
        select check_key, due_at, runs from check_states
        where job_area = area and wake_at <= $2::timestamptz and status <> ${statusCode('down')}
          and exists (select from jsonb_array_elements(runs) r where (r ->> 'deadlineAt')::float8 <= $3)
        order by wake_at limit $4) s
      cross join lateral (
        select r ->> 'id' as id, (r ->> 'deadlineAt')::float8 as at from jsonb_array_elements(s.runs) r
        where r ->> 'deadlineAt' is not null order by at limit 1) r
      ${BY_KEY}
      where c.kubernetes_name is not null and j.name is not null and r.id is not null
        -- Else it is missed first.
        and (s.due_at is null or extract(epoch from s.due_at) * 1000 > r.at)
        and (j.waiting_for is null or extract(epoch from j.waiting_for) * 1000 <> r.at)
      order by r.at, s.check_key limit $4`,
    values: [areas, timestamp(until), until, limit],
  })
  return rows.map(({ cluster, namespace, name, ...run }) => ({ ...run, resource: { cluster, namespace, name } }))
}
