/**
 * What remains of a declared check whose resource was deleted (design, section 6): a resource that is created again
 * gets key, id, public_id and history back, until pruning deletes both. A writer holds the resource's lock.
 */

import type { CheckState, Instant } from '../../domain/check.ts'
import type { KeptState } from '../../domain/check-event.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { ofResource, type Resource } from './checks.ts'
import { namesOf, parametersOf, read, valuesOf } from './column-lists.ts'
import {
  type CheckIdentity,
  type CheckOrigin,
  type CheckTiming,
  IDENTITY,
  KEPT_STATE,
  ORIGIN,
  STATE,
  TIMING,
} from './columns.ts'

/** `reason`: of the status that it had; null: unknown. */
interface Fields
  extends CheckIdentity,
    KeptState,
    CheckOrigin,
    Pick<CheckTiming, 'stampedAt'>,
    Pick<CheckState, 'reason'> {}
/** Its columns besides the key, the resource and the time of its removal. */
export const TOMBSTONE = { ...IDENTITY, ...KEPT_STATE, ...ORIGIN, stampedAt: TIMING.stampedAt, reason: STATE.reason }

export interface Tombstone extends Fields {
  readonly key: number
  readonly deletedAt: Instant
}

/** Replaces a tombstone that the resource has: it adopted another check since, and that one is its latest. */
export async function insertTombstone(
  tx: Queryable,
  { cluster, namespace, name }: Resource,
  tombstone: Tombstone,
): Promise<void> {
  const resource = [cluster, namespace, name]
  await tx.query(`delete from tombstones where ${ofResource('tombstones')}`, resource)
  await tx.query(
    `insert into tombstones (kubernetes_cluster, kubernetes_namespace, kubernetes_name, check_key, deleted_at, ${namesOf(TOMBSTONE)})
      values ($1, $2, $3, $4, $5::timestamptz, ${Object.values(parametersOf(TOMBSTONE, 6)).join(', ')})`,
    [...resource, tombstone.key, timestamp(tombstone.deletedAt), ...valuesOf<Fields>(TOMBSTONE, tombstone)],
  )
}

/** Locks and returns the resource's tombstone; null when there is none. With `id`, a UUID: only if it is that check's. */
export async function findTombstone(
  tx: Queryable,
  { cluster, namespace, name }: Resource,
  id: string | null,
): Promise<Tombstone | null> {
  const [row] = await tx.queryColumns({
    name: 'find_tombstone',
    text: `select check_key, deleted_at, ${namesOf(TOMBSTONE)} from tombstones where ${ofResource('tombstones')} and ($4::uuid is null or id = $4)
      for update`,
    values: [cluster, namespace, name, id],
  })
  return row === undefined
    ? null
    : { key: row[0] as number, deletedAt: row[1] as Instant, ...read<Fields>(TOMBSTONE, row, 2) }
}

export async function deleteTombstone(tx: Queryable, key: number): Promise<void> {
  await tx.query('delete from tombstones where check_key = $1', [key])
}
