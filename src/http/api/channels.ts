/** Channels: where events go (design, sections 3.5 and 5). */

import { createChannel as create } from '../../channels/create-channel.ts'
import { type ChannelRecord, getChannel as get, listChannels as list, showFor } from '../../channels/find-channels.ts'
import { removeChannel as remove } from '../../channels/remove-channel.ts'
import { rotateSecret as rotate } from '../../channels/rotate-secret.ts'
import { testChannel as test } from '../../channels/test-channel.ts'
import { updateChannel as update } from '../../channels/update-channel.ts'
import type { ChannelKind } from '../../domain/channel.ts'
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
import { readList } from './list-page.ts'
import { inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

export const listChannels = endpoint({
  summary: 'List the channels without their secrets',
  query: ChannelListQuery,
  response: ChannelList,
  handle({ context, caller, query }) {
    const show = (channel: ChannelRecord) => toShown(showFor(caller.scope, channel))
    return readList('channels', Channel, query, (piece) => list(context, caller, piece), show)
  },
})

export const createChannel = endpoint({
  summary: 'Create a channel',
  body: NewChannel,
  status: 201,
  response: CreatedChannel,
  errors: ['not_found', 'conflict'],
  async handle({ context, caller, body }) {
    const { secret, ...channel } = await create(context, caller, inCamelCase(body))
    return { ...toShown(channel), ...(secret === null ? {} : { secret }) }
  },
})

export const getChannel = endpoint({
  summary: 'Get a channel without its secrets',
  params: ChannelParams,
  response: Channel,
  handle: async ({ context, caller, params }) => toShown(showFor(caller.scope, await get(context, caller, params.id))),
})

export const updateChannel = endpoint({
  summary: 'Change a channel. Omitted fields, and URLs that are sent back as they are shown, keep their values',
  params: ChannelParams,
  body: ChannelUpdate,
  response: Channel,
  errors: ['conflict', 'channel_in_use'],
  async handle({ context, caller, params, body }) {
    const { config, ...changes } = inCamelCase(body)
    const readAs = config === undefined ? {} : { readConfig: (stored: ChannelKind) => readConfig(stored, config) }
    return toShown(await update(context, caller, params.id, { ...changes, ...readAs }))
  },
})

export const removeChannel = endpoint({
  summary: 'Remove a channel and its deliveries',
  params: ChannelParams,
  query: RemoveChannelQuery,
  errors: ['conflict', 'channel_in_use'],
  handle: ({ context, caller, params, query }) => remove(context, caller, params.id, { force: query.force === 'true' }),
})

export const testChannel = endpoint({
  summary: 'Send a test to a channel, muted or not; its delivery has the outcome',
  params: ChannelParams,
  status: 202,
  response: QueuedTest,
  errors: ['too_many_requests'],
  handle: ({ context, caller, params }) => test(context, caller, params.id),
})

export const rotateSecret = endpoint({
  summary: 'Give a webhook a new signing secret; the previous one stays valid for 24 hours',
  params: ChannelParams,
  response: RotatedSecret,
  errors: ['conflict'],
  handle: ({ context, caller, params }) => rotate(context, caller, params.id),
})

/** Warnings are shown where there are some. */
function toShown({ kind, warnings, ...channel }: ChannelRecord) {
  return { ...channel, kind, ...(warnings.length === 0 ? {} : { warnings }) }
}
