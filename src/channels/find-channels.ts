/** Reading channels. An unknown, a malformed and another tenant's id all give `not_found`. */

import type { Tenant } from '../domain/access.ts'
import type { ChannelKind, ChannelManager } from '../domain/channel.ts'
import type { Instant } from '../domain/check.ts'
import { AppError, notFound } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { type ChannelRow, findChannelRow, listChannelRows, lockChannel } from '../store/outbox/channels.ts'
import type { Queryable } from '../store/postgres/database.ts'
import type { ChannelContext } from './context.ts'
import { KINDS } from './kinds/index.ts'
import { openSettings } from './open-channel.ts'
import { type Sealer, UnreadableSettings } from './seal.ts'

/** A channel without its secrets. */
export interface ChannelRecord {
  readonly id: string
  readonly kind: ChannelKind
  readonly name: string
  /** Null when it serves the whole organization. */
  readonly projectId: string | null
  readonly events: readonly CheckEventType[]
  readonly muted: boolean
  /** As its kind shows it. Null when it cannot be read: it is damaged, or sealed under a SECRET_KEY that is not configured here. */
  readonly config: object | null
  readonly managedBy: ChannelManager
  readonly createdAt: Instant
}

export async function getChannel(context: ChannelContext, tenant: Tenant, id: string): Promise<ChannelRecord> {
  const row = isUuid(id) ? await findChannelRow(context.database, tenant, id) : null
  if (row === null) throw notFound('channel')
  return toRecord(row, context.sealer)
}

/** In order of creation. */
export async function listChannels(
  { database, sealer }: ChannelContext,
  tenant: Tenant,
  page: PageRequest,
): Promise<Page<ChannelRecord>> {
  const rows = await listChannelRows(database, tenant, { ...page, limit: page.limit + 1 })
  const records = rows.map((row) => toRecord(row, sealer))
  return toPage(records, page.limit, ({ createdAt, id }) => ({ at: createdAt, id }))
}

export function toRecord(row: ChannelRow, sealer: Sealer): ChannelRecord {
  const { id, kind, name, projectId, eventTypes, muted, createdAt } = row
  const shared = { id, kind, name, projectId, events: eventTypes, muted, createdAt }
  // The addresses of the installation's Alertmanager are for its operator only.
  if (row.organizationId === null) return { ...shared, config: { urls: [], labels: {} }, managedBy: 'configuration' }
  const settings = openSettings(row, sealer)
  const config = settings instanceof UnreadableSettings ? null : KINDS[kind].config.show(settings)
  return { ...shared, config, managedBy: 'api' }
}

/** Locks the channel for a change until the transaction ends. Throws AppError `not_found`, and `conflict` for the installation's channel. */
export async function lockForChange(tx: Queryable, tenant: Tenant, id: string): Promise<ChannelRow> {
  const row = isUuid(id) ? await lockChannel(tx, tenant, id, 'change') : null
  if (row === null) throw notFound('channel')
  if (row.organizationId === null)
    throw new AppError('conflict', 'the channel belongs to the configuration: change ALERTMANAGER_URL instead')
  return row
}
