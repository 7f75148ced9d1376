/**
 * The spec and the status of a HeartbeatChannel: the source of the definition that the API server enforces
 * (definition.ts), and of how the operator reads one. Each kind has the fields of its config in the API
 * (channels/kinds/<kind>/config.ts) in camelCase, but for its secret, which comes from a Secret.
 */

import { z } from 'zod'
import { KINDS } from '../../channels/kinds/index.ts'
import {
  AFTER_SECONDS,
  CHANNEL_KINDS,
  type ChannelKind,
  INCIDENT_KINDS,
  standardEventsOf,
} from '../../domain/channel.ts'
import { CHECK_EVENT_TYPES, STANDARD_EVENT_TYPES } from '../../domain/event.ts'
import type { Condition, KubernetesObject } from '../../kubernetes/objects.ts'
import { CHANNEL_LABEL, OBJECT_NAME_LENGTH } from '../names.ts'
import { describeIssue, integer, oneOf, type Rule, SUBDOMAIN, setOf, shaped, text, withRules } from './fields.ts'
import { displayName, nameOf } from './spec.ts'
import { begin, HANDLED } from './status.ts'

/** What a person has to correct first: `Ready` is False, `Stalled` True, both with the reason. */
export const CHANNEL_STALLED = [
  'InvalidSpec',
  'SecretNotFound',
  'SecretForbidden',
  'SealingKeyMissing',
  'ProjectNotAllowed',
  'ProjectNotFound',
  'ChannelRefused',
  'ManagedElsewhere',
] as const
export type ChannelStalledReason = (typeof CHANNEL_STALLED)[number]

export const DELIVERING_REASONS = ['Delivered', 'NotDelivered', 'NothingSent', 'Muted'] as const

const toCamelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())

const configShapeOf = (kind: ChannelKind) => (KINDS[kind].config.input as unknown as z.ZodObject).shape

const secretRef = z
  .object({
    name: text({
      max: OBJECT_NAME_LENGTH,
      description: `Name of the Secret, in this namespace. It must have the label ${CHANNEL_LABEL}: "true".`,
      rules: [shaped(SUBDOMAIN, 'must be the name of a Secret, such as slack-webhook')],
    }),
    key: text({
      max: OBJECT_NAME_LENGTH,
      description: 'Key of the Secret that holds the value.',
      rules: [shaped('[-._a-zA-Z0-9]+', 'must be a key of a Secret: letters, digits, -, _ and .')],
    }),
  })
  .meta({ 'x-kubernetes-map-type': 'atomic' })

const SIGNING =
  'Where the secret is that signs the requests: whsec_ and 24 to 64 bytes in base64. Default: one that is shown to no one.'

function kindSpec(kind: ChannelKind) {
  const { inSecret, title, secret } = KINDS[kind].config
  const shape = configShapeOf(kind)
  const fields = Object.entries(shape as Record<string, z.ZodType>).flatMap(([name, field]) => {
    if (name !== inSecret?.field) return [[toCamelCase(name), field] as const]
    return inSecret.orField === name ? [[name, field.optional()] as const] : []
  })
  if (inSecret === undefined) return z.object(Object.fromEntries(fields)).meta({ description: `${title}.` })
  const { field, orField } = inSecret
  const reference = secretRef.meta({ description: `Where the value of ${toCamelCase(field)} is.` })
  const isRequired = orField === undefined && !(shape[field] as z.ZodType).safeParse(undefined).success
  const rules: Rule<Record<string, unknown>>[] =
    orField === undefined
      ? []
      : [
          {
            cel: `has(self.${orField}) != has(self.secretRef)`,
            holds: (spec) => (spec[orField] === undefined) !== (spec.secretRef === undefined),
            message: `must have either ${orField} or secretRef`,
            reason: 'FieldValueInvalid',
          },
        ]
  const signing = secretRef.meta({ description: SIGNING }).optional()
  const whole = z.object({
    ...Object.fromEntries(fields),
    secretRef: isRequired ? reference : reference.optional(),
    ...(secret === undefined ? {} : { signingSecretRef: signing }),
  }) as unknown as z.ZodType<Record<string, unknown>, Record<string, unknown>>
  return withRules(whole, rules, { description: `${title}.` })
}

const kinds = Object.fromEntries(CHANNEL_KINDS.map((kind) => [kind, kindSpec(kind).optional()])) as unknown as Record<
  ChannelKind,
  z.ZodOptional<z.ZodType<Record<string, unknown>>>
>

const everyKind = (say: (kind: ChannelKind) => string, join: string) => CHANNEL_KINDS.map(say).join(join)
const kindsOf = (spec: object) => CHANNEL_KINDS.filter((kind) => (spec as Record<string, unknown>)[kind] !== undefined)

export const ChannelSpec = withRules(
  z.object(
    {
      displayName: displayName.optional(),
      events: setOf(oneOf(CHECK_EVENT_TYPES, 'Type of an event.'), {
        max: CHECK_EVENT_TYPES.length,
        of: 'an event',
        description: `Events that the channel receives. Of the kinds ${INCIDENT_KINDS.join(' and ')} it gets check.down if that is among them, and always the ends of incidents. Default: ${STANDARD_EVENT_TYPES.join(', ')}; of these kinds without check.warned.`,
      })
        .min(1, 'must have an event')
        .optional(),
      muted: z
        .boolean('must be true or false')
        .optional()
        .meta({ description: 'A muted channel receives tests only. Muting fails its pending deliveries.' }),
      afterSeconds: integer({
        ...AFTER_SECONDS,
        description:
          'Seconds after the beginning of an incident. With more than 0 the channel is notified of a check that is down still at that time, if no one has acknowledged that, and of its recovery if it was notified; of nothing else. Default: 0, at once.',
      }).optional(),
      ...kinds,
    },
    'must be an object',
  ),
  [
    {
      cel: `${everyKind((kind) => `(has(self.${kind}) ? 1 : 0)`, ' + ')} == 1`,
      holds: (spec) => kindsOf(spec).length === 1,
      message: `must have exactly one of ${everyKind((kind) => kind, ', ')}`,
      reason: 'FieldValueInvalid',
    },
    {
      cel: everyKind((kind) => `has(self.${kind}) == has(oldSelf.${kind})`, ' && '),
      message: 'the kind of a channel cannot be changed: delete this HeartbeatChannel and create it again',
      isSentence: true,
      reason: 'FieldValueForbidden',
    },
  ],
  { description: 'Where events are sent: exactly one kind.' },
)

