import type { Tenant } from '../domain/access.ts'
import { type ChannelKind, MAX_CHANNELS } from '../domain/channel.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { type CheckEventType, STANDARD_EVENT_TYPES } from '../domain/event.ts'
import { newId } from '../runtime/ids.ts'
import { type ChannelRow, countChannels, insertChannel } from '../store/outbox/channels.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import type { ChannelContext } from './context.ts'
import { type ChannelRecord, toRecord } from './find-channels.ts'
import { KINDS, toSettings } from './kinds/index.ts'

export interface NewChannel {
  readonly name: string
  readonly kind: ChannelKind
  /** A valid config of this kind. */
  readonly config: object
  /** Default: the project that the caller is bound to, else the whole organization (null). */
  readonly projectId?: string | null
  /** Default: STANDARD_EVENT_TYPES. */
  readonly events?: readonly CheckEventType[]
  readonly muted?: boolean
}

/**
 * `secret`: the signing secret of a webhook, not shown again. Throws AppError `not_found` for a project that is not the caller's,
 * `conflict` when the organization has MAX_CHANNELS channels, `invalid` for a URL with hidden parts.
 */
export async function createChannel(
  { database, clock, sealer }: ChannelContext,
  tenant: Tenant,
  { kind, name, config, projectId: given = null, events = STANDARD_EVENT_TYPES, muted = false }: NewChannel,
): Promise<ChannelRecord & { readonly secret: string | null }> {
  const { organizationId } = tenant
  const projectId = given ?? tenant.projectId
  const createdAt = clock.now()
  const id = newId(createdAt)
  const settings = toSettings(kind, config, null)
  const shared = { id, organizationId, projectId, kind, name, muted, createdAt }
  const row: ChannelRow = { ...shared, eventTypes: events, ...sealer.seal(id, settings) }
  await database.transaction(async (tx) => {
    // Each creation takes this lock, so that the count stays true until the insert.
    await lockOrganization(tx, organizationId)
    if (projectId !== null && !(await hasProject(tx, tenant, projectId, 'keep'))) throw notFound('project')
    if ((await countChannels(tx, organizationId)) >= MAX_CHANNELS) throw tooMany()
    await insertChannel(tx, row)
  })
  return { ...toRecord(row, sealer), secret: KINDS[kind].config.newSecret?.(settings) ?? null }
}

function tooMany(): AppError {
  return new AppError('conflict', `the organization has ${MAX_CHANNELS} channels, the maximum: remove one first`)
}
