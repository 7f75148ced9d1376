/** Silences, and which of them cover a check. A caller sees those of its projects. */

import type { Tenant } from '../../domain/access.ts'
import type { Instant } from '../../domain/check.ts'
import type { Span } from '../../domain/circumstances.ts'
import { type Dialect, InvalidSchedule, parseCron } from '../../domain/cron.ts'
import type { Doer } from '../../domain/doer.ts'
import type { Requirement } from '../../domain/label-selector.ts'
import type { PageRequest } from '../../domain/page.ts'
import { type SilenceTimes, spanAt } from '../../domain/silence.ts'
import type { Resource } from '../checks/checks.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

/** When it holds, as it is stored: all of the first two, or all of the others. */
export interface StoredTimes {
  readonly startsAt: Instant | null
  readonly endsAt: Instant | null
  readonly schedule: string | null
  readonly timeZone: string | null
  readonly dialect: Dialect | null
  readonly durationSeconds: number | null
}

/** What a HeartbeatSilence says beside the times: all is null of a silence of the API. */
export interface SilenceOrigin {
  readonly kubernetes: Resource | null
  /** It covers the HeartbeatChecks of the namespace whose labels fulfil all of these, whatever their projects are. */
  readonly selector: readonly Requirement[] | null
}

export interface SilenceRow extends StoredTimes, SilenceOrigin {
  readonly id: string
  readonly organizationId: string
  readonly projectId: string
  /** Null: of each check of the project, or of each one with the tag. */
  readonly checkId: string | null
  readonly tag: string | null
  readonly comment: string
  readonly createdBy: Doer
  readonly createdAt: Instant
  /** Of its check; null without one, and once that is removed. Left out of a new silence. */
  readonly checkName?: string | null
}

const TIMES = `q.starts_at as "startsAt", q.ends_at as "endsAt", q.schedule, q.time_zone as "timeZone", q.dialect,
  q.duration_seconds as "durationSeconds"`
/** The columns of a SilenceRow, from `silences q`. */
export const SILENCE_COLUMNS = `q.id, q.organization_id as "organizationId", q.project_id as "projectId", q.check_id as "checkId", q.tag,
  ${TIMES}, q.comment, q.created_by as "createdBy", q.created_at as "createdAt",
  q.selector, case when q.kubernetes_name is not null then jsonb_build_object('cluster', q.kubernetes_cluster,
    'namespace', q.kubernetes_namespace, 'name', q.kubernetes_name) end as kubernetes,
  (select k.name from checks k where k.id = q.check_id) as "checkName"`
/** $1 organization, $2 project of the tenant or null. */
const VISIBLE = 'q.organization_id = $1 and ($2::uuid is null or q.project_id = $2)'
/** That all requirements of the silence `q` hold for the labels of the check `c`. */
const SELECTED = `not exists (
  select from jsonb_to_recordset(q.selector) as r(key text, operator text, values jsonb) where not case r.operator
    when 'In' then coalesce(r.values ? (c.labels ->> r.key), false)
    when 'NotIn' then not coalesce(r.values ? (c.labels ->> r.key), false)
    when 'Exists' then c.labels ? r.key
    else not c.labels ? r.key end)`
/** That the silence `q` covers the check `c` while it holds. Each side of the `or` has an index. */
export const COVERS = `(q.kubernetes_name is null and q.project_id = c.project_id
    and (q.check_id is null or q.check_id = c.id) and (q.tag is null or q.tag = any(c.tags))
  or q.kubernetes_name is not null and q.kubernetes_cluster = c.kubernetes_cluster
    and q.kubernetes_namespace = c.kubernetes_namespace and ${SELECTED})`

/** Of a schedule it is not known in SQL. */
const mayHold = (now: string) =>
  `(q.schedule is not null or q.starts_at <= ${now}::timestamptz and q.ends_at > ${now}::timestamptz)`

/** Null where the schedule cannot be read: an older release may not know its time zone. */
export function timesOf(stored: StoredTimes): SilenceTimes | null {
  const { startsAt, endsAt, schedule, timeZone, dialect, durationSeconds } = stored
  if (schedule === null) return { from: startsAt!, until: endsAt! }
  try {
    return { cron: parseCron(schedule, timeZone!, dialect!), durationMs: durationSeconds! * 1_000 }
  } catch (error) {
    if (error instanceof InvalidSchedule) return null
    throw error
  }
}

/** When the silence that holds at `now` began and ends; null: it does not hold. */
export function spanOf(stored: StoredTimes, now: Instant): Span | null {
  const times = timesOf(stored)
  return times === null ? null : spanAt(times, now)
}

/** What a list of silences can be narrowed to. */
export interface SilenceFilter {
  readonly projectId?: string | undefined
  /** Those that cover this check while they hold. */
  readonly checkId?: string | undefined
  /** Those that have not ended then. */
  readonly openAt?: Instant | undefined
}