export const ChannelStatus = z
  .object({
    ...begin({
      types: 'Ready, Reconciling, Stalled or Delivering',
      reasons: `The reason in one word, for programs; further values may be added. Ready: Synced, ProgressingWithRetry, Uninstalled, or as Stalled; Reconciling: ProgressingWithRetry; Stalled: ${CHANNEL_STALLED.join(', ')}; Delivering: ${DELIVERING_REASONS.join(', ')}.`,
      about: 'the resource or its deliveries',
      meanings:
        'Ready: the service holds this spec, and the value of the Secret. Reconciling: the operator tries again; Stalled: a person must change something first. Delivering: what is sent arrives; False when a delivery has waited for five minutes.',
    }),
    channelId: text({ max: 36, description: 'Id of the channel in the management API, for people and programs.' }),
    kind: text({ max: 63, description: 'The kind of the channel. Further values may be added.' }),
    lastDeliveryTime: z.string().meta({
      description: 'When an event was last delivered. The operator writes a new time at most once a minute.',
      format: 'date-time',
    }),
    ...HANDLED,
  })
  .partial()
  .meta({ description: 'What the operator observed. Only the operator writes it.' })

export interface HeartbeatChannel extends KubernetesObject {
  readonly spec: z.input<typeof ChannelSpec>
  readonly status?: HeartbeatChannelStatus
}

export type HeartbeatChannelStatus = Readonly<
  Omit<z.output<typeof ChannelStatus>, 'conditions'> & { conditions?: readonly Condition[] }
>

export interface SecretRef {
  readonly name: string
  readonly key: string
}

/** What a HeartbeatChannel declares, with defaults. */
export interface ReadChannel {
  readonly kind: ChannelKind
  readonly name: string
  readonly events: z.output<typeof ChannelSpec>['events'] & {}
  readonly muted: boolean
  readonly afterSeconds: number
  /** Null: the channel needs no Secret. */
  readonly secretRef: SecretRef | null
  /** Null: requests are not signed, or with a secret that is shown to no one. */
  readonly signingSecretRef: SecretRef | null
  /** `secret`: the value of `secretRef`. Returns the config, or what is wrong with it, without a value. */
  readConfig(secret: string | null): { readonly config: object } | { readonly faults: readonly string[] }
}

/** Validates again what the API server validated: a resource may have been stored under an older definition. */
export function readChannel({
  metadata,
  spec,
}: Pick<HeartbeatChannel, 'metadata' | 'spec'>): ReadChannel | { readonly faults: readonly string[] } {
  const parsed = ChannelSpec.safeParse(spec)
  if (!parsed.success) return { faults: parsed.error.issues.map((issue) => describeIssue('spec', issue)) }
  const { displayName: given, events, muted = false, afterSeconds = 0 } = parsed.data
  const kind = kindsOf(parsed.data)[0]!
  const {
    secretRef: reference = null,
    signingSecretRef: signing = null,
    ...fields
  } = (spec as Record<ChannelKind, Record<string, unknown>>)[kind]
  return {
    kind,
    name: given?.trim() ?? nameOf(metadata.name),
    events: events ?? [...standardEventsOf(kind)],
    muted,
    afterSeconds,
    secretRef: reference as SecretRef | null,
    signingSecretRef: signing as SecretRef | null,
    readConfig: (secret) => readConfig(kind, fields, reference as SecretRef | null, secret),
  }
}

function readConfig(kind: ChannelKind, fields: Record<string, unknown>, from: SecretRef | null, secret: string | null) {
  const { input, inSecret } = KINDS[kind].config
  const names = Object.keys(configShapeOf(kind))
  const written = names.flatMap((name) => (toCamelCase(name) in fields ? [[name, fields[toCamelCase(name)]]] : []))
  const exposed = names.find((name) => hasCredentials(Object.fromEntries(written)[name]))
  if (exposed !== undefined)
    return { faults: [`spec.${kind}.${toCamelCase(exposed)} must have no user and password: a manifest is no secret`] }
  const parsed = input.safeParse({
    ...Object.fromEntries(written),
    ...(secret === null ? {} : { [inSecret!.field]: secret }),
  })
  if (parsed.success) return { config: parsed.data }
  const faults = parsed.error.issues.map((issue) => {
    const isSecret = from !== null && issue.path[0] === inSecret?.field
    return isSecret
      ? `the value of the key ${from.key} of Secret ${from.name} ${issue.message}`
      : describeIssue(`spec.${kind}`, { ...issue, path: issue.path.map((part) => toCamelCase(String(part))) })
  })
  return { faults }
}

/** Whether it is a URL with a user or a password, or a list with one. */
function hasCredentials(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasCredentials)
  if (typeof value !== 'string' || !URL.canParse(value) || !/^https?:/i.test(value)) return false
  const { username, password } = new URL(value)
  return username !== '' || password !== ''
}
