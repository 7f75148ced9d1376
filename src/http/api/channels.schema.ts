import { z } from 'zod'
import { CHANNEL_KINDS, CHANNEL_MANAGERS } from '../../domain/channel.ts'
import { CHECK_EVENT_TYPES, STANDARD_EVENT_TYPES } from '../../domain/event.ts'
import { CONFIGS, config, listOf, says } from './channel-config.schema.ts'
import * as field from './fields.ts'

// Requests ---------------------------------------------------------------------------------------------------------------

const kind = () => field.oneOf(CHANNEL_KINDS)
const events = () =>
  listOf(field.oneOf(CHECK_EVENT_TYPES), CHECK_EVENT_TYPES.length, `of ${CHECK_EVENT_TYPES.join(', ')}`)
const muted = () => z.boolean(says('must be true or false'))

const KIND = 'What it is; it cannot change.'
const PROJECT = 'Whose checks it tells of. Null: those of the whole organization.'
const EVENTS = `What it is told. An alertmanager channel is told of alerts that fire when check.down is among them, and then always when they no longer do. Standard: ${STANDARD_EVENT_TYPES.join(', ')}.`
const MUTED = 'It is told nothing but tests. Muting gives up what was still to be delivered.'

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
      const result = CONFIGS[body.kind].safeParse(body.config)
      for (const issue of result.error?.issues ?? []) context.addIssue({ ...issue, path: ['config', ...issue.path] })
    },
    { when: ({ value }) => isJudgeable(value) },
  )
  .meta({ id: 'NewChannel' })

/** With a kind and a config, whatever else is wrong: all faults are told at once. */
function isJudgeable(value: unknown): boolean {
  const { kind, config } = (value ?? {}) as { kind?: unknown; config?: unknown }
  return (
    typeof kind === 'string' &&
    Object.hasOwn(CONFIGS, kind) &&
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

export const ChannelParams = field.idOf('channel')

// Answers ----------------------------------------------------------------------------------------------------------------

const fields = {
  id: z.string().meta({ format: 'uuid' }),
  kind: z.enum(CHANNEL_KINDS),
  name: z.string(),
  project_id: z.string().nullable().meta({ format: 'uuid', description: PROJECT }),
  events: z.array(z.enum(CHECK_EVENT_TYPES)).meta({ description: EVENTS }),
  muted: z.boolean().meta({ description: MUTED }),
  config: z
    .union([
      z.object({ url: z.string() }).meta({ title: 'webhook, slack' }),
      z.object({ urls: z.array(z.string()), labels: z.record(z.string(), z.string()) }).meta({ title: 'alertmanager' }),
      z.object({ to: z.array(z.string()) }).meta({ title: 'email' }),
    ])
    .nullable()
    .meta({
      description:
        'Without what is secret. Null: it is sealed under another SECRET_KEY; set that in PREVIOUS_SECRET_KEYS, or update the channel with its whole config (a webhook then signs with a new secret, which rotating it shows).',
    }),
  managed_by: z
    .enum(CHANNEL_MANAGERS)
    .meta({ description: '`configuration`: made by ALERTMANAGER_URL, and changed there.' }),
  created_at: field.instant('When the channel was made.'),
}

export const Channel = z.object(fields).meta({ id: 'Channel' })

export const CreatedChannel = z
  .object({
    ...fields,
    secret: z
      .string()
      .optional()
      .meta({ description: 'Of a webhook: the key that its signatures are verified with. Shown this once.' }),
  })
  .meta({ id: 'CreatedChannel' })

export const ChannelList = z
  .object({ channels: z.array(Channel), next_cursor: field.nextCursor() })
  .meta({ id: 'ChannelList' })

export const QueuedTest = z
  .object({ delivery_id: z.string().meta({ format: 'uuid', description: 'Look for it among the deliveries.' }) })
  .meta({ id: 'QueuedTest' })

export const RotatedSecret = z
  .object({
    secret: z.string().meta({
      description: 'Signs from now on. Shown this once. The one before it signs along for 24 hours.',
    }),
  })
  .meta({ id: 'RotatedSecret' })
