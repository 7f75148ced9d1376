import { type Audited, audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import { type ChannelKind, MAX_CHANNELS, standardEventsOf } from '../domain/channel.ts'
import { AppError, notFound } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { newId } from '../runtime/ids.ts'
import { wakeServed } from '../store/checks/circumstances.ts'
import { type ChannelRow, countChannels, insertChannel } from '../store/outbox/channels.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import { assertReachable } from './check-reach.ts'
import type { ChannelContext } from './context.ts'
import { actOn, type ChannelRecord, toRecord } from './find-channels.ts'
import { KINDS, settingsOf } from './kinds/index.ts'

export interface NewChannel {
  /** Default: a new one. */
  readonly id?: string
  readonly name: string
  readonly kind: ChannelKind
  /** A valid config of this kind. */
  readonly config: object
  /** Default: the project that the caller is bound to, else the whole organization (null). */
  readonly projectId?: string | null
  /** Default: `standardEventsOf` its kind. */
  readonly events?: readonly CheckEventType[]
  readonly muted?: boolean
  /** Default: 0. */
  readonly afterSeconds?: number
  /** Of a kind that signs. Default: a new one. */
  readonly signingSecret?: string | undefined
}

/** `secret`: the signing secret of a webhook, not shown again. */
export type CreatedChannel = ChannelRecord & { readonly secret: string | null }

/**
 * Throws AppError `not_found` for a project that is not the
 * caller's, `conflict` for an id that exists, and when the project, or the organization itself, has MAX_CHANNELS
 * channels, `invalid_request` for a URL with hidden parts or with an address that channels may not reach.
 */
export function createChannel(context: ChannelContext, by: Principal, given: NewChannel): Promise<CreatedChannel> {
  return audited(context, by, (tx) => addChannel(tx, context, by, given))
}

/** The same in a transaction of the caller's. */
export async function addChannel(
  tx: Queryable,
  context: ChannelContext,
  by: Principal,
  {
    id: chosen,
    kind,
    name,
    config,
    projectId: given = null,
    events = standardEventsOf(kind),
    muted = false,
    afterSeconds = 0,
    signingSecret,
  }: NewChannel,
): Promise<Audited<CreatedChannel>> {
  const { clock, sealer, reach } = context
  const { organizationId } = by
  const projectId = given ?? by.projectId
  const createdAt = clock.now()
  const id = chosen ?? newId(createdAt)
  const settings = settingsOf(kind, config, null, signingSecret)
  assertReachable(kind, settings, reach)
  const shared = { id, organizationId, projectId, kind, name, muted, afterSeconds, createdAt }
  const row: ChannelRow = { ...shared, eventTypes: events, ...sealer.seal(id, settings) }
  // Each creation takes this lock, so that the count stays true until the insert.
  await lockOrganization(tx, organizationId)
  if (projectId !== null && !(await hasProject(tx, by, projectId, 'keep'))) throw notFound('project')
  await assertRoom(tx, organizationId, projectId)
  if (!(await insertChannel(tx, row))) throw new AppError('conflict', { why: 'channel_made' })
  if (afterSeconds > 0) await wakeServed(tx, id, createdAt)
  const secret = KINDS[kind].config.secret?.newest(settings) ?? null
  const result = { ...toRecord({ ...row, resource: null }, context), secret }
  return { result, acts: [actOn(row, 'channel.created')] }
}

/** The transaction holds the organization's lock. Throws AppError `conflict` when no channel can be added to the project (null: to the organization). */
export async function assertRoom(tx: Queryable, organizationId: string, projectId: string | null): Promise<void> {
  if ((await countChannels(tx, organizationId, projectId)) < MAX_CHANNELS) return
  const of = projectId === null ? 'organization' : 'project'
  throw new AppError('conflict', { why: 'many_channels', of, most: MAX_CHANNELS })
}
