/** Checks by the resource that declares them, for the operator: reads here are not limited to a tenant. */

import { type CheckState, type CheckTexts, type Instant, STATUSES } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { RESOURCE_LOCKS } from '../postgres/locks.ts'
import { CHECK_COLUMNS, type Resource, type StoredCheck, toCheck } from './checks.ts'
import { settersOf, valuesOf } from './column-lists.ts'
import { type CheckIdentity, type CheckOwner, IDENTITY, OWNER, TEXTS } from './columns.ts'

const CHECKS = 'checks c join check_states s on s.check_key = c.key'
const OF_RESOURCE = 'c.kubernetes_cluster = $1 and c.kubernetes_namespace = $2 and c.kubernetes_name = $3'

/**
 * Takes the resource's lock: until the transaction ends no other one changes, retires, revives or adopts its check. To be taken before
 * any row. A first check is inserted without it (insertFirstCheck), and meets others in the index RESOURCE_IS_UNIQUE.
 */
export async function lockResource(tx: Queryable, { cluster, namespace, name }: Resource): Promise<void> {
  // No part of a resource's name holds a slash.
  await tx.query({
    name: 'lock_resource',
    text: 'select pg_advisory_xact_lock($1, hashtext($2))',
    values: [RESOURCE_LOCKS, `${cluster}/${namespace}/${name}`],
  })
}

/** Null when the resource has no check. */
export async function findDeclaredCheck(
  tx: Queryable,
  { cluster, namespace, name }: Resource,
): Promise<StoredCheck | null> {
  const [row] = await tx.queryColumns({
    name: 'find_declared_check',
    text: `select ${CHECK_COLUMNS} from ${CHECKS} where ${OF_RESOURCE}`,
    values: [cluster, namespace, name],
  })
  return row === undefined ? null : toCheck(row)
}

/** The check with this id, a UUID, of any tenant; null when there is none. */
export async function findAnyCheck(tx: Queryable, id: string): Promise<StoredCheck | null> {
  const [row] = await tx.queryColumns({ text: `select ${CHECK_COLUMNS} from ${CHECKS} where c.id = $1`, values: [id] })
  return row === undefined ? null : toCheck(row)
}

export interface DeclaredState extends Pick<CheckState, 'status' | 'since' | 'lastPingAt' | 'expectedAt'> {
  readonly namespace: string
  readonly name: string
}

type DeclaredRow = [string, string, number, Instant, Instant | null, Instant | null]

/** All declared checks of a cluster, in no order. */
export async function listDeclaredStates(tx: Queryable, cluster: string): Promise<DeclaredState[]> {
  const rows = await tx.queryColumns({
    name: 'list_declared_states',
    text: `select c.kubernetes_namespace, c.kubernetes_name, s.status, s.since, s.last_ping_at, s.expected_at from ${CHECKS}
      where c.kubernetes_cluster = $1 and c.kubernetes_name is not null`,
    values: [cluster],
  })
  return rows.map((row) => {
    const [namespace, name, status, since, lastPingAt, expectedAt] = row as DeclaredRow
    return { namespace, name, status: STATUSES[status]!, since, lastPingAt, expectedAt }
  })
}

interface Named extends CheckTexts, Pick<CheckIdentity, 'projectId' | 'slug'> {}

/** What a resource says of its check apart from the spec. */
export interface DeclaredFields extends Named {
  readonly resource: Resource
  readonly suspend: boolean | null
}

export function toOwner({ cluster, namespace, name }: Resource, suspend: boolean | null): CheckOwner {
  return {
    managedBy: 'kubernetes',
    kubernetesCluster: cluster,
    kubernetesNamespace: namespace,
    kubernetesName: name,
    kubernetesSuspend: suspend,
  }
}

export const OWNED_BY_API: CheckOwner = {
  managedBy: 'api',
  kubernetesCluster: null,
  kubernetesNamespace: null,
  kubernetesName: null,
  kubernetesSuspend: null,
}

const DECLARED = { projectId: IDENTITY.projectId, slug: IDENTITY.slug, ...TEXTS, ...OWNER }

/** Needs the lock on the check's state. Fails with a unique violation of SLUG_IS_UNIQUE when the slug is taken. */
export async function saveDeclared(tx: Queryable, key: number, declared: DeclaredFields): Promise<void> {
  const { resource, suspend } = declared
  const values = valuesOf<Named & CheckOwner>(DECLARED, { ...declared, ...toOwner(resource, suspend) })
  await tx.query(`update checks set ${settersOf(DECLARED, 2)} where key = $1`, [key, ...values])
}

/** From now on the check belongs to the API. Needs the lock on its state. */
export async function detachFromResource(tx: Queryable, key: number): Promise<void> {
  const values = [key, ...valuesOf<CheckOwner>(OWNER, OWNED_BY_API)]
  await tx.query(`update checks set ${settersOf(OWNER, 2)} where key = $1`, values)
}
