/** The processes of the installation. Each writes its own row; PostgreSQL's clock dates it, so that processes with wrong clocks agree. */

import type { Instant } from '../../domain/check.ts'
import { unavailable } from '../../domain/errors.ts'
import type { Queryable } from '../postgres/database.ts'
import { FEATURE_NOT_SUPPORTED, sqlStateOf } from '../postgres/sqlstate.ts'

export interface ReplicaRow {
  readonly id: string
  /** The name of its machine or pod. */
  readonly host: string
  /** ROLE. */
  readonly role: string
  readonly version: string
  /** The cluster that it reconciles or would reconcile; null for a process without a controller. */
  readonly cluster: string | null
  /** When it began to lead its cluster, to within one report; null when it does not lead. */
  readonly leadingSince: Instant | null
  readonly startedAt: Instant
  readonly seenSecondsAgo: number
}

export interface Report extends Pick<ReplicaRow, 'id' | 'host' | 'role' | 'version' | 'cluster'> {
  readonly isLeading: boolean
}

/** Writes that the process works now. Deletes the rows of those that were last seen more than `forgetSeconds` ago. */
export async function reportReplica(db: Queryable, report: Report, forgetSeconds: number): Promise<void> {
  const { id, host, role, version, cluster, isLeading } = report
  await db.query({
    name: 'report_replica',
    // `skip locked`: two processes that delete the same rows do not wait for each other. Its own row, when it was frozen for long, is updated.
    text: `with gone as (
        delete from replicas where id = any(array(
          select id from replicas where seen_at < now() - $7 * interval '1 second' and id <> $1 limit 100 for update skip locked)))
      insert into replicas as r (id, host, role, version, cluster, leading_since, started_at, seen_at)
        values ($1, $2, $3, $4, $5, case when $6 then now() end, now(), now())
      on conflict (id) do update set seen_at = excluded.seen_at,
        leading_since = case when $6 then coalesce(r.leading_since, now()) end`,
    values: [id, host, role, version, cluster, isLeading, forgetSeconds],
  })
}

/** For a clean stop. */
export async function deleteReplica(db: Queryable, id: string): Promise<void> {
  await db.query('delete from replicas where id = $1', [id])
}

/** Up to `limit`, most recently seen first. Throws AppError `unavailable` on a standby, which has no unlogged tables. */
export async function listReplicas(db: Queryable, limit: number): Promise<ReplicaRow[]> {
  const { rows } = await db
    .query<ReplicaRow>(
      `select id, host, role, version, cluster, leading_since as "leadingSince", started_at as "startedAt",
        greatest(0, extract(epoch from now() - seen_at))::float8 as "seenSecondsAgo"
      from replicas order by seen_at desc, id limit $1`,
      [limit],
    )
    .catch((error) => {
      throw sqlStateOf(error) === FEATURE_NOT_SUPPORTED ? unavailable(error) : error
    })
  return rows
}
