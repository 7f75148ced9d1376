/** The HeartbeatChannel as a kind: its Secret, which no watch shows, and its channel in the service. */

import type { ChannelChange, ChannelDeliveries } from '../../channels/declare-channel.ts'
import { CHANNEL_KINDS } from '../../domain/channel.ts'
import { type AppError, describeError } from '../../domain/errors.ts'
import type { ProjectRequest } from '../../tenancy/namespace-projects.ts'
import { CHANNEL_KIND, HEARTBEAT_CHANNELS } from '../names.ts'
import type { DeclaredKind, Place } from '../resource/declared-kind.ts'
import { type HeartbeatChannel, readChannel } from '../schema/channel.ts'
import type { Term } from '../term.ts'
import { describeChannel, isOutdated } from './channel-status.ts'
import { readSecret, readSigningSecret, StalledChannel } from './read-secret.ts'

const CHANGES: Record<Exclude<ChannelChange, 'unchanged'>, { readonly reason: string; readonly note: string }> = {
  created: { reason: 'Created', note: 'the channel receives the events of the checks of this namespace from now on' },
  revived: { reason: 'Revived', note: 'the channel is back, with the id that it had' },
  updated: { reason: 'Updated', note: 'the service holds the new specification, and the present value of the Secret' },
}

/** `isRevivable`: whether the id of a deleted channel may come back by the name of its resource alone. */
export function channelKind(
  { client, service, cluster }: Pick<Term, 'client' | 'service' | 'cluster'>,
  isRevivable: boolean,
): DeclaredKind<HeartbeatChannel, ChannelDeliveries> {
  /** Null: it is gone meanwhile. */
  const findDeliveries = async (channelId: string) =>
    (await service.findChannelDeliveries(cluster, channelId))[0] ?? null

  async function declare(object: HeartbeatChannel, resource: Place, project: ProjectRequest) {
    const read = readChannel(object)
    if ('faults' in read) throw new StalledChannel('InvalidSpec', read.faults.join('; '))
    const { uid, generation } = object.metadata
    const secret = read.secretRef === null ? null : await readSecret(client, resource.namespace, read.secretRef)
    const given = read.readConfig(secret?.value ?? null)
    if ('faults' in given) throw new StalledChannel('InvalidSpec', given.faults.join('; '))
    const { kind, name, events, muted, afterSeconds } = read
    const signing = await readSigningSecret(client, resource.namespace, read)
    const { channelId, change } = await service.declareChannel({
      ...{ resource, project, kind, name, events, muted, afterSeconds, isRevivable },
      config: given.config,
      signingSecret: signing?.value,
      version: [`${uid}.${generation}`, secret?.version ?? '', ...(signing === null ? [] : [signing.version])].join(
        '/',
      ),
    })
    const news = change === 'unchanged' ? null : CHANGES[change]
    return { facts: await findDeliveries(channelId), news }
  }

  return {
    kind: CHANNEL_KIND,
    type: HEARTBEAT_CHANNELS,
    what: 'channel',
    controller: 'heartbeat-channels',
    synced: 'the service holds this specification, and the value of its Secret if it has one',
    problem: 'Delivering',
    idOf: ({ channelId }) => channelId,
    declare,
    toStalled,
    // A resource that cannot be declared must not go on receiving the events of a project that its namespace has left.
    onStalled: (resource, project) => service.leaveOtherProject({ resource, project }),
    find: async ({ status }) => (status?.channelId === undefined ? null : findDeliveries(status.channelId)),
    describe: describeChannel,
    async list() {
      const found = await service.findChannelDeliveries(cluster)
      return found.map((one) => ({ ...one, isShown: (object) => !isOutdated(object, one, service.now()) }))
    },
    retire: (place, other) => service.retireChannel(place, other),
  }
}

function toStalled(error: AppError, { spec }: HeartbeatChannel): StalledChannel | null {
  if (error.field === 'sealingKey') return new StalledChannel('SealingKeyMissing', error.message)
  switch (error.code) {
    case 'invalid_request': {
      const kind = CHANNEL_KINDS.find((kind) => spec[kind] !== undefined)
      const toField = (field: string) => field.replace('config', `spec.${kind}`)
      return new StalledChannel('InvalidSpec', describeError(error, toField).text)
    }
    case 'conflict':
      return new StalledChannel('ChannelRefused', error.message)
    case 'channel_in_use':
      // The names of checks of another project are not for this namespace.
      return new StalledChannel('ChannelRefused', 'checks of its former project have chosen the channel')
    default:
      return null
  }
}
