/** Channels that a resource of a cluster declares: `HeartbeatChannel`. */

import { controllerOf, type Principal } from '../domain/access.ts'
import { type ChannelKind, WITHDRAWN } from '../domain/channel.ts'
import { AppError } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { newId } from '../runtime/ids.ts'
import type { Resource } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { findSealingKey } from '../store/leases/sealing-key.ts'
import { failPending, findChannelRow } from '../store/outbox/channels.ts'
import {
  buryDeclaredChannel,
  type ChannelDeliveries,
  type DeclaredChannel,
  findDeclaredChannel,
  listChannelDeliveries,
  saveDeclaredChannel,
} from '../store/outbox/declared-channels.ts'
import { findOrganizationOf } from '../store/tenancy/projects.ts'
import type { ChannelContext } from './context.ts'
import { createChannel } from './create-channel.ts'
import { removeChannel } from './remove-channel.ts'
import { createPublicSealer } from './seal.ts'
import { updateChannel } from './update-channel.ts'

export type { ChannelDeliveries } from '../store/outbox/declared-channels.ts'

export interface ChannelDeclaration {
  readonly resource: Resource
  /** Of its namespace. */
  readonly projectId: string
  readonly kind: ChannelKind
  readonly name: string
  /** A valid config of this kind, with its secrets. */
  readonly config: object
  readonly events: readonly CheckEventType[]
  readonly muted: boolean
  readonly afterSeconds: number
  /** Another text after each change of what the channel is made of. */
  readonly version: string
  /** The id of a channel that the resource had before it was deleted may come back. */
  readonly isRevivable: boolean
}

export type ChannelChange = 'created' | 'revived' | 'updated' | 'unchanged'

/**
 * Brings the channel of a resource in line. The process has no SECRET_KEY: what it seals, it cannot read, so `version`
 * says whether anything has changed. Throws AppError as `createChannel` and `updateChannel` do, and `unavailable` with
 * the field `sealingKey` while no process with SECRET_KEY has saved its public key.
 */
export async function declareChannel(
  context: Context,
  declaration: ChannelDeclaration,
): Promise<{ readonly channelId: string; readonly change: ChannelChange }> {
  const { database, clock } = context
  const { resource, projectId, kind, isRevivable, config, ...given } = declaration
  const { name, events, muted, afterSeconds } = given
  const key = await findSealingKey(database)
  if (key === null) throw noSealingKey()
  const sealer = createPublicSealer(key)
  // What channels may reach is decided by the process that sends.
  const full: ChannelContext = { ...context, sealer, reach: { findObjection: () => null, hasSmtp: true } }
  const organizationId = await findOrganizationOf(database, projectId)
  const by = { ...controllerOf(resource.cluster), organizationId, projectId: null }
  const version = `${sealer.keyId.toString('hex')}/${given.version}`
  const known = await findDeclaredChannel(database, resource)
  const isKept = known !== null && (!known.isDeleted || isRevivable)
  const channelId = isKept ? known.channelId : newId(clock.now())
  const fields = { name, events, muted, afterSeconds, projectId }
  const row = isKept ? await findChannelRow(database, by, channelId) : null
  if (row !== null && row.kind === kind) {
    if (known?.version === version && row.projectId === projectId) return { channelId, change: 'unchanged' }
    await updateChannel(full, by, channelId, { ...fields, readConfig: () => config })
    await saveDeclaredChannel(database, resource, { channelId, version })
    return { channelId, change: 'updated' }
  }
  // A resource that was taken away by force, and is there again as another kind.
  if (row !== null) await removeChannel(full, by, channelId, { force: true })
  // Before the channel: it is never one of the API.
  await saveDeclaredChannel(database, resource, { channelId, version: null })
  // What was pending when it was removed is old by now.
  if (isKept) await failPending(database, channelId, WITHDRAWN.removed)
  await createChannel(full, by, { ...fields, id: channelId, kind, config })
  await saveDeclaredChannel(database, resource, { channelId, version })
  return { channelId, change: isKept && known.isDeleted ? 'revived' : 'created' }
}

/**
 * Removes the channel of a resource that is deleted. Its id is kept for a while. Without a channel: nothing. `other`:
 * the channel that the resource has elsewhere; where that is ours, nothing is removed.
 */
export async function retireChannel(context: Context, resource: Resource, other?: string): Promise<void> {
  const { database, clock } = context
  const known = await findDeclaredChannel(database, resource)
  if (known === null || known.isDeleted || known.channelId === other) return
  await removeDeclared(context, resource, known)
  await buryDeclaredChannel(database, resource, clock.now())
}

/**
 * Removes the channel of a resource if that serves another project than this one (null: it may serve none): a resource
 * that cannot be declared must not go on receiving the events of a project that its namespace has left. Its id is kept.
 */
export async function leaveOtherProject(context: Context, resource: Resource, projectId: string | null): Promise<void> {
  const known = await findDeclaredChannel(context.database, resource)
  if (known === null || known.organizationId === null || known.projectId === projectId) return
  await removeDeclared(context, resource, known)
  await saveDeclaredChannel(context.database, resource, { channelId: known.channelId, version: null })
}

async function removeDeclared(
  context: Context,
  { cluster }: Resource,
  { organizationId, channelId }: DeclaredChannel,
): Promise<void> {
  if (organizationId === null) return
  const by: Principal = { ...controllerOf(cluster), organizationId, projectId: null }
  await removeChannel(context, by, channelId, { force: true })
}

/** How the deliveries of all channels go that resources of the cluster declare, or of one of these channels. */
export function findChannelDeliveries(
  { database }: Pick<Context, 'database'>,
  cluster: string,
  channelId: string | null = null,
): Promise<ChannelDeliveries[]> {
  return listChannelDeliveries(database, cluster, Object.values(WITHDRAWN), channelId)
}

function noSealingKey(): AppError {
  const message =
    'the service has no key yet to seal the channel with: start its role api (or all) in this version once, which saves one in the database'
  return new AppError('unavailable', message, { field: 'sealingKey' })
}
