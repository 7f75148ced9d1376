/** Reading channels. An unknown, a malformed and another tenant's id all give `not_found`. */

import { includesScope, type Principal, type Scope, type Tenant } from '../domain/access.ts'
import type { Act, AuditAction, AuditDetail } from '../domain/audit.ts'
import type { ChannelKind, ChannelManager } from '../domain/channel.ts'
import type { Instant } from '../domain/check.ts'
import { AppError, notFound } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import type { Resource } from '../store/checks/checks.ts'
import { type ChannelRow, findChannelRow, listChannelRows, type OwnedChannelRow } from '../store/outbox/channels.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { findWarnings, isInClear } from './check-reach.ts'
import type { ChannelContext } from './context.ts'
import { KINDS } from './kinds/index.ts'
import { openSettings } from './open-channel.ts'
import { UnreadableSettings } from './seal.ts'

/** A channel without its secrets. */
export interface ChannelRecord {
  readonly id: string
  readonly kind: ChannelKind
  readonly name: string
  /** Null when it serves the whole organization. */
  readonly projectId: string | null
  readonly events: readonly CheckEventType[]
  readonly muted: boolean
  readonly afterSeconds: number
  /** As its kind shows it. Null when it cannot be read: it is damaged, or sealed under a SECRET_KEY that is not configured here. */
  readonly config: object | null
  readonly managedBy: ChannelManager
  /** The HeartbeatChannel that declares it; null: none. */
  readonly kubernetes: Resource | null
  /** Why nothing can be delivered to it at the moment. */
  readonly warnings: readonly string[]
  /** What is sent to it can be read on its way: a URL of it has no TLS. */
  readonly isInClear: boolean
  readonly createdAt: Instant
}

export async function getChannel(context: ChannelContext, tenant: Tenant, id: string): Promise<ChannelRecord> {
  const row = isUuid(id) ? await findChannelRow(context.database, tenant, id) : null
  if (row === null) throw notFound('channel')
  return toRecord(row, context)
}

/** In order of creation. */
export async function listChannels(
  context: ChannelContext,
  tenant: Tenant,
  page: PageRequest,
): Promise<Page<ChannelRecord>> {
  const { rows, next } = await readPage(page, (rows) => listChannelRows(context.database, tenant, rows))
  return { rows: rows.map((row) => toRecord(row, context)), next }
}

export function toRecord(
  row: OwnedChannelRow,
  { sealer, reach }: Pick<ChannelContext, 'sealer' | 'reach'>,
): ChannelRecord {
  const { id, kind, name, projectId, eventTypes, muted, afterSeconds, createdAt, resource: kubernetes } = row
  const shared = { id, kind, name, projectId, events: eventTypes, muted, afterSeconds, createdAt, kubernetes }
  // The addresses of the installation's Alertmanager are for its operator only.
  if (row.organizationId === null)
    return { ...shared, config: { urls: [], labels: {} }, managedBy: 'configuration', warnings: [], isInClear: false }
  const managedBy = kubernetes === null ? 'api' : 'kubernetes'
  const settings = openSettings(row, sealer)
  if (settings instanceof UnreadableSettings)
    return { ...shared, config: null, managedBy, warnings: [settings.message], isInClear: false }
  const warnings = findWarnings(kind, settings, reach)
  const config = KINDS[kind].config.show(settings)
  return { ...shared, config, managedBy, warnings, isInClear: isInClear(kind, settings) }
}

/** The channel as a caller of this scope may see it: those who may not change it see less of its config. */
export function showFor(scope: Scope, channel: ChannelRecord): ChannelRecord {
  const { showToReader } = KINDS[channel.kind].config
  if (channel.config === null || showToReader === undefined || includesScope(scope, 'admin')) return channel
  return { ...channel, config: showToReader(channel.config) }
}

/** What was done to a channel, for the audit log. */
export function actOn(
  { id, name, kind, projectId }: Pick<ChannelRow, 'id' | 'name' | 'kind' | 'projectId'>,
  action: AuditAction,
  detail: AuditDetail = {},
): Act {
  return { action, target: { id, name }, projectId, detail: { kind, ...detail } }
}

/**
 * Locks the channel for a change until the transaction ends. Throws AppError `not_found`, `conflict` for the
 * installation's channel, and `managed_by_kubernetes` for a declared one, which only the controller changes.
 */
export async function lockForChange(tx: Queryable, by: Principal, id: string): Promise<OwnedChannelRow> {
  const row = isUuid(id) ? await findChannelRow(tx, by, id, 'change') : null
  if (row === null) throw notFound('channel')
  if (row.organizationId === null) throw new AppError('conflict', { why: 'channel_configured' })
  if (row.resource !== null && by.kind !== 'controller')
    throw new AppError('managed_by_kubernetes', { what: 'channel', resource: row.resource })
  return row
}
