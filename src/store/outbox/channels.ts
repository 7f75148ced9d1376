/**
 * Channels. A caller sees the channels of its organization; a caller bound to a project sees only those of the project. Every caller
 * that is not bound sees the channel of the installation (organization null), too. What a project's checks can choose is more: the API of
 * healthchecks shows it, by name and kind, to the keys of the project.
 */

import type { Tenant } from '../../domain/access.ts'
import type { ChannelKind } from '../../domain/channel.ts'
import type { Instant } from '../../domain/check.ts'
import type { CheckEventType } from '../../domain/event.ts'
import type { PageRequest } from '../../domain/page.ts'
import type { Resource } from '../checks/checks.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface ChannelRow {
  readonly id: string
  /** Null for the channel of the installation. */
  readonly organizationId: string | null
  /** Null when it serves the whole organization. */
  readonly projectId: string | null
  readonly kind: ChannelKind
  readonly name: string
  /** The sealed settings and the id of their key (channels/seal.ts). Both are null for the channel of the installation. */
  readonly sealed: Buffer | null
  readonly sealedWith: Buffer | null
  readonly eventTypes: readonly CheckEventType[]
  readonly muted: boolean
  /** It is notified of an incident that is so old, and that no one has; 0: at once. */
  readonly afterSeconds: number
  readonly createdAt: Instant
}

/** With the resource that declares it; null: none. */
export interface OwnedChannelRow extends ChannelRow {
  readonly resource: Resource | null
}

export type SealedChannel = Pick<ChannelRow, 'id' | 'kind'> & { readonly sealed: Buffer; readonly sealedWith: Buffer }

const FAILED_AT_ONCE = 10_000

/** The columns of a ChannelRow, from `channels c`. */
export const CHANNEL_COLUMNS = `c.id, c.organization_id as "organizationId", c.project_id as "projectId", c.kind, c.name, c.sealed,
  c.sealed_with as "sealedWith", c.event_types as "eventTypes", c.muted, c.after_seconds as "afterSeconds", c.created_at as "createdAt"`

/** Those of an OwnedChannelRow. */
const OWNED_COLUMNS = `${CHANNEL_COLUMNS}, (
    select jsonb_build_object('cluster', d.kubernetes_cluster, 'namespace', d.kubernetes_namespace, 'name', d.kubernetes_name)
    from declared_channels d where d.channel_id = c.id) as resource`

/** $1 organization, $2 project of the tenant or null. */
const VISIBLE = `(c.organization_id = $1 and ($2::uuid is null or c.project_id = $2)
  or c.organization_id is null and $2::uuid is null)`

/** That the channel `c` serves the check `t`. */
export const SERVES = `(c.organization_id = t.organization_id or c.organization_id is null)
          and (c.project_id = t.project_id or c.project_id is null)
          and (t.chosen is null or c.id = any(t.chosen) or c.organization_id is null)`

/** In order of creation. */
export async function listChannelRows(
  db: Queryable,
  tenant: Tenant,
  { limit, after }: PageRequest,
): Promise<OwnedChannelRow[]> {
  const { rows } = await db.query<OwnedChannelRow>(
    `select ${OWNED_COLUMNS} from channels c
      where ${VISIBLE} and ($4::uuid is null or (c.created_at, c.id) > ($3::timestamptz, $4))
      order by c.created_at, c.id limit $5`,
    [tenant.organizationId, tenant.projectId, timestamp(after?.at ?? null), after?.id ?? null, limit],
  )
  return rows
}

/** Whether any channel wants events of this type. */
export async function isEventWanted(tx: Queryable, type: CheckEventType): Promise<boolean> {
  const { rows } = await tx.query<{ wanted: boolean }>({
    name: 'is_event_wanted',
    text: `select exists (select from channels c where not c.muted and $1 = any(c.event_types)) as wanted`,
    values: [type],
  })
  return rows[0]!.wanted
}

const LOCKS = { none: '', change: 'for update of c', keep: 'for key share of c' } as const

/**
 * Null when the tenant has no such channel. `lock`: until the transaction ends it cannot be changed or removed, or with
 * `keep` not removed.
 */
export async function findChannelRow(
  db: Queryable,
  tenant: Tenant,
  id: string,
  lock: keyof typeof LOCKS = 'none',
): Promise<OwnedChannelRow | null> {
  const text = `select ${OWNED_COLUMNS} from channels c where ${VISIBLE} and c.id = $3 ${LOCKS[lock]}`
  const { rows } = await db.query<OwnedChannelRow>(text, [tenant.organizationId, tenant.projectId, id])
  return rows[0] ?? null
}

/** The channels of a project, or those that serve the whole organization (null). */
export async function countChannels(db: Queryable, organizationId: string, projectId: string | null): Promise<number> {
  const text =
    'select count(*) as count from channels where organization_id = $1 and project_id is not distinct from $2'
  const { rows } = await db.query<{ count: number }>(text, [organizationId, projectId])
  return rows[0]!.count
}

/** False when the id is taken. */
export async function insertChannel(tx: Queryable, channel: ChannelRow): Promise<boolean> {
  const { id, organizationId, projectId, kind, name, sealed, sealedWith, eventTypes, muted, afterSeconds } = channel
  const { rowCount } = await tx.query(
    `insert into channels (id, organization_id, project_id, kind, name, sealed, sealed_with, event_types, muted, after_seconds,
        created_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::timestamptz)
      on conflict (id) do nothing`,
    [
      id,
      organizationId,
      projectId,
      kind,
      name,
      sealed,
      sealedWith,
      eventTypes,
      muted,
      afterSeconds,
      timestamp(channel.createdAt),
    ],
  )
  return rowCount > 0
}

