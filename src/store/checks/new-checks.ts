/** What the making of a check writes. */

import { type CheckState, type CheckTexts, type Instant, STATUSES } from '../../domain/check.ts'
import { instantArray, jsonbArray, uuidArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import type { CheckRecord, Resource } from './checks.ts'
import type { StoredSpec } from './states.ts'

/** Which of these slugs are taken in the project. */
export async function findTakenSlugs(tx: Queryable, projectId: string, slugs: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ slug: string }>(
    'select slug from checks where project_id = $1 and slug = any($2::text[])',
    [projectId, slugs],
  )
  return new Set(rows.map((row) => row.slug))
}

export interface NewCheckRow
  extends Pick<CheckRecord, 'id' | 'publicId' | 'projectId' | 'slug' | 'createdAt' | keyof CheckTexts> {
  /** Of a check that comes back to its history (tombstones.ts); left out: a new one. */
  readonly key?: number
  /** The resource that declares the check; left out: it belongs to the API. */
  readonly kubernetes?: Resource & { readonly suspend: boolean | null }
}

export type NewDeclaredRow = NewCheckRow & { readonly kubernetes: NonNullable<NewCheckRow['kubernetes']> }

export interface NewState {
  readonly spec: StoredSpec
  readonly state: CheckState
  /** The time of the newest history entry. */
  readonly stampedAt: Instant
  readonly wakeAt: Instant | null
}

/**
 * The new check's key; null when its slug is taken. A slug that an open transaction is about to take is waited for: the
 * statement fails nobody's transaction, so that the next slug can be tried in the same one.
 */
export async function insertCheck(tx: Queryable, check: NewCheckRow, state: NewState): Promise<number | null> {
  const { rows } = await tx.query<{ key: number }>({
    name: 'insert_check',
    // Keys are drawn from their sequence unless a statement says otherwise; one that was drawn once is free for its owner alone.
    text: `with made as (
        insert into checks (${COLUMNS}) overriding system value values (${VALUES})
        on conflict (project_id, slug) do nothing returning key)
      insert into check_states (${STATE_COLUMNS}) select ${STATE_VALUES} from made returning check_key as key`,
    values: valuesOf(check, state),
  })
  return rows[0]?.key ?? null
}

/**
 * The first check of a resource with the flip that its history begins with, in one statement and a transaction by itself. Null
 * when that is not all there is to it: the project is gone, the slug is taken, or the resource has a check or a tombstone. It
 * needs nobody's lock: each moment shows either of the latter to whoever looks, and who comes at the same time meets it in a
 * unique index.
 */
export async function insertFirstCheck(
  db: Queryable,
  check: NewDeclaredRow,
  state: NewState,
  flip: { readonly id: Buffer; readonly at: Instant },
): Promise<number | null> {
  const ofResource = 'kubernetes_cluster = $9 and kubernetes_namespace = $10 and kubernetes_name = $11'
  const { rows } = await db.query<{ key: number }>({
    name: 'insert_first_check',
    text: `with kept as (
        select from projects where id = $4 for key share),
      made as (
        insert into checks (${COLUMNS}) overriding system value select ${VALUES} from kept
        where not exists (select from checks where ${ofResource})
          and not exists (select from tombstones where ${ofResource})
        on conflict do nothing returning key),
      stated as (
        insert into check_states (${STATE_COLUMNS}) select ${STATE_VALUES} from made),
      flipped as (
        insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, ping_id)
        select ($22::uuid[])[1], key, ($23::timestamptz[])[1], ($23::timestamptz[])[1], null, $14::int2, 'created', null from made)
      select key from made`,
    values: [...valuesOf(check, state), uuidArray([flip.id]), instantArray([flip.at])],
  })
  return rows[0]?.key ?? null
}

const COLUMNS =
  'key, id, public_id, project_id, name, slug, description, managed_by, kubernetes_cluster, kubernetes_namespace, kubernetes_name, kubernetes_suspend, created_at'
const VALUES =
  "coalesce($1::int8, nextval('checks_key_seq')), $2::uuid, $3::uuid, $4::uuid, $5::text, $6::text, $7::text, $8::text, $9::text, $10::text, $11::text, $12::boolean, ($13::timestamptz[])[1]"
const STATE_COLUMNS =
  'check_key, since, last_ping_at, last_start_at, expected_at, due_at, stamped_at, wake_at, last_success_at, status, period_seconds, schedule, time_zone, grace_seconds, max_runtime_seconds, runs, last_duration_ms'
const STATE_VALUES =
  'key, ($13::timestamptz[])[2], ($13::timestamptz[])[3], ($13::timestamptz[])[4], ($13::timestamptz[])[5], ($13::timestamptz[])[6], ($13::timestamptz[])[7], ($13::timestamptz[])[8], ($13::timestamptz[])[9], $14::int2, $15::int4, $16, $17, $18::int4, $19::int4, ($20::jsonb[])[1], $21::int4'

function valuesOf(check: NewCheckRow, { spec, state, stampedAt, wakeAt }: NewState): unknown[] {
  const { kubernetes = null } = check
  return [
    check.key,
    check.id,
    check.publicId,
    check.projectId,
    check.name,
    check.slug,
    check.description,
    kubernetes === null ? 'api' : 'kubernetes',
    kubernetes?.cluster,
    kubernetes?.namespace,
    kubernetes?.name,
    kubernetes?.suspend,
    instantArray([
      check.createdAt,
      state.since,
      state.lastPingAt,
      state.lastStartAt,
      state.expectedAt,
      state.dueAt,
      stampedAt,
      wakeAt,
      state.lastSuccessAt,
    ]),
    STATUSES.indexOf(state.status),
    spec.periodSeconds,
    spec.schedule,
    spec.timeZone,
    spec.graceSeconds,
    spec.maxRuntimeSeconds,
    jsonbArray([state.runs.length === 0 ? null : state.runs]),
    state.lastDurationMs,
  ]
}
