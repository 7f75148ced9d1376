import type { Tenant } from '../domain/access.ts'
import { CHANNEL_LIMITS, type ChannelSettings } from '../domain/channel.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { type CheckEventType, STANDARD_EVENT_TYPES } from '../domain/event.ts'
import { newId } from '../runtime/ids.ts'
import { type ChannelRow, countChannels, insertChannel } from '../store/outbox/channels.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import type { ChannelContext } from './context.ts'
import { type ChannelRecord, toRecord } from './find-channels.ts'
import { type ConfigInput, toSettings } from './present-config.ts'

export interface NewChannel {
  readonly name: string
  readonly config: ConfigInput
  /** Null or left out: for the whole organization, or for the project that the caller is bound to. */
  readonly projectId?: string | null
  /** Left out: STANDARD_EVENT_TYPES. */
  readonly events?: readonly CheckEventType[]
  readonly muted?: boolean
}

/**
 * `secret`: of a webhook; it is shown here and never again. Throws AppError `not_found` for a project that is not the caller's,
 * `conflict` when the organization has all the channels that it may have, and `invalid` for a URL in which something is left out.
 */
export async function createChannel(
  { database, clock, sealer }: ChannelContext,
  tenant: Tenant,
  { name, config, projectId: asked = null, events = STANDARD_EVENT_TYPES, muted = false }: NewChannel,
): Promise<ChannelRecord & { readonly secret: string | null }> {
  const { organizationId } = tenant
  const projectId = asked ?? tenant.projectId
  const createdAt = clock.now()
  const id = newId(createdAt)
  const settings = toSettings(config, null)
  const shared = { id, organizationId, projectId, kind: config.kind, name, muted, createdAt }
  const row: ChannelRow = { ...shared, eventTypes: events, ...sealer.seal(id, settings) }
  await database.transaction(async (tx) => {
    // Taken by everybody who adds a channel, so that the count is still right when it is written.
    await lockOrganization(tx, organizationId)
    if (projectId !== null && !(await hasProject(tx, tenant, projectId, 'keep'))) throw notFound('project')
    if ((await countChannels(tx, organizationId)) >= CHANNEL_LIMITS.channels) throw tooMany()
    await insertChannel(tx, row)
  })
  return { ...toRecord(row, sealer), secret: firstSecret(settings) }
}

function tooMany(): AppError {
  return new AppError(
    'conflict',
    `the organization has ${CHANNEL_LIMITS.channels} channels, as many as it may: remove one first`,
  )
}

function firstSecret(settings: ChannelSettings): string | null {
  return settings.kind === 'webhook' ? settings.secrets[0]!.secret : null
}
