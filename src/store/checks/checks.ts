/**
 * The configuration of checks: reads, each limited to a tenant, and the writes of people's changes. Whoever changes a check
 * holds its lock on check_states first (states.ts) and touches `checks` after that, so that no two changes wait in a circle.
 */

import type { Tenant } from '../../domain/access.ts'
import {
  type CheckState,
  type CheckTexts,
  type Instant,
  type Manager,
  type Run,
  type ShownStatus,
  STATUSES,
} from '../../domain/check.ts'
import type { Cursor } from '../../domain/page.ts'
import { instantArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import { lastSuccessOf, type StoredSpec, shownStatusSql } from './states.ts'

/** A HeartbeatCheck, by what it is called: its identity here (design, section 6). */
export interface Resource {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

export interface CheckRecord extends CheckTexts {
  readonly key: number
  readonly id: string
  readonly publicId: string
  readonly projectId: string
  readonly slug: string
  readonly managedBy: Manager
  /** The resource that the check is or was declared by. */
  readonly kubernetes: Resource | null
  readonly createdAt: Instant
  readonly spec: StoredSpec
  readonly state: CheckState
}

export interface StoredCheck extends CheckRecord {
  /** spec.suspend of the resource: while it is set, pause and resume belong to the resource. */
  readonly kubernetesSuspend: boolean | null
}

export interface CheckRow {
  key: number
  id: string
  public_id: string
  project_id: string
  name: string
  slug: string
  description: string | null
  managed_by: Manager
  kubernetes_cluster: string | null
  kubernetes_namespace: string | null
  kubernetes_name: string | null
  kubernetes_suspend: boolean | null
  created_at: Instant
  period_seconds: number | null
  schedule: string | null
  time_zone: string | null
  grace_seconds: number
  max_runtime_seconds: number | null
  status: number
  since: Instant
  last_ping_at: Instant | null
  last_success_at: Instant | null
  last_duration_ms: number | null
  last_start_at: Instant | null
  expected_at: Instant | null
  due_at: Instant | null
  runs: Run[] | null
}

export const CHECK_COLUMNS = `c.key, c.id, c.public_id, c.project_id, c.name, c.slug, c.description, c.managed_by, c.kubernetes_cluster,
  c.kubernetes_namespace, c.kubernetes_name, c.kubernetes_suspend, c.created_at, s.period_seconds, s.schedule, s.time_zone,
  s.grace_seconds, s.max_runtime_seconds, s.status, s.since, s.last_ping_at, s.last_success_at,
  s.last_duration_ms, s.last_start_at, s.expected_at, s.due_at, s.runs`

/** Whose project it is. $1 and $2 of every statement that reads for a tenant. */
const OF_TENANT = 'p.organization_id = $1 and ($2::uuid is null or p.id = $2)'

const CHECKS = 'checks c join projects p on p.id = c.project_id join check_states s on s.check_key = c.key'

export function toCheck(row: CheckRow): StoredCheck {
  const { kubernetes_cluster: cluster, kubernetes_namespace: namespace, kubernetes_name: name } = row
  return {
    key: row.key,
    id: row.id,
    publicId: row.public_id,
    projectId: row.project_id,
    slug: row.slug,
    name: row.name,
    description: row.description,
    managedBy: row.managed_by,
    kubernetes: cluster === null || namespace === null || name === null ? null : { cluster, namespace, name },
    kubernetesSuspend: row.kubernetes_suspend,
    createdAt: row.created_at,
    spec: {
      periodSeconds: row.period_seconds,
      schedule: row.schedule,
      timeZone: row.time_zone,
      graceSeconds: row.grace_seconds,
      maxRuntimeSeconds: row.max_runtime_seconds,
    },
    state: {
      status: STATUSES[row.status]!,
      since: row.since,
      lastPingAt: row.last_ping_at,
      lastSuccessAt: lastSuccessOf(STATUSES[row.status]!, row.last_ping_at, row.last_success_at),
      lastDurationMs: row.last_duration_ms,
      lastStartAt: row.last_start_at,
      expectedAt: row.expected_at,
      dueAt: row.due_at,
      runs: row.runs ?? [],
    },
  }
}

/** Null: unknown, or somebody else's. `id` is a UUID. */
export async function findCheck(tx: Queryable, tenant: Tenant, id: string): Promise<StoredCheck | null> {
  const { rows } = await tx.query<CheckRow>({
    name: 'find_check',
    text: `select ${CHECK_COLUMNS} from ${CHECKS} where ${OF_TENANT} and c.id = $3`,
    values: [tenant.organizationId, tenant.projectId, id],
  })
  return rows[0] === undefined ? null : toCheck(rows[0])
}

/** The key alone, for those who go on to lock or to read history by it. */
export async function findCheckKey(tx: Queryable, tenant: Tenant, id: string): Promise<number | null> {
  const { rows } = await tx.query<{ key: number }>({
    name: 'find_check_key',
    text: `select c.key from checks c join projects p on p.id = c.project_id where ${OF_TENANT} and c.id = $3`,
    values: [tenant.organizationId, tenant.projectId, id],
  })
  return rows[0]?.key ?? null
}

export interface CheckRowsFilter {
  readonly status: ShownStatus | null
  readonly slug: string | null
  /** Part of the name or of the slug, in any case. */
  readonly q: string | null
}

/** Before every check that there is. */
const START: Cursor = { at: 0, id: '00000000-0000-0000-0000-000000000000' }

/** Up to `limit` checks of a project after a cursor, by time of creation and id, with their status at `now`. */
export async function listCheckRows(
  tx: Queryable,
  tenant: Tenant,
  projectId: string,
  filter: CheckRowsFilter,
  { now, after, limit }: { now: Instant; after: Cursor | null; limit: number },
): Promise<StoredCheck[]> {
  const { at, id } = after ?? START
  const { rows } = await tx.query<CheckRow>({
    text: `select ${CHECK_COLUMNS} from ${CHECKS}
      where ${OF_TENANT} and c.project_id = $3 and (c.created_at, c.id) > (($4::timestamptz[])[1], $5::uuid)
        and ($6::text is null or ${shownStatusSql('($7::timestamptz[])[1]')} = $6)
        and ($8::text is null or c.slug = $8)
        and ($9::text is null or c.name ilike $9 or c.slug ilike $9)
      order by c.created_at, c.id limit $10`,
    values: [
      tenant.organizationId,
      tenant.projectId,
      projectId,
      instantArray([at]),
      id,
      filter.status,
      instantArray([now]),
      filter.slug,
      filter.q === null ? null : `%${filter.q.replace(/[\\%_]/g, '\\$&')}%`,
      limit,
    ],
  })
  return rows.map(toCheck)
}

/** Fails with a unique violation of SLUG_IS_UNIQUE when the slug is taken. */
export async function saveTexts(
  tx: Queryable,
  key: number,
  slug: string,
  { name, description }: CheckTexts,
): Promise<void> {
  await tx.query('update checks set name = $2, slug = $3, description = $4 where key = $1', [
    key,
    name,
    slug,
    description,
  ])
}

/** Names of a constraint and of an index in the schema. */
export const SLUG_IS_UNIQUE = 'checks_project_id_slug_key'
export const RESOURCE_IS_UNIQUE = 'checks_resource'

export async function saveSpec(tx: Queryable, key: number, spec: StoredSpec): Promise<void> {
  await tx.query(
    `update check_states set period_seconds = $2, schedule = $3, time_zone = $4, grace_seconds = $5, max_runtime_seconds = $6
      where check_key = $1`,
    [key, spec.periodSeconds, spec.schedule, spec.timeZone, spec.graceSeconds, spec.maxRuntimeSeconds],
  )
}

/** The check and its state. Its history is deleted apart from it (pings.ts, flips.ts). */
export async function deleteCheck(tx: Queryable, key: number): Promise<void> {
  await tx.query('delete from checks where key = $1', [key])
}
