/**
 * What remains of a declared check whose resource was deleted (design, section 6). Its rows in `checks` and `check_states` are gone, its
 * history stays: a re-created resource gets key, id, public_id and history back. Pruning deletes old tombstones, and then their
 * history (pruning.ts). A writer holds the resource's lock (declared-checks.ts).
 */

import type { Instant } from '../../domain/check.ts'
import type { LastPings } from '../../domain/transition.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import type { Resource } from './checks.ts'
import { namesOf, parametersOf, read, valuesOf } from './column-lists.ts'
import { type CheckIdentity, type CheckTiming, IDENTITY, LAST_PINGS, TIMING } from './columns.ts'

interface Fields extends CheckIdentity, LastPings, Pick<CheckTiming, 'stampedAt'> {}
/** Its columns besides the key, the resource and the time of its removal. */
export const TOMBSTONE = { ...IDENTITY, ...LAST_PINGS, stampedAt: TIMING.stampedAt }

export interface Tombstone extends Fields {
  readonly key: number
}

const OF_RESOURCE = 'kubernetes_cluster = $1 and kubernetes_namespace = $2 and kubernetes_name = $3'

/** Replaces a tombstone that the resource has: it adopted another check since, and that one is its latest. */
export async function insertTombstone(
  tx: Queryable,
  { cluster, namespace, name }: Resource,
  tombstone: Tombstone,
  deletedAt: Instant,
): Promise<void> {
  const resource = [cluster, namespace, name]
  await tx.query(`delete from tombstones where ${OF_RESOURCE}`, resource)
  await tx.query(
    `insert into tombstones (kubernetes_cluster, kubernetes_namespace, kubernetes_name, check_key, deleted_at, ${namesOf(TOMBSTONE)})
      values ($1, $2, $3, $4, $5::timestamptz, ${Object.values(parametersOf(TOMBSTONE, 6)).join(', ')})`,
    [...resource, tombstone.key, timestamp(deletedAt), ...valuesOf<Fields>(TOMBSTONE, tombstone)],
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
    text: `select check_key, ${namesOf(TOMBSTONE)} from tombstones where ${OF_RESOURCE} and ($4::uuid is null or id = $4)
      for update`,
    values: [cluster, namespace, name, id],
  })
  return row === undefined ? null : { key: row[0] as number, ...read<Fields>(TOMBSTONE, row, 1) }
}

export async function deleteTombstone(tx: Queryable, key: number): Promise<void> {
  await tx.query('delete from tombstones where check_key = $1', [key])
}
