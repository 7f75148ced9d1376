import { z } from 'zod'
import { listOf } from '../../channels/kinds/fields.ts'
import { KINDS } from '../../channels/kinds/index.ts'
import { CHANNEL_KINDS, CHANNEL_MANAGERS, type ChannelKind } from '../../domain/channel.ts'
import { rule } from '../../domain/errors.ts'
import { CHECK_EVENT_TYPES, STANDARD_EVENT_TYPES } from '../../domain/event.ts'
import { parsePart } from './faults.ts'
import * as field from './fields.ts'

// Requests ---------------------------------------------------------------------------------------------------------------

const kind = () => field.oneOf(CHANNEL_KINDS)
const events = () =>
  listOf(field.oneOf(CHECK_EVENT_TYPES), CHECK_EVENT_TYPES.length, `of ${CHECK_EVENT_TYPES.join(', ')}`)
const muted = () => z.boolean(rule('must be true or false'))

/** Any object: the schema to apply depends on the kind. */
const config = () =>
  z.looseObject({}, rule('must be an object')).meta({
    description: 'How to reach the receiver. The fields depend on the kind.',
    anyOf: CHANNEL_KINDS.map((title) => {
      const { $schema: _, ...schema } = z.toJSONSchema(KINDS[title].config.input, { io: 'input' })
      return { title, ...schema }
    }),
  })

const KIND = 'Where the channel sends. It cannot change.'
const PROJECT = 'The project whose checks notify the channel. Null: the checks of the whole organization.'
const EVENTS = `Events that the channel receives. An alertmanager channel gets alerts when check.down is among them, and always the ends of these alerts. Default: ${STANDARD_EVENT_TYPES.join(', ')}.`
const MUTED = 'A muted channel receives tests only. Muting fails its pending deliveries.'

export const NewChannel = z
  .strictObject({
    kind: kind().meta({ description: KIND }),
    name: field.name('channel'),
    project_id: field.uuid(PROJECT).nullable().optional(),
    events: events().optional().meta({ description: EVENTS }),
    muted: muted().default(false).meta({ description: MUTED }),
    config: config(),
  })
  .superRefine(
    (body, context) => {
      const result = KINDS[body.kind].config.input.safeParse(body.config)
      for (const issue of result.error?.issues ?? []) context.addIssue({ ...issue, path: ['config', ...issue.path] })
    },
    { when: ({ value }) => hasKindAndConfig(value) },
  )
  .meta({ id: 'NewChannel' })

/** Then its config is checked, whatever else is wrong, so that the response reports all faults. */
function hasKindAndConfig(value: unknown): boolean {
  const { kind, config } = (value ?? {}) as { kind?: unknown; config?: unknown }
  return (
    typeof kind === 'string' &&
    Object.hasOwn(KINDS, kind) &&
    typeof config === 'object' &&
    config !== null &&
    !Array.isArray(config)
  )
}

export const ChannelUpdate = z
  .strictObject({
    kind: kind().optional().meta({ description: KIND }),
    name: field.name('channel').optional(),
    project_id: field.uuid(PROJECT).nullable().optional(),
    events: events().optional().meta({ description: EVENTS }),
    muted: muted().optional().meta({ description: MUTED }),
    config: config().optional(),
  })
  .meta({ id: 'ChannelUpdate', description: 'Omitted fields keep their values.' })

/** Reads `body.config` as the config of this kind. Throws AppError `invalid`. */
export function readConfig(kind: ChannelKind, config: unknown): object {
  return parsePart('body', z.object({ config: KINDS[kind].config.input }), { config }).config
}

export const ChannelParams = field.idOf('channel')

// Responses --------------------------------------------------------------------------------------------------------------

const fields = {
  id: z.string().meta({ format: 'uuid' }),
  kind: z.enum(CHANNEL_KINDS),
  name: z.string(),
  project_id: z.string().nullable().meta({ format: 'uuid', description: PROJECT }),
  events: z.array(z.enum(CHECK_EVENT_TYPES)).meta({ description: EVENTS }),
  muted: z.boolean().meta({ description: MUTED }),
  config: z
    .union(CHANNEL_KINDS.map((title) => KINDS[title].config.shown.meta({ title })))
    .nullable()
    .meta({
      description:
        'Without secrets. Null when it is sealed under another SECRET_KEY: set that in PREVIOUS_SECRET_KEYS, or update the channel with its whole config (a webhook then has a new signing secret; rotate it to see it).',
    }),
  managed_by: z
    .enum(CHANNEL_MANAGERS)
    .meta({ description: '`configuration`: the channel of ALERTMANAGER_URL. The API cannot change it.' }),
  created_at: field.instant('When the channel was created.'),
}

export const Channel = z.object(fields).meta({ id: 'Channel' })

export const CreatedChannel = z
  .object({
    ...fields,
    secret: z
      .string()
      .optional()
      .meta({ description: 'Of a webhook: the key to verify its signatures with. It is not shown again.' }),
  })
  .meta({ id: 'CreatedChannel' })

export const ChannelList = z
  .object({ channels: z.array(Channel), next_cursor: field.nextCursor() })
  .meta({ id: 'ChannelList' })

export const QueuedTest = z
  .object({
    delivery_id: z.string().meta({ format: 'uuid', description: 'The delivery has the outcome of the test.' }),
  })
  .meta({ id: 'QueuedTest' })

export const RotatedSecret = z
  .object({
    secret: z.string().meta({
      description: 'The new signing secret. It is not shown again. For 24 hours the previous secret signs, too.',
    }),
  })
  .meta({ id: 'RotatedSecret' })
