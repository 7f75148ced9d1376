/**
 * What is left of a declared check whose resource was deleted (design, section 6). Its rows in `checks` and `check_states` are
 * gone, its history stays: a re-created resource gets key, id, public_id and history back. Pruning takes tombstones that are
 * old, and then their history (pruning.ts). Whoever writes or takes one holds the resource's lock (declared-checks.ts).
 */

import type { Instant } from '../../domain/check.ts'
import { instantArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import type { Resource } from './checks.ts'

export interface Tombstone {
  readonly key: number
  readonly id: string
  readonly publicId: string
  readonly projectId: string
  readonly slug: string
  readonly lastPingAt: Instant | null
  readonly lastSuccessAt: Instant | null
  readonly lastDurationMs: number | null
  readonly lastStartAt: Instant | null
  /** The time of its newest history entry, to the microsecond: the next is later. */
  readonly stampedAt: Instant
  readonly createdAt: Instant
}

/** In place of one that the resource has already: since then it adopted another check, and that one is its latest. */
export async function insertTombstone(
  tx: Queryable,
  resource: Resource,
  tombstone: Tombstone,
  deletedAt: Instant,
): Promise<void> {
  await tx.query(
    `delete from tombstones where kubernetes_cluster = $1 and kubernetes_namespace = $2 and kubernetes_name = $3`,
    [resource.cluster, resource.namespace, resource.name],
  )
  await tx.query(
    `insert into tombstones (check_key, id, public_id, project_id, slug, kubernetes_cluster, kubernetes_namespace,
        kubernetes_name, last_ping_at, last_start_at, stamped_at, created_at, deleted_at, last_success_at, last_duration_ms)
      values ($1, $2, $3, $4, $5, $6, $7, $8, ($9::timestamptz[])[1], ($9::timestamptz[])[2], ($9::timestamptz[])[3],
        ($9::timestamptz[])[4], ($9::timestamptz[])[5], ($9::timestamptz[])[6], $10)`,
    [
      tombstone.key,
      tombstone.id,
      tombstone.publicId,
      tombstone.projectId,
      tombstone.slug,
      resource.cluster,
      resource.namespace,
      resource.name,
      instantArray([
        tombstone.lastPingAt,
        tombstone.lastStartAt,
        tombstone.stampedAt,
        tombstone.createdAt,
        deletedAt,
        tombstone.lastSuccessAt,
      ]),
      tombstone.lastDurationMs,
    ],
  )
}

/** The resource's tombstone, locked; null when it has none. With an id, a UUID: only if it is that check's. */
export async function findTombstone(
  tx: Queryable,
  { cluster, namespace, name }: Resource,
  id: string | null,
): Promise<Tombstone | null> {
  const { rows } = await tx.query<Tombstone>({
    name: 'find_tombstone',
    text: `select check_key as key, id, public_id as "publicId", project_id as "projectId", slug, last_ping_at as "lastPingAt",
        last_success_at as "lastSuccessAt", last_duration_ms as "lastDurationMs", last_start_at as "lastStartAt", stamped_at as "stampedAt", created_at as "createdAt"
      from tombstones
      where kubernetes_cluster = $1 and kubernetes_namespace = $2 and kubernetes_name = $3 and ($4::uuid is null or id = $4)
      for update`,
    values: [cluster, namespace, name, id],
  })
  return rows[0] ?? null
}

export async function deleteTombstone(tx: Queryable, key: number): Promise<void> {
  await tx.query('delete from tombstones where check_key = $1', [key])
}
