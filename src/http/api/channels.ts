/** Channels: where events go (design, sections 3.5 and 5). */

import { createChannel as create } from '../../channels/create-channel.ts'
import { type ChannelRecord, getChannel as get, listChannels as list } from '../../channels/find-channels.ts'
import { hidePath } from '../../channels/present-config.ts'
import { removeChannel as remove } from '../../channels/remove-channel.ts'
import { rotateSecret as rotate } from '../../channels/rotate-secret.ts'
import { testChannel as test } from '../../channels/test-channel.ts'
import { updateChannel as update } from '../../channels/update-channel.ts'
import { type Caller, includesScope } from '../../domain/access.ts'
import type { ChannelKind } from '../../domain/channel.ts'
import { readConfig } from './channel-config.schema.ts'
import {
  Channel,
  ChannelList,
  ChannelParams,
  ChannelUpdate,
  CreatedChannel,
  NewChannel,
  QueuedTest,
  RotatedSecret,
} from './channels.schema.ts'
import { PageQuery } from './fields.ts'
import { given } from './given.ts'
import { presentNext, toIso, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listChannels = endpoint({
  id: 'listChannels',
  summary: 'List the channels, without their secrets',
  query: PageQuery,
  status: 200,
  answer: ChannelList,
  async handle({ context, caller, query }) {
    const page = await list(context, caller, toPageRequest(query))
    return { channels: page.rows.map((channel) => presentFor(caller, channel)), ...presentNext(page) }
  },
})

export const createChannel = endpoint({
  id: 'createChannel',
  summary: 'Create a channel',
  body: NewChannel,
  status: 201,
  answer: CreatedChannel,
  refuses: ['not_found', 'conflict'],
  async handle({ context, caller, body }) {
    const { kind, name, project_id: projectId, events, muted } = body
    const config = readConfig(kind, body.config)
    const { secret, ...channel } = await create(context, caller, {
      name,
      config,
      muted,
      ...given({ projectId, events }),
    })
    return { ...presentChannel(channel), ...(secret === null ? {} : { secret }) }
  },
})

export const getChannel = endpoint({
  id: 'getChannel',
  summary: 'Get a channel, without its secrets',
  params: ChannelParams,
  status: 200,
  answer: Channel,
  async handle({ context, caller, params }) {
    return presentFor(caller, await get(context, caller, params.id))
  },
})

export const updateChannel = endpoint({
  id: 'updateChannel',
  summary: 'Change a channel; omitted fields, and what comes back as it is shown, keep their values',
  params: ChannelParams,
  body: ChannelUpdate,
  status: 200,
  answer: Channel,
  refuses: ['conflict'],
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
  status: 204,
  answer: null,
  refuses: ['conflict'],
  async handle({ context, caller, params }) {
    await remove(context, caller, params.id)
  },
})

export const testChannel = endpoint({
  id: 'testChannel',
  summary: 'Send a test through a channel, muted or not; its delivery says what became of it',
  params: ChannelParams,
  status: 202,
  answer: QueuedTest,
  async handle({ context, caller, params }) {
    const { deliveryId } = await test(context, caller, params.id)
    return { delivery_id: deliveryId }
  },
})

export const rotateSecret = endpoint({
  id: 'rotateSecret',
  summary: 'Give a webhook a new signing secret; the one before it stays valid for a day',
  params: ChannelParams,
  status: 200,
  answer: RotatedSecret,
  refuses: ['conflict'],
  handle: ({ context, caller, params }) => rotate(context, caller, params.id),
})

/** Many services take the path of a webhook for its credential: who may not change the channel sees its origin. */
function presentFor({ scope }: Caller, channel: ChannelRecord) {
  const { config } = channel
  if (config?.kind !== 'webhook' || includesScope(scope, 'admin')) return presentChannel(channel)
  return presentChannel({ ...channel, config: { ...config, url: hidePath(config.url) } })
}

function presentChannel(channel: ChannelRecord) {
  const { id, kind, name, projectId, events, muted, managedBy, createdAt } = channel
  return {
    id,
    kind,
    name,
    project_id: projectId,
    events: [...events],
    muted,
    config: presentConfig(channel.config),
    managed_by: managedBy,
    created_at: toIso(createdAt),
  }
}

/** Field by field: the kind is told beside it. */
function presentConfig(config: ChannelRecord['config']) {
  switch (config?.kind) {
    case undefined:
      return null
    case 'webhook':
    case 'slack':
      return { url: config.url }
    case 'alertmanager':
      return { urls: [...config.urls], labels: config.labels }
    case 'email':
      return { to: [...config.to] }
  }
}
