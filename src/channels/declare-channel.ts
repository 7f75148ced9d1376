/** Channels that a resource of a cluster declares: `HeartbeatChannel`. */

import { audited } from '../audit/audited.ts'
import { controllerOf, type Principal } from '../domain/access.ts'
import { type ChannelKind, WITHDRAWN } from '../domain/channel.ts'
import { AppError } from '../domain/errors.ts'
import type { CheckEventType } from '../domain/event.ts'
import { newId } from '../runtime/ids.ts'
import type { Resource } from '../store/checks/checks.ts'
import { lockResource } from '../store/checks/declared-checks.ts'
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
import type { Queryable } from '../store/postgres/database.ts'
import { findOrganizationOf } from '../store/tenancy/projects.ts'
import type { ChannelContext } from './context.ts'
import { addChannel } from './create-channel.ts'
import { dropChannel } from './remove-channel.ts'
import { createPublicSealer } from './seal.ts'
import { changeChannel } from './update-channel.ts'

export type { ChannelDeliveries } from '../store/outbox/declared-channels.ts'

export interface ChannelDeclaration {
  readonly resource: Resource
  /** Of its namespace. */
  readonly projectId: string
  readonly kind: ChannelKind
  readonly name: string
  /** A valid config of this kind, with its secrets. */
  readonly config: object
  /** Of a kind that signs; undefined: one that is shown to no one. */
  readonly signingSecret?: string | undefined
  readonly events: readonly CheckEventType[]
  readonly muted: boolean
  readonly afterSeconds: number
  /** Another text after each change of what the channel is made of. */
  readonly version: string
  /** The id of a channel that the resource had before it was deleted may come back. */
  readonly isRevivable: boolean
}

export type ChannelChange = 'created' | 'revived' | 'updated' | 'unchanged'

interface Declared {
  readonly channelId: string
  readonly change: ChannelChange
}

/**
 * Brings the channel of a resource in line. The process has no SECRET_KEY: what it seals, it cannot read, so `version`
 * says whether anything has changed. Callers of one resource wait for each other. Throws AppError as `createChannel`
 * and `updateChannel` do, and `unavailable` with the field `sealingKey` while no process with SECRET_KEY has saved its
 * public key.
 */
export async function declareChannel(context: Context, declaration: ChannelDeclaration): Promise<Declared> {
  const { database, clock } = context
  const { resource, projectId, kind, isRevivable, config, signingSecret, ...given } = declaration
  const { name, events, muted, afterSeconds } = given
  const key = await findSealingKey(database)
  if (key === null) throw noSealingKey()
  const sealer = createPublicSealer(key)
  // What channels may reach is decided by the process that sends.
  const full: ChannelContext = { ...context, sealer, reach: { findObjection: () => null, hasSmtp: true } }
  const organizationId = await findOrganizationOf(database, projectId)
  const by = { ...controllerOf(resource.cluster), organizationId, projectId: null }
  const version = `${sealer.keyId.toString('hex')}/${given.version}`
  const fields = { name, events, muted, afterSeconds, projectId }
  // The version with what was written from it: the next leader trusts the version of one that dies in between.
  return audited<Declared>(full, by, async (tx) => {
    await lockResource(tx, resource)
    const known = await findDeclaredChannel(tx, resource)
    const isKept = known !== null && (!known.isDeleted || isRevivable)
    const channelId = isKept ? known.channelId : newId(clock.now())
    const row = isKept ? await findChannelRow(tx, by, channelId) : null
    if (row?.kind === kind) {
      if (known?.version === version && row.projectId === projectId)
        return { result: { channelId, change: 'unchanged' }, acts: [] }
      const { acts } = await changeChannel(tx, full, by, channelId, {
        ...fields,
        readConfig: () => config,
        signingSecret,
      })
      await saveDeclaredChannel(tx, resource, { channelId, version })
      return { result: { channelId, change: 'updated' }, acts }
    }
    // A resource that was taken away by force, and is there again as another kind.
    const removed = row === null ? [] : await dropChannel(tx, by, channelId)
    // What was pending when it was removed is old by now.
    if (isKept) await failPending(tx, channelId, WITHDRAWN.removed)
    const { acts } = await addChannel(tx, full, by, { ...fields, id: channelId, kind, config, signingSecret })
    await saveDeclaredChannel(tx, resource, { channelId, version })
    const change = isKept && known.isDeleted ? 'revived' : 'created'
    return { result: { channelId, change }, acts: [...removed, ...acts] }
  })
}

/**
 * Removes the channel of a resource that is deleted. Its id is kept for a while. Without a channel: nothing. `other`:
 * the channel that the resource has elsewhere; where that is ours, nothing is removed.
 */
export function retireChannel(context: Context, resource: Resource, other?: string): Promise<void> {
  return removeDeclared(context, resource, async (tx, { channelId, isDeleted }) => {
    if (isDeleted || channelId === other) return false
    await buryDeclaredChannel(tx, resource, context.clock.now())
    return true
  })
}

/**
 * Removes the channel of a resource if that serves another project than this one (null: it may serve none): a resource
 * that cannot be declared must not go on receiving the events of a project that its namespace has left. Its id is kept.
 */
export function leaveOtherProject(context: Context, resource: Resource, projectId: string | null): Promise<void> {
  return removeDeclared(context, resource, async (tx, known) => {
    if (known.organizationId === null || known.projectId === projectId) return false
    await saveDeclaredChannel(tx, resource, { channelId: known.channelId, version: null })
    return true
  })
}

/** `decide`: whether its channel goes; then it has stored so. */
function removeDeclared(
  context: Context,
  resource: Resource,
  decide: (tx: Queryable, known: DeclaredChannel) => Promise<boolean>,
): Promise<void> {
  const controller = controllerOf(resource.cluster)
  return audited(context, controller, async (tx) => {
    await lockResource(tx, resource)
    const known = await findDeclaredChannel(tx, resource)
    if (known === null || !(await decide(tx, known)) || known.organizationId === null)
      return { result: undefined, acts: [] }
    const by: Principal = { ...controller, organizationId: known.organizationId, projectId: null }
    return { result: undefined, acts: await dropChannel(tx, by, known.channelId), by }
  })
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
