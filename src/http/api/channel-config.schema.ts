/** The config of a channel, which is another for each kind. */

import { z } from 'zod'
import type { ConfigInput } from '../../channels/present-config.ts'
import { CHANNEL_KINDS, CHANNEL_LIMITS, type ChannelKind } from '../../domain/channel.ts'
import { isEmail } from '../../domain/email.ts'
import { isDecodable } from '../../runtime/percent.ts'
import { parsePart } from './faults.ts'

/** As in fields.ts: the rule in words that follow the field's name. */
export const says = (text: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? 'is required' : text),
})

const { urlLength, alertmanagerUrls, alertmanagerLabels, labelLength, emailRecipients } = CHANNEL_LIMITS

/** What URL would mend in silence (a line break in the middle, a scheme without slashes) is refused: it is most likely a mistake. */
const WEB_URL = /^https?:\/\/[^\s\p{C}/\\][^\s\p{C}]*$/iu

function isWebUrl(text: string): boolean {
  if (text.length > 2 * urlLength || Array.from(text).length > urlLength || !WEB_URL.test(text)) return false
  if (!URL.canParse(text)) return false
  const { username, password } = new URL(text)
  // Credentials are sent decoded, in a header.
  return !text.includes('#') && isDecodable(username) && isDecodable(password)
}

const webUrl = (rule: string, isFit: (text: string) => boolean, description: string) =>
  z.string(says(rule)).refine(isFit, says(rule)).meta({ maxLength: urlLength, description })

const URL_RULE = `must be an http or https URL of at most ${urlLength} characters, without white space and without #`

const WebhookConfig = z.strictObject(
  {
    url: webUrl(
      URL_RULE,
      isWebUrl,
      'Where events are sent by POST. Credentials in it (https://user:password@host/) are sent as an Authorization header. In answers credentials and query are shown as …, and a URL that comes back so is kept.',
    ),
  },
  says('must be an object'),
)

const SlackConfig = z.strictObject(
  {
    url: webUrl(
      URL_RULE,
      isWebUrl,
      'Incoming webhook of Slack, or of what understands its messages. It is a secret: answers show its origin and …, and a URL that comes back so is kept.',
    ),
  },
  says('must be an object'),
)

const PEER_RULE = `${URL_RULE}, and without ? and /api/v2/alerts at the end`

function isPeerUrl(text: string): boolean {
  return isWebUrl(text) && !text.includes('?') && !/\/api\/v\d+(\/alerts)?\/*$/.test(new URL(text).pathname)
}

/** Prometheus data model, "Metric names and labels"; those that begin with two underscores are its own. */
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/
/** They tell alerts apart, and which is which. `severity` may be another, since whoever routes by it decides what is critical. */
const OUR_LABELS = ['alertname', 'namespace', 'check', 'project', 'reason']
const LABELS_RULE = `must be an object of at most ${alertmanagerLabels} labels`
const LABEL_RULE = `must be called by a letter or _ and then letters, digits and _, ${labelLength} characters at most, not beginning with __, and not be one of ${OUR_LABELS.join(', ')}`
const VALUE_RULE = `must be text of 1 to ${labelLength} characters, without control characters`

const Labels = z
  .unknown()
  .superRefine((labels, context) => {
    // By hand: zod's record leaves out `__proto__`, and we leave out nothing in silence.
    if (typeof labels !== 'object' || labels === null || Array.isArray(labels)) return context.addIssue(LABELS_RULE)
    const entries = Object.entries(labels)
    if (entries.length > alertmanagerLabels) return context.addIssue(LABELS_RULE)
    for (const [name, value] of entries) {
      const isNamed = LABEL_NAME.test(name) && name.length <= labelLength && !OUR_LABELS.includes(name)
      const message = isNamed ? (isLabelValue(value) ? null : VALUE_RULE) : LABEL_RULE
      if (message !== null) context.addIssue({ code: 'custom', path: [name], message })
    }
  })
  .transform((labels) => labels as Record<string, string>)
  .meta({
    type: 'object',
    maxProperties: alertmanagerLabels,
    propertyNames: { pattern: LABEL_NAME.source, maxLength: labelLength, not: { enum: OUR_LABELS } },
    additionalProperties: { type: 'string', minLength: 1, maxLength: labelLength },
    description: `Added to the labels of every alert, for routing; they win over our \`severity\`. Not ${OUR_LABELS.join(', ')}. Left out of an update they stay as they are.`,
  })

function isLabelValue(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > 2 * labelLength || /\p{Cc}|\p{Cs}/u.test(value)) return false
  const length = Array.from(value).length
  return length >= 1 && length <= labelLength
}

const AlertmanagerConfig = z.strictObject(
  {
    urls: listOf(
      webUrl(PEER_RULE, isPeerUrl, 'Address of a peer, without /api/v2/alerts.'),
      alertmanagerUrls,
      'URLs',
    ).meta({
      description: 'Every peer of the Alertmanager cluster. Credentials are shown as …, as those of a webhook are.',
    }),
    labels: Labels.optional(),
  },
  says('must be an object'),
)

const RECIPIENT_RULE = 'must be an e-mail address'
/** What RFC 5322 gives a meaning in a list of addresses would make several recipients of one. */
const recipient = z
  .string(says(RECIPIENT_RULE))
  .trim()
  .refine((text) => isEmail(text) && !/[,;:()[\]\\]/.test(text), says(RECIPIENT_RULE))
  .meta({ format: 'email' })

const EmailConfig = z.strictObject(
  { to: listOf(recipient, emailRecipients, 'e-mail addresses').meta({ description: 'Who gets the e-mail.' }) },
  says('must be an object'),
)

/** One at least; what comes twice is there once. */
export function listOf<Item extends z.ZodType>(item: Item, most: number, what: string) {
  const rule = says(`must be a list of 1 to ${most} ${what}`)
  return z
    .array(item, rule)
    .min(1, rule)
    .max(most, rule)
    .transform((values) => [...new Set(values)])
}

export const CONFIGS = {
  webhook: WebhookConfig,
  alertmanager: AlertmanagerConfig,
  slack: SlackConfig,
  email: EmailConfig,
} as const satisfies Record<ChannelKind, z.ZodType>

/** Reads `body.config` as that of a channel of this kind. Throws AppError `invalid`. */
export function readConfig(kind: ChannelKind, config: unknown): ConfigInput {
  const { config: read } = parsePart('body', z.object({ config: CONFIGS[kind] }), { config })
  return { kind, ...read } as ConfigInput
}

/** Any object here: which one is right depends on the kind. */
export const config = () =>
  z.looseObject({}, says('must be an object')).meta({
    description: 'How to reach whom: the fields depend on the kind.',
    anyOf: CHANNEL_KINDS.map((kind) => ({
      title: kind,
      ...withoutHead(z.toJSONSchema(CONFIGS[kind], { io: 'input' })),
    })),
  })

function withoutHead({ $schema: _schema, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return schema
}
