/** Checks by the resource that declares them, for the operator: no tenant asks, so none is looked at. */

import { type CheckTexts, type Instant, STATUSES, type StoredStatus } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { RESOURCE_LOCKS } from '../postgres/locks.ts'
import { CHECK_COLUMNS, type CheckRow, type Resource, type StoredCheck, toCheck } from './checks.ts'

const CHECKS = 'checks c join check_states s on s.check_key = c.key'
const OF_RESOURCE = 'c.kubernetes_cluster = $1 and c.kubernetes_namespace = $2 and c.kubernetes_name = $3'

/**
 * Until the transaction ends nobody else changes or retires the resource's check, nor revives or adopts one; a first one may be
 * made without it (insertFirstCheck), and is met in the index RESOURCE_IS_UNIQUE. Taken before any row.
 */
export async function lockResource(tx: Queryable, { cluster, namespace, name }: Resource): Promise<void> {
  // No part of a resource's name holds a slash.
  await tx.query({
    name: 'lock_resource',
    text: 'select pg_advisory_xact_lock($1, hashtext($2))',
    values: [RESOURCE_LOCKS, `${cluster}/${namespace}/${name}`],
  })
}

export async function findDeclaredCheck(
  tx: Queryable,
  { cluster, namespace, name }: Resource,
): Promise<StoredCheck | null> {
  const { rows } = await tx.query<CheckRow>({
    name: 'find_declared_check',
    text: `select ${CHECK_COLUMNS} from ${CHECKS} where ${OF_RESOURCE}`,
    values: [cluster, namespace, name],
  })
  return rows[0] === undefined ? null : toCheck(rows[0])
}

/** Whoever owns it. `id` is a UUID. */
export async function findAnyCheck(tx: Queryable, id: string): Promise<StoredCheck | null> {
  const { rows } = await tx.query<CheckRow>(`select ${CHECK_COLUMNS} from ${CHECKS} where c.id = $1`, [id])
  return rows[0] === undefined ? null : toCheck(rows[0])
}

export interface DeclaredState {
  readonly namespace: string
  readonly name: string
  readonly status: StoredStatus
  readonly since: Instant
  readonly lastPingAt: Instant | null
  readonly expectedAt: Instant | null
}

/** Of all declared checks of a cluster, in no order. */
export async function listDeclaredStates(tx: Queryable, cluster: string): Promise<DeclaredState[]> {
  const rows = await tx.queryColumns({
    name: 'list_declared_states',
    text: `select c.kubernetes_namespace, c.kubernetes_name, s.status, s.since, s.last_ping_at, s.expected_at from ${CHECKS}
      where c.kubernetes_cluster = $1 and c.kubernetes_name is not null`,
    values: [cluster],
  })
  return rows.map((row) => {
    const [namespace, name, status, since, lastPingAt, expectedAt] = row as [
      string,
      string,
      number,
      Instant,
      Instant | null,
      Instant | null,
    ]
    return { namespace, name, status: STATUSES[status]!, since, lastPingAt, expectedAt }
  })
}

/** What its resource says of a check apart from its spec. The lock on its state is held (states.ts). */
export interface DeclaredFields extends CheckTexts {
  readonly projectId: string
  readonly slug: string
  readonly resource: Resource
  readonly suspend: boolean | null
}

/** Fails with a unique violation of SLUG_IS_UNIQUE when the slug is taken. */
export async function saveDeclared(tx: Queryable, key: number, declared: DeclaredFields): Promise<void> {
  const { projectId, slug, name, description, resource, suspend } = declared
  await tx.query(
    `update checks set project_id = $2, slug = $3, name = $4, description = $5, managed_by = 'kubernetes',
        kubernetes_cluster = $6, kubernetes_namespace = $7, kubernetes_name = $8, kubernetes_suspend = $9
      where key = $1`,
    [key, projectId, slug, name, description, resource.cluster, resource.namespace, resource.name, suspend],
  )
}

/** From now on the check is the API's. */
export async function releaseCheck(tx: Queryable, key: number): Promise<void> {
  await tx.query(
    `update checks set managed_by = 'api', kubernetes_cluster = null, kubernetes_namespace = null, kubernetes_name = null,
        kubernetes_suspend = null
      where key = $1`,
    [key],
  )
}
