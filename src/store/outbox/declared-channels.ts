/** Which resource declares a channel. The rows outlive their channels: see the migration. */

import type { Instant } from '../../domain/check.ts'
import { ofResource, type Resource } from '../checks/checks.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface DeclaredChannel {
  readonly channelId: string
  /** Of what the channel was written from; null: it was not. */
  readonly version: string | null
  /** Null: the channel is gone. */
  readonly organizationId: string | null
  /** The project whose checks notify the channel. */
  readonly projectId: string | null
  readonly isDeleted: boolean
}

export async function findDeclaredChannel(
  db: Queryable,
  { cluster, namespace, name }: Resource,
): Promise<DeclaredChannel | null> {
  const { rows } = await db.query<DeclaredChannel>(
    `select d.channel_id as "channelId", d.version, c.organization_id as "organizationId",
        c.project_id as "projectId", d.deleted_at is not null as "isDeleted"
      from declared_channels d left join channels c on c.id = d.channel_id where ${ofResource('d')}`,
    [cluster, namespace, name],
  )
  return rows[0] ?? null
}

/** The resource is there, and declares this channel. */
export async function saveDeclaredChannel(
  db: Queryable,
  { cluster, namespace, name }: Resource,
  { channelId, version }: Pick<DeclaredChannel, 'channelId' | 'version'>,
): Promise<void> {
  await db.query(
    `insert into declared_channels (kubernetes_cluster, kubernetes_namespace, kubernetes_name, channel_id, version)
      values ($1, $2, $3, $4, $5)
      on conflict (kubernetes_cluster, kubernetes_namespace, kubernetes_name)
      do update set channel_id = excluded.channel_id, version = excluded.version, deleted_at = null`,
    [cluster, namespace, name, channelId, version],
  )
}

/** The resource is gone. */
export async function buryDeclaredChannel(
  db: Queryable,
  { cluster, namespace, name }: Resource,
  deletedAt: Instant,
): Promise<void> {
  await db.query(
    `update declared_channels d set deleted_at = $4::timestamptz where ${ofResource('d')} and deleted_at is null`,
    [cluster, namespace, name, timestamp(deletedAt)],
  )
}

/** A declared channel, and how its deliveries go. */
export interface ChannelDeliveries {
  readonly namespace: string
  readonly name: string
  readonly channelId: string
  /** False: the channel is gone from the database. */
  readonly exists: boolean
  /** The oldest delivery that is pending, or has failed since the last success. Null: none. */
  readonly undelivered: { readonly createdAt: Instant; readonly error: string | null } | null
  readonly lastDeliveredAt: Instant | null
}

/** An error of a delivery that was not sent because of a decision of people, as `failPending` writes it. */
type Withdrawn = readonly string[]

/**
 * SQL: of the channel `d.channel_id`. The statement runs every few seconds, and a channel may have failed for weeks.
 */
const NEWEST = `(
            select n.id, n.status, n.created_at, n.delivered_at, n.last_error from deliveries n
            where n.channel_id = d.channel_id order by n.id desc limit 1000)`

/** Of all channels that resources of the cluster declare, or of one of them. */
export async function listChannelDeliveries(
  db: Queryable,
  cluster: string,
  withdrawn: Withdrawn,
  channelId: string | null = null,
): Promise<ChannelDeliveries[]> {
  const { rows } = await db.query<
    Omit<ChannelDeliveries, 'undelivered'> & { createdAt: Instant | null; error: string | null }
  >(
    `select d.kubernetes_namespace as namespace, d.kubernetes_name as name, d.channel_id as "channelId",
        c.id is not null as exists, last.delivered_at as "lastDeliveredAt",
        oldest.created_at as "createdAt", oldest.last_error as error
      from declared_channels d left join channels c on c.id = d.channel_id
        left join lateral (
          select s.id, s.delivered_at from ${NEWEST} s where s.status = 1 order by s.id desc limit 1) last on true
        left join lateral (
          select u.created_at, u.last_error from (
            (select p.id, p.created_at, p.last_error from deliveries p
              where p.channel_id = d.channel_id and p.status = 0 order by p.id limit 1)
            union all
            (select f.id, f.created_at, f.last_error from ${NEWEST} f
              where f.status = 2 and (last.id is null or f.id > last.id) and f.last_error <> all($2::text[])
              order by f.id limit 1)) u
          order by u.id limit 1) oldest on true
      where d.kubernetes_cluster = $1 and d.deleted_at is null and ($3::uuid is null or d.channel_id = $3)`,
    [cluster, withdrawn, channelId],
  )
  return rows.map(({ createdAt, error, ...row }) => ({
    ...row,
    undelivered: createdAt === null ? null : { createdAt, error },
  }))
}
