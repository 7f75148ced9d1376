/** Channels: where events go (design, sections 3.5 and 5). */

import { z } from 'zod'
import { createChannel as create } from '../../channels/create-channel.ts'
import { type ChannelRecord, getChannel as get, listChannels as list, showFor } from '../../channels/find-channels.ts'
import { listOf } from '../../channels/kinds/fields.ts'
import { KINDS } from '../../channels/kinds/index.ts'
import { removeChannel as remove } from '../../channels/remove-channel.ts'
import { rotateSecret as rotate } from '../../channels/rotate-secret.ts'
import { testChannel as test } from '../../channels/test-channel.ts'
import { updateChannel as update } from '../../channels/update-channel.ts'
import {
  AFTER_SECONDS,
  CHANNEL_KINDS,
  CHANNEL_MANAGERS,
  type ChannelKind,
  INCIDENT_KINDS,
} from '../../domain/channel.ts'
import { rule } from '../../domain/errors.ts'
import { CHECK_EVENT_TYPES, STANDARD_EVENT_TYPES } from '../../domain/event.ts'
import { parsePart } from './faults.ts'
import * as field from './fields.ts'
import { listEndpoint, showRows } from './list-page.ts'
import { refTo } from './openapi-schemas.ts'
import { inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

// Requests ---------------------------------------------------------------------------------------------------------------

const kind = () => field.oneOf(CHANNEL_KINDS)
const events = () =>
  listOf(field.oneOf(CHECK_EVENT_TYPES), CHECK_EVENT_TYPES.length, `of ${CHECK_EVENT_TYPES.join(', ')}`)
const muted = () => z.boolean(rule('must be true or false'))
const afterSeconds = () => field.integerWithin(AFTER_SECONDS)

type ByKind<Value> = Readonly<Record<ChannelKind, Value>>

/** For each kind, such as `WebhookConfigInput`. */
const CONFIG_INPUTS = forKinds((kind) => KINDS[kind].config.input.meta({ id: `${titleOf(kind)}ConfigInput` }))

const KIND = 'Where the channel sends. It cannot change.'
const PROJECT = 'The project whose checks notify the channel. Null: the checks of the whole organization.'
const EVENTS = `Events that the channel receives. Of the kinds ${INCIDENT_KINDS.join(' and ')} it gets check.down if that is among them, and always the ends of incidents. Default: ${STANDARD_EVENT_TYPES.join(', ')}; of these kinds without check.warned.`
const MUTED = 'A muted channel receives tests only. Muting fails its pending deliveries.'
const AFTER =
  'Seconds after the beginning of an incident. With more than 0 the channel is notified of a check that is down still at that time, if no one has acknowledged that, and of its recovery if it was notified; of nothing else. 0: at once.'

/** The response to a wrong kind reports nothing else: it decides what the rest must be. */
export const NewChannel = unionByKind('NewChannel', (kind) =>
  z.strictObject({
    kind: z.literal(kind).meta({ description: KIND }),
    name: field.name('channel'),
    project_id: field.uuid(PROJECT).nullable().optional(),
    events: events().optional().meta({ description: EVENTS }),
    muted: muted().default(false).meta({ description: MUTED }),
    after_seconds: afterSeconds().default(0).meta({ description: AFTER }),
    config: CONFIG_INPUTS[kind].meta({ description: 'How to reach the receiver.' }),
  }),
)

export const ChannelUpdate = z
  .strictObject({
    kind: kind().optional().meta({ description: KIND }),
    name: field.name('channel').optional(),
    project_id: field.uuid(PROJECT).nullable().optional(),
    events: events().optional().meta({ description: EVENTS }),
    muted: muted().optional().meta({ description: MUTED }),
    after_seconds: afterSeconds().optional().meta({ description: AFTER }),
    // Read by `readConfig`: the kind is in the database.
    config: z
      .unknown()
      .optional()
      .meta({
        description: 'How to reach the receiver, for the kind of the channel.',
        anyOf: Object.values(CONFIG_INPUTS).map(refTo),
      }),
  })
  .meta({ id: 'ChannelUpdate', description: 'Omitted fields keep their values.' })

/** Reads `body.config` as the config of this kind. Throws AppError `invalid_request`. */
export function readConfig(kind: ChannelKind, config: unknown): object {
  return parsePart('body', z.object({ config: KINDS[kind].config.input }), { config }).config
}

export const ChannelListQuery = field.pageQuery('channels')

export const ChannelParams = field.idOf('channel')

// Responses --------------------------------------------------------------------------------------------------------------

const fields = {
  id: field.id(),
  name: z.string(),
  project_id: field.idOrNull(PROJECT),
  events: z.array(z.enum(CHECK_EVENT_TYPES)).meta({ description: EVENTS }),
  muted: z.boolean().meta({ description: MUTED }),
  after_seconds: field.integer(AFTER),
  managed_by: z.enum(CHANNEL_MANAGERS).meta({
    description:
      '`kubernetes`: a HeartbeatChannel declares it. `configuration`: the channel of ALERTMANAGER_URL. The API changes neither.',
  }),
  kubernetes: z
    .object({ cluster: z.string(), namespace: z.string(), name: z.string() })
    .optional()
    .meta({ description: 'The HeartbeatChannel that declares it. Left out where none does.' }),
  warnings: z
    .array(z.string())
    .optional()
    .meta({ description: 'Why nothing can be delivered to the channel at the moment, and what to do.' }),
  created_at: field.instant('When the channel was created.'),
}

/** Such as `WebhookConfig`. */
const CONFIGS = forKinds((kind) => KINDS[kind].config.shown.meta({ id: `${titleOf(kind)}Config` }))
const SHOWN_CONFIG =
  'Without secrets. Null when it is sealed under another SECRET_KEY: set that in PREVIOUS_SECRET_KEYS, or update the channel with its whole config (a webhook then has a new signing secret; rotate it to see it).'
const byKind = (kind: ChannelKind) => ({
  kind: z.literal(kind),
  config: CONFIGS[kind].nullable().meta({ description: SHOWN_CONFIG }),
})

export const Channel = unionByKind('Channel', (kind) => z.object({ ...fields, ...byKind(kind) }))

export const CreatedChannel = unionByKind('CreatedChannel', (kind) =>
  z.object({
    ...fields,
    ...byKind(kind),
    secret: z
      .string()
      .optional()
      .meta({ description: 'Of a webhook: the key to verify its signatures with. It is not shown again.' }),
  }),
)

// Kinds ------------------------------------------------------------------------------------------------------------------

function forKinds<Value>(make: (kind: ChannelKind) => Value): ByKind<Value> {
  return Object.fromEntries(CHANNEL_KINDS.map((kind) => [kind, make(kind)])) as ByKind<Value>
}

function titleOf(kind: ChannelKind): string {
  return kind.charAt(0).toUpperCase() + kind.slice(1)
}

function faultOfKind({ input }: { input?: unknown }): string | undefined {
  return rule(`must be one of ${CHANNEL_KINDS.join(', ')}`).error({ input: (input as { kind?: unknown }).kind })
}

/** `NewChannel` has the members `NewWebhookChannel`, `NewSlackChannel` ...: clients tell them apart by `kind`. */
function unionByKind<Member extends z.ZodObject<{ kind: z.ZodLiteral<ChannelKind> } & z.ZodRawShape>>(
  id: string,
  make: (kind: ChannelKind) => Member,
) {
  const members = CHANNEL_KINDS.map((kind) => make(kind).meta({ id: id.replace('Channel', `${titleOf(kind)}Channel`) }))
  return z.discriminatedUnion('kind', members as unknown as [Member, ...Member[]], { error: faultOfKind }).meta({ id })
}

export const listChannels = listEndpoint({
  list: 'channels',
  entry: Channel,
  summary: 'List the channels without their secrets',
  query: ChannelListQuery,
  read: async ({ context, caller }, piece) =>
    showRows(await list(context, caller, piece), (channel) => toShown(showFor(caller.scope, channel))),
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
  errors: ['conflict', 'channel_in_use', 'managed_by_kubernetes'],
  async handle({ context, caller, params, body }) {
    const { config, ...changes } = inCamelCase(body)
    const readAs = config === undefined ? {} : { readConfig: (stored: ChannelKind) => readConfig(stored, config) }
    return toShown(await update(context, caller, params.id, { ...changes, ...readAs }))
  },
})

export const removeChannel = endpoint({
  summary: 'Remove a channel and its deliveries',
  params: ChannelParams,
  query: z.object({
    force: field.oneOf(['true', 'false']).optional().meta({
      description:
        'true: also a channel that some checks chose alone (otherwise 409, `channel_in_use`). These checks notify all channels again.',
    }),
  }),
  errors: ['conflict', 'channel_in_use', 'managed_by_kubernetes'],
  handle: ({ context, caller, params, query }) => remove(context, caller, params.id, { force: query.force === 'true' }),
})

export const testChannel = endpoint({
  summary: 'Send a test to a channel, muted or not; its delivery has the outcome',
  params: ChannelParams,
  status: 202,
  response: field.shape('QueuedTest', {
    delivery_id: field.id('The delivery has the outcome of the test.'),
  }),
  errors: ['too_many_requests'],
  handle: ({ context, caller, params }) => test(context, caller, params.id),
})

export const rotateSecret = endpoint({
  summary: 'Give a webhook a new signing secret; the previous one stays valid for 24 hours',
  params: ChannelParams,
  response: field.shape('RotatedSecret', {
    secret: field.string('The new signing secret. It is not shown again. For 24 hours the previous secret signs, too.'),
  }),
  errors: ['conflict', 'managed_by_kubernetes'],
  handle: ({ context, caller, params }) => rotate(context, caller, params.id),
})

/** Warnings are shown where there are some, and its resource where there is one. */
function toShown({ kind, warnings, kubernetes, ...channel }: ChannelRecord) {
  return { ...channel, kind, ...(warnings.length === 0 ? {} : { warnings }), ...(kubernetes && { kubernetes }) }
}
