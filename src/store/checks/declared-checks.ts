/** Checks by the resource that declares them, for the operator: reads here are not limited to a tenant. */

import { type CheckState, type CheckTexts, type Instant, STATUSES } from '../../domain/check.ts'
import type { LastRun, RunOutcome } from '../../domain/last-run.ts'
import { skipHistoryOf } from '../history/reported-flips.ts'
import type { Queryable } from '../postgres/database.ts'
import { RESOURCE_LOCKS } from '../postgres/locks.ts'
import { CHECKS, ofResource, type Resource, readCheck, type StoredCheck } from './checks.ts'
import { settersOf, valuesOf } from './column-lists.ts'
import {
  type CheckIdentity,
  type CheckOrigin,
  type CheckOwner,
  IDENTITY,
  NO_ORIGIN,
  ORIGIN,
  OWNER,
  TEXTS,
} from './columns.ts'

/**
 * Takes the resource's lock: until the transaction ends no other one changes, retires, revives or adopts its check,
 * channel or silence. To be taken before any row.
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
export function findDeclaredCheck(tx: Queryable, { cluster, namespace, name }: Resource): Promise<StoredCheck | null> {
  return readCheck(tx, 'find_declared_check', `${CHECKS} where ${ofResource('c')}`, [cluster, namespace, name])
}

/** The check with this id, a UUID, of any tenant; null when there is none. */
export function findAnyCheck(tx: Queryable, id: string): Promise<StoredCheck | null> {
  return readCheck(tx, 'find_any_check', `${CHECKS} where c.id = $1`, [id])
}

export interface DeclaredState extends Pick<CheckState, 'status' | 'since' | 'lastPingAt' | 'expectedAt'> {
  readonly namespace: string
  readonly name: string
  /** The newest run of its CronJob; null: it follows none, or none is known. */
  readonly lastRun: Pick<LastRun, 'job' | 'outcome'> | null
}

type DeclaredRow = [string, string, number, Instant, Instant | null, Instant | null, string | null, RunOutcome | null]

/** All declared checks of a cluster, in no order. */
export async function listDeclaredStates(tx: Queryable, cluster: string): Promise<DeclaredState[]> {
  const rows = await tx.queryColumns({
    name: 'list_declared_states',
    text: `select c.kubernetes_namespace, c.kubernetes_name, s.status, s.since, s.last_ping_at, s.expected_at,
        j.last_run->>'job', j.last_run->>'outcome'
      from ${CHECKS} left join cron_jobs j on j.check_key = c.key
      where c.kubernetes_cluster = $1 and c.kubernetes_name is not null`,
    values: [cluster],
  })
  return rows.map((row) => {
    const [namespace, name, status, since, lastPingAt, expectedAt, job, outcome] = row as DeclaredRow
    const lastRun = job == null || outcome == null ? null : { job, outcome }
    return { namespace, name, status: STATUSES[status]!, since, lastPingAt, expectedAt, lastRun }
  })
}

interface Named extends CheckTexts, Pick<CheckIdentity, 'projectId' | 'slug'> {}

/** What a resource says of its check apart from the spec. */
export interface DeclaredFields extends Named {
  readonly resource: Resource
  readonly suspend: boolean | null
  readonly origin: CheckOrigin
}

export function toOwner(
  { cluster, namespace, name }: Resource,
  suspend: boolean | null,
  origin: CheckOrigin,
): CheckOwner {
  return {
    managedBy: 'kubernetes',
    kubernetesCluster: cluster,
    kubernetesNamespace: namespace,
    kubernetesName: name,
    kubernetesSuspend: suspend,
    ...origin,
  }
}

export const OWNED_BY_API: CheckOwner = {
  managedBy: 'api',
  kubernetesCluster: null,
  kubernetesNamespace: null,
  kubernetesName: null,
  kubernetesSuspend: null,
  ...NO_ORIGIN,
}

const DECLARED = { projectId: IDENTITY.projectId, slug: IDENTITY.slug, ...TEXTS, ...OWNER }

/**
 * Needs the lock on the check's state. Fails with a unique violation of SLUG_IS_UNIQUE when the slug is taken. What happened to a check
 * of the API before is not reported in the cluster.
 */
export async function saveDeclared(tx: Queryable, key: number, declared: DeclaredFields): Promise<void> {
  const { resource, suspend, origin } = declared
  const values = valuesOf<Named & CheckOwner>(DECLARED, { ...declared, ...toOwner(resource, suspend, origin) })
  await tx.query(
    `with skipped as (${skipHistoryOf("checks where key = $1 and managed_by = 'api'")})
      update checks set ${settersOf(DECLARED, 2)} where key = $1`,
    [key, ...values],
  )
}

/** In a statement of its own, without the lock on the check's state: no one else writes these columns while the resource has the check. */
export async function saveOrigin(
  db: Queryable,
  key: number,
  { cluster, namespace, name }: Resource,
  origin: CheckOrigin,
): Promise<void> {
  await db.query(
    `update checks set ${settersOf(ORIGIN, 5)}
      where key = $1 and ${ofResource('checks', '$2', '$3', '$4')}`,
    [key, cluster, namespace, name, ...valuesOf<CheckOrigin>(ORIGIN, origin)],
  )
}

/** Whether no check has the public id, and none that was removed can get it back. */
export async function isPublicIdFree(tx: Queryable, publicId: string): Promise<boolean> {
  const { rows } = await tx.query<{ free: boolean }>(
    `select not exists (select from checks where public_id = $1)
      and not exists (select from tombstones where public_id = $1) as free`,
    [publicId],
  )
  return rows[0]!.free
}

/** From now on the check belongs to the API. Needs the lock on its state. */
export async function detachFromResource(tx: Queryable, key: number): Promise<void> {
  const values = [key, ...valuesOf<CheckOwner>(OWNER, OWNED_BY_API)]
  await tx.query(`update checks set ${settersOf(OWNER, 2)} where key = $1`, values)
}
