/** What is known of the CronJob that a check follows, apart from the check's state (table cron_jobs). */

import type { CheckState, Instant } from '../../domain/check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import { toStoredText } from '../../domain/plain-text.ts'
import { ofResource, type Resource } from '../checks/checks.ts'
import { statusCode } from '../checks/columns.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface CronJobRow {
  readonly key: number
  readonly name: string
  readonly lastRun: LastRun | null
  /** Names of the Jobs of the open runs, by run id. */
  readonly jobs: Readonly<Record<string, string>>
}

/**
 * Saves the name of the CronJob that a check follows; null: it follows none. Writes nothing where it is so already.
 * `limitFrom`: where its longest run time is set, in words; null: as before.
 */
export async function saveSource(
  tx: Queryable,
  key: number,
  name: string | null,
  limitFrom: string | null = null,
): Promise<void> {
  if (name === null) {
    await tx.query({ name: 'delete_source', text: 'delete from cron_jobs where check_key = $1', values: [key] })
    return
  }
  await tx.query({
    name: 'save_source',
    // A conflict would lock the row, which is a write: each reconcile comes here.
    text: `insert into cron_jobs as j (check_key, name, limit_from)
      select i.key, i.name, i.limit_from from (values ($1::int8, $2::text, $3::text)) i (key, name, limit_from)
      where not exists (select from cron_jobs o where o.check_key = i.key
        and o.name = i.name and o.limit_from is not distinct from coalesce(i.limit_from, o.limit_from))
      on conflict (check_key) do update set name = excluded.name, limit_from = coalesce(excluded.limit_from, j.limit_from)`,
    values: [key, name, limitFrom],
  })
}

export interface FollowedFacts {
  /** The newest run of the CronJob; null: none is known. */
  readonly lastRun: LastRun | null
  /** Of the flip that gave the check its status and reason; null: none is known. */
  readonly detail: string | null
}

/** Of a check that follows a CronJob. */
export async function findFollowedFacts(
  db: Queryable,
  { key, state }: { readonly key: number; readonly state: Pick<CheckState, 'status' | 'reason'> },
): Promise<FollowedFacts> {
  const { rows } = await db.query<FollowedFacts>({
    name: 'find_followed_facts',
    text: `select j.last_run as "lastRun", case when f.to_status = $2 and f.reason = $3 then f.detail end as detail
      from (values ($1::int8)) c (key)
      left join cron_jobs j on j.check_key = c.key
      left join lateral (select to_status, reason, detail from flips where check_key = c.key and from_status is distinct from to_status order by id desc limit 1) f on true`,
    values: [key, statusCode(state.status), state.reason],
  })
  return rows[0]!
}

/**
 * Those of these checks that have a row. The caller holds the locks on their states, as everyone does who writes a last
 * run.
 */
export async function readCronJobs(tx: Queryable, keys: readonly number[]): Promise<CronJobRow[]> {
  const { rows } = await tx.query<CronJobRow>({
    name: 'read_cron_jobs',
    text: 'select check_key as key, name, last_run as "lastRun", jobs from cron_jobs where check_key = any($1::int8[])',
    values: [keys],
  })
  return rows
}

/** What a flip by a passed deadline says of the run and its Job. */
export interface DeadlineSource extends Pick<CronJobRow, 'key' | 'jobs'> {
  /** Where the longest run time of the check is set, in words. */
  readonly limitFrom: string | null
  /** The deadline that the two below are about (`DeadlineDetail`). */
  readonly waitingFor: Instant | null
  readonly waitingJob: string | null
  readonly waitingDetail: string | null
}

/** Those of these checks that have a row. */
export async function readDeadlineSources(tx: Queryable, keys: readonly number[]): Promise<DeadlineSource[]> {
  const { rows } = await tx.query<DeadlineSource>({
    name: 'read_deadline_sources',
    text: `select check_key as key, jobs, limit_from as "limitFrom", waiting_for as "waitingFor", waiting_job as "waitingJob",
        waiting_detail as "waitingDetail"
      from cron_jobs where check_key = any($1::int8[])`,
    values: [keys],
  })
  return rows
}

/** In the order of keys, as everyone who writes several. */
export async function saveCronJobs(tx: Queryable, changed: readonly CronJobRow[]): Promise<void> {
  const rows = changed.toSorted((one, other) => one.key - other.key)
  await tx.query({
    name: 'save_cron_jobs',
    text: `insert into cron_jobs as j (check_key, name, last_run, jobs)
      select * from unnest($1::int8[], $2::text[], $3::jsonb[], $4::jsonb[])
      on conflict (check_key) do update set name = excluded.name, last_run = excluded.last_run, jobs = excluded.jobs`,
    values: [
      rows.map(({ key }) => key),
      rows.map(({ name }) => name),
      rows.map(({ lastRun }) => (lastRun === null ? null : JSON.stringify(lastRun))),
      rows.map(({ jobs }) => JSON.stringify(jobs)),
    ],
  })
}

/**
 * Why the run of a check has not started that is due at `dueAt`, or what the pods of one do that should have ended by
 * then.
 */
export interface DeadlineDetail {
  readonly resource: Resource
  /** The name of the CronJob. */
  readonly source: string
  /** Its deadline. */
  readonly dueAt: Instant
  /** The name of the Job that waits, that blocks others, or that takes too long. Null: there is none. */
  readonly job: string | null
  /** A sentence for people, or of a run that takes too long its second part. The first characters are stored. */
  readonly detail: string
}

/** For the flips that may follow (checks/jobs/explain-deadline.ts). Without a check that follows a source: nothing. */
export async function saveDeadlineDetails(tx: Queryable, given: readonly DeadlineDetail[]): Promise<void> {
  // A statement may write a row once.
  const details = [...new Map(given.map((one) => [Object.values(one.resource).join('/'), one])).values()]
  await tx.query({
    name: 'save_deadline_details',
    text: `insert into cron_jobs as j (check_key, name, waiting_job, waiting_detail, waiting_for)
      select c.key, i.source, i.job, i.detail, i.due_at
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
        i (cluster, namespace, name, source, job, detail, due_at)
      cross join lateral (
        select c.key from checks c join check_states s on s.check_key = c.key and s.job_area is not null
        where ${ofResource('c', 'i.cluster', 'i.namespace', 'i.name')} limit 1) c
      order by c.key
      on conflict (check_key) do update
        set waiting_job = excluded.waiting_job, waiting_detail = excluded.waiting_detail, waiting_for = excluded.waiting_for
        where (j.waiting_job, j.waiting_detail, j.waiting_for) is distinct from
          (excluded.waiting_job, excluded.waiting_detail, excluded.waiting_for)`,
    values: [
      details.map(({ resource }) => resource.cluster),
      details.map(({ resource }) => resource.namespace),
      details.map(({ resource }) => resource.name),
      details.map(({ source }) => source),
      details.map(({ job }) => job),
      details.map(({ detail }) => toStoredText(detail)),
      details.map(({ dueAt }) => timestamp(dueAt)),
    ],
  })
}
