/** Reading channels. Unknown, foreign and malformed ids are all the same: `not_found`. */

import type { Tenant } from '../domain/access.ts'
import type { ChannelKind, ChannelManager, ChannelSettings } from '../domain/channel.ts'
import type { Instant } from '../domain/check.ts'
import { AppError, notFound } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { type ChannelRow, findChannelRow, listChannelRows, lockChannel } from '../store/outbox/channels.ts'
import type { Queryable } from '../store/postgres/database.ts'
import type { ChannelContext } from './context.ts'
import { type ChannelConfig, presentConfig } from './present-config.ts'
import { type Sealer, UnreadableSettings } from './seal.ts'

/** A channel as it is shown: no secret in it. */
export interface ChannelRecord {
  readonly id: string
  readonly kind: ChannelKind
  readonly name: string
  /** Null: it serves the whole organization. */
  readonly projectId: string | null
  readonly events: readonly CheckEventType[]
  readonly muted: boolean
  /** Null when it cannot be read: it is sealed under a SECRET_KEY that is not configured here, or damaged. */
  readonly config: ChannelConfig | null
  readonly managedBy: ChannelManager
  readonly createdAt: Instant
}

export async function getChannel(
  { database, sealer }: ChannelContext,
  tenant: Tenant,
  id: string,
): Promise<ChannelRecord> {
  const row = isUuid(id) ? await findChannelRow(database, tenant, id) : null
  if (row === null) throw notFound('channel')
  return toRecord(row, sealer)
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
  // Where the installation's Alertmanager is, is for whoever runs the installation to know.
  if (isConfigured(row)) {
    return { ...shared, config: { kind: 'alertmanager', urls: [], labels: {} }, managedBy: 'configuration' }
  }
  const settings = openSettings(row, sealer)
  const config = settings instanceof UnreadableSettings ? null : presentConfig(settings)
  return { ...shared, config, managedBy: 'api' }
}

/** The settings, or why they cannot be read. */
export function openSettings(
  { id, sealed, sealedWith }: ChannelRow,
  sealer: Sealer,
): ChannelSettings | UnreadableSettings {
  try {
    // The table lets no channel of an organization be without them.
    return sealer.open(id, { sealed: sealed!, sealedWith: sealedWith! })
  } catch (error) {
    if (error instanceof UnreadableSettings) return error
    throw error
  }
}

function isConfigured({ organizationId }: ChannelRow): boolean {
  return organizationId === null
}

/**
 * Holds the channel for a change until the transaction ends. Throws AppError `not_found`, and `conflict` for the channel of the
 * installation.
 */
export async function lockForChange(tx: Queryable, tenant: Tenant, id: string): Promise<ChannelRow> {
  const row = isUuid(id) ? await lockChannel(tx, tenant, id, 'change') : null
  if (row === null) throw notFound('channel')
  if (isConfigured(row)) {
    throw new AppError(
      'conflict',
      'the channel is made by the variable ALERTMANAGER_URL: change the configuration instead',
    )
  }
  return row
}
