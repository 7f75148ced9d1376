/**
 * Which resource declared a check that was retained (design, section 6). The row goes with the check, and when a
 * resource has the check. A writer holds the lock on the check's state, and never one on the row: the removal of a
 * check takes these two in the other order.
 */

import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { ofResource, type Resource } from './checks.ts'
import { type Columns, namesOf, parametersOf, read, valuesOf } from './column-lists.ts'
import { type CheckOrigin, ORIGIN } from './columns.ts'

export interface Retention extends CheckOrigin {
  /** When the configuration of the check had changed last. */
  readonly updatedAt: Instant
  readonly retainedAt: Instant
}

const RETENTION = {
  ...ORIGIN,
  updatedAt: { type: 'timestamptz' },
  retainedAt: { type: 'timestamptz' },
} as const satisfies Columns<Retention>

/** The object that holds the ping URL. */
export interface PublishedObjectName {
  readonly kind: string
  readonly name: string
}

export async function insertRetention(
  tx: Queryable,
  key: number,
  { cluster, namespace, name }: Resource,
  retention: Retention,
  published: PublishedObjectName | null,
): Promise<void> {
  await tx.query(
    `insert into retained_checks (check_key, kubernetes_cluster, kubernetes_namespace, kubernetes_name,
        published_kind, published_name, ${namesOf(RETENTION)})
      values ($1, $2, $3, $4, $5, $6, ${Object.values(parametersOf(RETENTION, 7)).join(', ')})`,
    [key, cluster, namespace, name, published?.kind, published?.name, ...valuesOf<Retention>(RETENTION, retention)],
  )
}

/** The check that the resource retained last, by its id; null when there is none. */
export async function findRetention(
  tx: Queryable,
  { cluster, namespace, name }: Resource,
): Promise<(Retention & { readonly id: string }) | null> {
  const [row] = await tx.queryColumns({
    name: 'find_retention',
    text: `select c.id, ${namesOf(RETENTION, 'r')} from retained_checks r join checks c on c.key = r.check_key
      where ${ofResource('r')} order by r.retained_at desc, r.check_key desc limit 1`,
    values: [cluster, namespace, name],
  })
  return row === undefined ? null : { id: row[0] as string, ...read<Retention>(RETENTION, row, 1) }
}

export async function deleteRetention(tx: Queryable, key: number): Promise<void> {
  await tx.query('delete from retained_checks where check_key = $1', [key])
}

/** A check whose URL an object holds. */
export interface UrlHolder {
  readonly id: string
  /** The name of its resource; null: the API manages the check. */
  readonly resource: string | null
}

/**
 * The check whose URL an object of a namespace keeps: a retained check, else a check of any tenant with one of these
 * public ids of the object's URLs. Null when the object keeps no URL of a check.
 */
export async function findUrlHolder(
  db: Queryable,
  { cluster, namespace }: Pick<Resource, 'cluster' | 'namespace'>,
  { kind, name }: PublishedObjectName,
  publicIds: readonly string[],
): Promise<UrlHolder | null> {
  const { rows } = await db.query<UrlHolder>(
    `(select c.id, null::text as resource, 1 as place from retained_checks r join checks c on c.key = r.check_key
        where r.kubernetes_cluster = $1 and r.kubernetes_namespace = $2 and r.published_kind = $3 and r.published_name = $4
          and c.managed_by = 'api'
        order by r.retained_at desc limit 1)
      union all
      (select id, kubernetes_name, 2 from checks where public_id = any($5::uuid[]) limit 1)
      order by place limit 1`,
    [cluster, namespace, kind, name, publicIds],
  )
  return rows[0] === undefined ? null : { id: rows[0].id, resource: rows[0].resource }
}
