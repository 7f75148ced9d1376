/** What the making of a check writes. */

import { type CheckState, type Instant, STATUSES } from '../domain/check.ts'
import { instantArray, jsonbArray } from './binary-arrays.ts'
import type { CheckRecord, Resource } from './checks.ts'
import type { Queryable } from './database.ts'
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
  extends Pick<CheckRecord, 'id' | 'publicId' | 'projectId' | 'name' | 'slug' | 'description' | 'createdAt'> {
  /** Of a check that comes back to its history (tombstones.ts); left out: a new one. */
  readonly key?: number
  /** The resource that declares the check; left out: it belongs to the API. */
  readonly kubernetes?: Resource & { readonly suspend: boolean | null }
}

/**
 * The new check's key; null when its slug is taken. A slug that an open transaction is about to take is waited for: the
 * statement fails nobody's transaction, so that the next slug can be tried in the same one.
 */
export async function insertCheck(tx: Queryable, check: NewCheckRow): Promise<number | null> {
  const { kubernetes = null } = check
  const values = [
    check.id,
    check.publicId,
    check.projectId,
    check.name,
    check.slug,
    check.description,
    instantArray([check.createdAt]),
    kubernetes === null ? 'api' : 'kubernetes',
    kubernetes?.cluster,
    kubernetes?.namespace,
    kubernetes?.name,
    kubernetes?.suspend,
  ]
  // Keys are drawn from their sequence unless a statement says otherwise; one that was drawn once is free for its owner alone.
  const [keyColumn, keyValue] = check.key === undefined ? ['', ''] : [', key', ', $13']
  const { rows } = await tx.query<{ key: number }>(
    `insert into checks (id, public_id, project_id, name, slug, description, created_at, managed_by, kubernetes_cluster,
        kubernetes_namespace, kubernetes_name, kubernetes_suspend${keyColumn})
      overriding system value
      values ($1, $2, $3, $4, $5, $6, ($7::timestamptz[])[1], $8, $9, $10, $11, $12${keyValue})
      on conflict (project_id, slug) do nothing returning key`,
    check.key === undefined ? values : [...values, check.key],
  )
  return rows[0]?.key ?? null
}

export interface NewState {
  readonly key: number
  readonly spec: StoredSpec
  readonly state: CheckState
  /** The time of the newest history entry. */
  readonly stampedAt: Instant
  readonly wakeAt: Instant | null
}

export async function insertState(tx: Queryable, { key, spec, state, stampedAt, wakeAt }: NewState): Promise<void> {
  await tx.query(
    `insert into check_states (check_key, period_seconds, schedule, time_zone, grace_seconds, max_runtime_seconds, status,
        since, last_ping_at, last_start_at, expected_at, due_at, stamped_at, wake_at, runs)
      values ($1, $2, $3, $4, $5, $6, $7, ($8::timestamptz[])[1], ($8::timestamptz[])[2], ($8::timestamptz[])[3],
        ($8::timestamptz[])[4], ($8::timestamptz[])[5], ($8::timestamptz[])[6], ($8::timestamptz[])[7], ($9::jsonb[])[1])`,
    [
      key,
      spec.periodSeconds,
      spec.schedule,
      spec.timeZone,
      spec.graceSeconds,
      spec.maxRuntimeSeconds,
      STATUSES.indexOf(state.status),
      instantArray([
        state.since,
        state.lastPingAt,
        state.lastStartAt,
        state.expectedAt,
        state.dueAt,
        stampedAt,
        wakeAt,
      ]),
      jsonbArray([state.runs.length === 0 ? null : state.runs]),
    ],
  )
}