/** In order of creation. */
export async function listSilenceRows(
  db: Queryable,
  tenant: Tenant,
  { projectId, checkId, openAt }: SilenceFilter,
  { limit, after }: PageRequest,
): Promise<SilenceRow[]> {
  const { rows } = await db.query<SilenceRow>(
    `select ${SILENCE_COLUMNS} from silences q where ${VISIBLE} and ($3::uuid is null or q.project_id = $3)
        and ($4::uuid is null or exists (select from checks c where c.id = $4 and ${COVERS}))
        and ($6::uuid is null or (q.created_at, q.id) > ($5::timestamptz, $6))
        and ($8::timestamptz is null or q.ends_at is null or q.ends_at > $8)
      order by q.created_at, q.id limit $7`,
    [
      tenant.organizationId,
      tenant.projectId,
      projectId ?? null,
      checkId ?? null,
      timestamp(after?.at ?? null),
      after?.id ?? null,
      limit,
      timestamp(openAt ?? null),
    ],
  )
  return rows
}

/** Null when the tenant has no such silence. */
export async function findSilenceRow(
  db: Queryable,
  tenant: Tenant,
  id: string,
  lock: '' | 'for update' = '',
): Promise<SilenceRow | null> {
  const text = `select ${SILENCE_COLUMNS} from silences q where ${VISIBLE} and q.id = $3 ${lock}`
  const { rows } = await db.query<SilenceRow>(text, [tenant.organizationId, tenant.projectId, id])
  return rows[0] ?? null
}

/** Those of the project that have not ended by `now`, without those of checks that are removed. */
export async function countSilences(db: Queryable, projectId: string, now: Instant): Promise<number> {
  const text = `select count(*) as count from silences where project_id = $1 and (ends_at is null or ends_at > $2::timestamptz)
      and (check_id is null or exists (select from checks c where c.id = check_id))`
  const { rows } = await db.query<{ count: number }>(text, [projectId, timestamp(now)])
  return rows[0]!.count
}

export async function insertSilence(tx: Queryable, silence: SilenceRow): Promise<void> {
  const { id, organizationId, projectId, checkId, tag, comment, createdBy, createdAt, kubernetes, selector } = silence
  await tx.query(
    `insert into silences (id, organization_id, project_id, check_id, tag, starts_at, ends_at, schedule, time_zone, dialect,
        duration_seconds, comment, created_by, created_at, selector,
        kubernetes_cluster, kubernetes_namespace, kubernetes_name)
      values ($1, $2, $3, $4, $5, $6::timestamptz, $7::timestamptz, $8, $9, $10, $11, $12, $13, $14::timestamptz, $15,
        $16, $17, $18)`,
    [
      id,
      organizationId,
      projectId,
      checkId,
      tag,
      ...parametersOf(silence),
      comment,
      JSON.stringify(createdBy),
      timestamp(createdAt),
      selector && JSON.stringify(selector),
      kubernetes?.cluster ?? null,
      kubernetes?.namespace ?? null,
      kubernetes?.name ?? null,
    ],
  )
}

/** In the order of the columns. */
export const parametersOf = ({ startsAt, endsAt, schedule, timeZone, dialect, durationSeconds }: StoredTimes) => [
  timestamp(startsAt),
  timestamp(endsAt),
  schedule,
  timeZone,
  dialect,
  durationSeconds,
]

export async function deleteSilence(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from silences where id = $1', [id])
}

/** Which of these silences the tenant has. */
export async function findSilenceIds(db: Queryable, tenant: Tenant, ids: readonly string[]): Promise<Set<string>> {
  const text = `select q.id from silences q where ${VISIBLE} and q.id = any($3::uuid[])`
  const { rows } = await db.query<{ id: string }>(text, [tenant.organizationId, tenant.projectId, ids])
  return new Set(rows.map(({ id }) => id))
}

/** The ids of the silences of all that hold at `now`. */
export async function findHolding(db: Queryable, now: Instant): Promise<string[]> {
  const { rows } = await db.query<StoredTimes & { readonly id: string }>(
    `select q.id, ${TIMES} from silences q where ${mayHold('$1')}`,
    [timestamp(now)],
  )
  return rows.flatMap((row) => (spanOf(row, now) === null ? [] : [row.id]))
}

export interface CoveringSilence extends Span {
  readonly key: number
  readonly id: string
}

/** The silences that cover these checks at `now`. One covers many: its schedule is read once. */
export async function findCovering(tx: Queryable, keys: readonly number[], now: Instant): Promise<CoveringSilence[]> {
  const { rows } = await tx.query<StoredTimes & Pick<CoveringSilence, 'key' | 'id'>>({
    name: 'find_covering',
    text: `select c.key, q.id, ${TIMES} from checks c join silences q on ${COVERS}
      where c.key = any($1::int8[])
        and ${mayHold('$2')}`,
    values: [keys, timestamp(now)],
  })
  const spans = new Map<string, Span | null>()
  return rows.flatMap(({ key, id, ...stored }) => {
    if (!spans.has(id)) spans.set(id, spanOf(stored, now))
    const span = spans.get(id)!
    return span === null ? [] : [{ key, id, ...span }]
  })
}
