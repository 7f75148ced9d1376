/** Channels: where events go (design, sections 3.5 and 5). */

import { createChannel as create } from '../../channels/create-channel.ts'
import { type ChannelRecord, getChannel as get, listChannels as list, showFor } from '../../channels/find-channels.ts'
import { removeChannel as remove } from '../../channels/remove-channel.ts'
import { rotateSecret as rotate } from '../../channels/rotate-secret.ts'
import { testChannel as test } from '../../channels/test-channel.ts'
import { updateChannel as update } from '../../channels/update-channel.ts'
import type { ChannelKind } from '../../domain/channel.ts'
import { inPieces } from '../../domain/page.ts'
import {
  Channel,
  ChannelList,
  ChannelListQuery,
  ChannelParams,
  ChannelUpdate,
  CreatedChannel,
  NewChannel,
  QueuedTest,
  RemoveChannelQuery,
  RotatedSecret,
  readConfig,
} from './channels.schema.ts'
import { given, readEntries, toIso, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listChannels = endpoint({
  id: 'listChannels',
  summary: 'List the channels without their secrets',
  query: ChannelListQuery,
  status: 200,
  response: ChannelList,
  async handle({ context, caller, query }) {
    const pieces = inPieces(toPageRequest(query), (piece) => list(context, caller, piece))
    const present = (channel: ChannelRecord) => presentChannel(showFor(caller.scope, channel))
    const { entries, next_cursor } = await readEntries('channels', pieces, present)
    return { channels: entries, next_cursor }
  },
})

export const createChannel = endpoint({
  id: 'createChannel',
  summary: 'Create a channel',
  body: NewChannel,
  status: 201,
  response: CreatedChannel,
  errors: ['not_found', 'conflict'],
  async handle({ context, caller, body }) {
    const { kind, name, project_id: projectId, events, muted, config } = body
    const fields = { kind, name, config, muted, ...given({ projectId, events }) }
    const { secret, ...channel } = await create(context, caller, fields)
    return { ...presentChannel(channel), ...(secret === null ? {} : { secret }) }
  },
})

export const getChannel = endpoint({
  id: 'getChannel',
  summary: 'Get a channel without its secrets',
  params: ChannelParams,
  status: 200,
  response: Channel,
  handle: async ({ context, caller, params }) =>
    presentChannel(showFor(caller.scope, await get(context, caller, params.id))),
})

export const updateChannel = endpoint({
  id: 'updateChannel',
  summary: 'Change a channel. Omitted fields, and URLs that are sent back as they are shown, keep their values',
  params: ChannelParams,
  body: ChannelUpdate,
  status: 200,
  response: Channel,
  errors: ['conflict', 'channel_in_use'],
  async handle({ context, caller, params, body }) {
    const { kind, name, project_id: projectId, events, muted, config } = body
    const readAs = config === undefined ? undefined : (stored: ChannelKind) => readConfig(stored, config)
    const changes = given({ kind, name, projectId, events, muted, readConfig: readAs })
    return presentChannel(await update(context, caller, params.id, changes))
  },
})

export const removeChannel = endpoint({
  id: 'removeChannel',
  summary: 'Remove a channel and its deliveries',
  params: ChannelParams,
  query: RemoveChannelQuery,
  status: 204,
  response: null,
  errors: ['conflict', 'channel_in_use'],
  handle: ({ context, caller, params, query }) => remove(context, caller, params.id, { force: query.force === 'true' }),
})

export const testChannel = endpoint({
  id: 'testChannel',
  summary: 'Send a test to a channel, muted or not; its delivery has the outcome',
  params: ChannelParams,
  status: 202,
  response: QueuedTest,
  errors: ['too_many_requests'],
  async handle({ context, caller, params }) {
    const { deliveryId } = await test(context, caller, params.id)
    return { delivery_id: deliveryId }
  },
})

export const rotateSecret = endpoint({
  id: 'rotateSecret',
  summary: 'Give a webhook a new signing secret; the previous one stays valid for 24 hours',
  params: ChannelParams,
  status: 200,
  response: RotatedSecret,
  errors: ['conflict'],
  handle: ({ context, caller, params }) => rotate(context, caller, params.id),
})

function presentChannel(channel: ChannelRecord) {
  const { id, kind, name, projectId, events, muted, config, managedBy, warnings, createdAt } = channel
  return {
    id,
    kind,
    name,
    project_id: projectId,
    events: [...events],
    muted,
    config,
    managed_by: managedBy,
    ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    created_at: toIso(createdAt),
  }
}
