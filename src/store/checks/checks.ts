/**
 * The configuration of checks: reads, each limited to a tenant, and the writes of people's changes. Every change of a check first
 * takes its lock in check_states (states.ts) and then touches `checks`, so that no two changes deadlock.
 */

import type { Tenant } from '../../domain/access.ts'
import type { CheckState, CheckTexts, Instant } from '../../domain/check.ts'
import type { CheckPlace, CheckSort } from '../../domain/check-order.ts'
import type { LastRun } from '../../domain/last-run.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { fieldsOf, namesOf, read, settersOf, valuesOf } from './column-lists.ts'
import {
  CHECK,
  type CheckFields,
  type CheckIdentity,
  type CheckOrigin,
  type CheckOwner,
  type CheckRowsFilter,
  narrow,
  SPEC,
  STATE,
  type StoredSpec,
  statusCode,
  TEXTS,
  toState,
  toStoredSpec,
} from './columns.ts'
import { toOrderSql } from './orders.ts'

/** The names of a HeartbeatCheck: its identity here (design, section 6). */
export interface Resource {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** SQL: whether a row of this table is of the resource. */
export const ofResource = (table: string, cluster = '$1', namespace = '$2', name = '$3'): string =>
  `${table}.kubernetes_cluster = ${cluster} and ${table}.kubernetes_namespace = ${namespace} and ${table}.kubernetes_name = ${name}`

export interface CheckRecord extends CheckIdentity, CheckTexts, Pick<CheckOwner, 'managedBy'> {
  readonly key: number
  /** The resource that the check is or was declared by. */
  readonly kubernetes: Resource | null
  readonly spec: StoredSpec
  readonly state: CheckState
  /** When its configuration changed last; at first its creation. */
  readonly updatedAt: Instant
  /** The slug was made here (columns.ts). Left out otherwise. */
  readonly slugLeftEmpty?: true
  /** Left out where the check follows none. */
  readonly cronJob?: FollowedCronJob | undefined
  /** Why a check that follows a CronJob is down or paused, or what its run says, in words. Left out: not known. */
  readonly statusDetail?: string | undefined
}

/** The CronJob that a check follows. */
export interface FollowedCronJob {
  readonly name: string
  /** Null: no Job of it was reported yet. */
  readonly lastRun: LastRun | null
  /** Names of the Jobs of its open runs. */
  readonly openJobs: readonly string[]
  /** Where the longest run time is set, in words (domain/followed-defaults.ts). Null: it is not known. */
  readonly limitFrom: string | null
}

export interface StoredCheck extends CheckRecord {
  /** spec.suspend of the resource: while it is set, pause and resume belong to the resource. */
  readonly kubernetesSuspend: boolean | null
  /** Left out where nothing of it is known. */
  readonly origin?: CheckOrigin | undefined
}

/** Runs are closed without a change of the names (checks/jobs/abandon-runs.ts). */
const OPEN_JOBS = `array(select j.jobs ->> (r ->> 'id') from jsonb_array_elements(coalesce(s.runs, '[]')) r where j.jobs ? (r ->> 'id'))`
const CRON_JOB = `(select jsonb_build_object('name', j.name, 'lastRun', j.last_run, 'openJobs', ${OPEN_JOBS}, 'limitFrom', j.limit_from) from cron_jobs j where j.check_key = c.key)`

/** Of the last run, while it is open: which container has failed or ended. */
const RUN_DETAIL = `(select j.last_run ->> 'message' from cron_jobs j where j.check_key = s.check_key and j.last_run ->> 'outcome' = 'Running'
    and s.runs @> jsonb_build_array(jsonb_build_object('id', j.last_run -> 'runId')))`

/**
 * Else the detail of the last change. Only checks that follow a CronJob have one to look for, with a run in progress,
 * or down or paused.
 */
const STATUS_DETAIL = `case when s.job_area is not null then coalesce(
    case when s.status <> ${statusCode('down')} and s.runs is not null then ${RUN_DETAIL} end,
    case when s.status in (${statusCode('down')}, ${statusCode('paused')}) then
      (select case when f.to_status = s.status then f.detail end from flips f
        where f.check_key = s.check_key and f.from_status is distinct from f.to_status order by f.id desc limit 1) end) end`

/** What `toCheck` reads. `c` is the check, `s` its state. */
export const CHECK_COLUMNS = `c.key, ${namesOf(CHECK, 'c')}, ${namesOf(SPEC, 's')}, ${namesOf(STATE, 's')}, ${STATUS_DETAIL}, ${CRON_JOB}`

/** The same without the description and the labels, which can have 16 and 12 KB and are in no list, and without the CronJob. */
export const LISTED_COLUMNS = CHECK_COLUMNS.replace('c.description', 'null::text')
  .replace('c.labels', `'{}'::jsonb`)
  .replace(CRON_JOB, 'null::jsonb')
export type ListedCheck = Omit<CheckRecord, 'description' | 'labels' | 'cronJob'>

const SPEC_AT = 1 + fieldsOf(CHECK).length
const STATE_AT = SPEC_AT + fieldsOf(SPEC).length
const DETAIL_AT = STATE_AT + fieldsOf(STATE).length
const CRON_JOB_AT = DETAIL_AT + 1

export function toCheck(row: readonly unknown[]): StoredCheck {
  const fields = read<CheckFields>(CHECK, row, 1)
  const { kubernetesCluster: cluster, kubernetesNamespace: namespace, kubernetesName: name, ...others } = fields
  const { kubernetesAdopted, kubernetesNamespaceUid, kubernetesClusterUid, slugLeftEmpty, ...check } = others
  const hasOrigin = (kubernetesAdopted ?? kubernetesNamespaceUid ?? kubernetesClusterUid) !== null
  const statusDetail = row[DETAIL_AT] as string | null
  const cronJob = row[CRON_JOB_AT] as FollowedCronJob | null
  return {
    ...check,
    ...(slugLeftEmpty ? { slugLeftEmpty } : {}),
    key: row[0] as number,
    kubernetes: cluster === null || namespace === null || name === null ? null : { cluster, namespace, name },
    ...(hasOrigin ? { origin: { kubernetesAdopted, kubernetesNamespaceUid, kubernetesClusterUid } } : {}),
    spec: toStoredSpec(row, SPEC_AT),
    state: toState(row, STATE_AT),
    ...(cronJob === null ? {} : { cronJob }),
    ...(statusDetail === null ? {} : { statusDetail }),
  }
}

/** A project of the tenant. $1 and $2 of every statement that reads for a tenant. */
export const OF_TENANT = 'p.organization_id = $1 and ($2::uuid is null or p.id = $2)'

export const CHECKS = 'checks c join check_states s on s.check_key = c.key'
export const CHECKS_OF_PROJECTS = `${CHECKS} join projects p on p.id = c.project_id`

/** The one check in `source`, which is what follows `from`; null for none. */
export async function readCheck(
  tx: Queryable,
  name: string,
  source: string,
  values: readonly unknown[],
): Promise<StoredCheck | null> {
  const [row] = await tx.queryColumns({ name, text: `select ${CHECK_COLUMNS} from ${source}`, values })
  return row === undefined ? null : toCheck(row)
}

/** The column of a UUID: the id of the check, or that of its pings. */
export type IdColumn = 'id' | 'public_id'

/** Null for an unknown check and for another tenant's. */
export function findCheck(
  tx: Queryable,
  tenant: Tenant,
  id: string,
  column: IdColumn = 'id',
): Promise<StoredCheck | null> {
  const source = `${CHECKS_OF_PROJECTS} where ${OF_TENANT} and c.${column} = $3`
  return readCheck(tx, `find_check_by_${column}`, source, [tenant.organizationId, tenant.projectId, id])
}

/** The key alone, to lock a check or to read its history. Null like `findCheck`. */
export async function findCheckKey(tx: Queryable, tenant: Tenant, id: string): Promise<number | null> {
  const { rows } = await tx.query<{ key: number }>({
    name: 'find_check_key',
    text: `select c.key from checks c join projects p on p.id = c.project_id where ${OF_TENANT} and c.id = $3`,
    values: [tenant.organizationId, tenant.projectId, id],
  })
  return rows[0]?.key ?? null
}

/** Where a check stands in a list. */
export interface PlacedKey {
  readonly key: number
  readonly place: CheckPlace
}

/** Up to `limit` checks of a project that pass the filter, in this order; `after`: null from the start. */
export async function findCheckPlaces(
  tx: Queryable,
  projectId: string,
  filter: CheckRowsFilter,
  { sort, after, limit, now }: { sort: CheckSort; after: CheckPlace | null; limit: number; now: Instant },
): Promise<PlacedKey[]> {
  const order = toOrderSql(sort, '$3::timestamptz')
  const values: unknown[] = [projectId, limit, timestamp(now)]
  const filtered = narrow(filter, values.length + 1)
  values.push(...filtered.values)
  const columns = [...order.terms, 'c.id']
  const behind = order.behind(after, columns, values.length + 1)
  values.push(...behind.values)
  const rows = await tx.queryColumns({
    text: `select c.key, $3::timestamptz, ${columns.join(', ')} from ${CHECKS}
      where c.project_id = $1${filtered.sql} ${behind.sql} order by ${order.sorted(columns)} limit $2`,
    values,
  })
  return rows.map(([key, _now, ...terms]) => {
    const id = terms.pop() as string
    return { key: key as number, place: order.placeOf(terms, id) }
  })
}

/** Fails with a unique violation of SLUG_IS_UNIQUE when the slug is taken. */
export async function saveTexts(tx: Queryable, key: number, slug: string, texts: CheckTexts): Promise<void> {
  const values = [key, slug, ...valuesOf<CheckTexts>(TEXTS, texts)]
  await tx.query(`update checks set slug = $2, ${settersOf(TEXTS, 3)} where key = $1`, values)
}

export async function saveSlugLeftEmpty(tx: Queryable, key: number, slugLeftEmpty: boolean): Promise<void> {
  await tx.query('update checks set slug_left_empty = $2 where key = $1', [key, slugLeftEmpty])
}

/** Stores when the configuration changed: in the transaction that changes texts, owner or spec. */
export async function saveUpdatedAt(tx: Queryable, key: number, updatedAt: Instant): Promise<void> {
  await tx.query('update checks set updated_at = $2::timestamptz where key = $1', [key, timestamp(updatedAt)])
}

/** Names of constraints in the schema. */
export const SLUG_IS_UNIQUE = 'checks_project_id_slug_key'
export const PUBLIC_ID_IS_UNIQUE = 'checks_public_id_key'

export async function saveSpec(tx: Queryable, key: number, spec: StoredSpec): Promise<void> {
  const values = [key, ...valuesOf<StoredSpec>(SPEC, spec)]
  await tx.query(`update check_states set ${settersOf(SPEC, 2)} where check_key = $1`, values)
}

/** The check and its state. Its history is deleted separately (pings.ts, flips.ts). */
export async function deleteCheck(tx: Queryable, key: number): Promise<void> {
  await tx.query('delete from checks where key = $1', [key])
}