/** Saves everything that can change. The caller holds the lock. */
export async function saveChannel(tx: Queryable, channel: ChannelRow): Promise<void> {
  const { id, projectId, name, sealed, sealedWith, eventTypes, muted, afterSeconds } = channel
  await tx.query(
    `update channels set project_id = $2, name = $3, sealed = $4, sealed_with = $5,
        event_types = $6, muted = $7, after_seconds = $8
      where id = $1`,
    [id, projectId, name, sealed, sealedWith, eventTypes, muted, afterSeconds],
  )
}

/** The caller holds its lock, and no check has chosen it (choosers.ts). */
export async function deleteChannel(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from channels where id = $1', [id])
}

/** What can be chosen of `channels c` by a check of the project $1. */
const CHOOSABLE = `c.organization_id = (select organization_id from projects where id = $1)
  and (c.project_id is null or c.project_id = $1)`

export type ChoosableChannel = Pick<ChannelRow, 'id' | 'name' | 'kind'>

/** In order of creation. There are few: a project has as many as an organization beside it. */
export async function listChoosable(db: Queryable, projectId: string): Promise<ChoosableChannel[]> {
  const { rows } = await db.query<ChoosableChannel>(
    `select c.id, c.name, c.kind from channels c where ${CHOOSABLE} order by c.created_at, c.id`,
    [projectId],
  )
  return rows
}

/** Which of these channels a check of the project may choose. They stay until the transaction ends. */
export async function keepChoosable(tx: Queryable, projectId: string, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ id: string }>(
    `select c.id from channels c
      where c.id = any($2::uuid[]) and ${CHOOSABLE}
      order by c.id for key share of c`,
    [projectId, ids],
  )
  return new Set(rows.map((row) => row.id))
}

/**
 * Marks the pending deliveries of a channel as failed, except tests, in the transaction that mutes or moves the channel. At most
 * 10,000 in one statement, because each statement has a timeout of seconds. `keptProjectId`: deliveries of this project stay pending.
 */
export async function failPending(
  tx: Queryable,
  channelId: string,
  error: string,
  keptProjectId: string | null = null,
): Promise<void> {
  for (;;) {
    // Joined by key, not by ctid: a row that was claimed while this statement waited for its lock has another ctid.
    const { rowCount } = await tx.query(
      `update deliveries d set status = 2, next_attempt_at = null, last_error = $2
        from (
          select event_id, channel_id from deliveries
          where channel_id = $1 and status = 0 and type <> 'channel.test' and ($4::uuid is null or project_id <> $4)
          limit $3 for no key update) waiting
        where d.event_id = waiting.event_id and d.channel_id = waiting.channel_id`,
      [channelId, error, FAILED_AT_ONCE, keptProjectId],
    )
    if (rowCount === 0) return
  }
}

/**
 * Up to `limit` channels of organizations, in order of their ids, after `afterId`. `keyId`: those that are sealed under
 * another key.
 */
export async function listSealed(
  db: Queryable,
  { keyId, afterId, limit }: { readonly keyId: Buffer | null; readonly afterId: string | null; readonly limit: number },
): Promise<SealedChannel[]> {
  const { rows } = await db.query<SealedChannel>(
    `select id, kind, sealed, sealed_with as "sealedWith" from channels
      where sealed is not null and ($1::bytea is null or sealed_with <> $1) and ($2::uuid is null or id > $2)
      order by id limit $3`,
    [keyId, afterId, limit],
  )
  return rows
}

/** Returns false when the channel was changed or removed since `before` was read. Such a change has sealed it already. */
export async function replaceSealed(
  db: Queryable,
  id: string,
  before: Buffer,
  after: { readonly sealed: Buffer; readonly sealedWith: Buffer },
): Promise<boolean> {
  const text = 'update channels set sealed = $3, sealed_with = $4 where id = $1 and sealed = $2'
  const { rowCount } = await db.query(text, [id, before, after.sealed, after.sealedWith])
  return rowCount === 1
}

/** Creates or updates the channel of ALERTMANAGER_URL, and stores that a replica has it at `now`. It has no settings here. */
export async function saveInstallationChannel(
  db: Queryable,
  channel: Pick<ChannelRow, 'id' | 'name' | 'eventTypes'> & { readonly now: Instant },
): Promise<void> {
  await db.query(
    `insert into channels (id, kind, name, event_types, created_at, seen_at)
        values ($1, 'alertmanager', $2, $3, $4::timestamptz, $4::timestamptz)
      on conflict (id) do update set name = excluded.name, event_types = excluded.event_types,
        seen_at = excluded.seen_at`,
    [channel.id, channel.name, channel.eventTypes, timestamp(channel.now)],
  )
}

/** Deletes that channel, unless a replica has saved it since `unseenSince`. Pruning deletes its deliveries. */
export async function deleteInstallationChannel(db: Queryable, id: string, unseenSince: Instant): Promise<void> {
  await db.query('delete from channels where id = $1 and seen_at < $2::timestamptz', [id, timestamp(unseenSince)])
}
