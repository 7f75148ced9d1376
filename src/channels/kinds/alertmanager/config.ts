import { z } from 'zod'
import type { Labels } from '../../../domain/labels.ts'
import { configOf, hideCredentials, listOf, reveal, webUrl } from '../fields.ts'
import type { KindConfig } from '../kind.ts'

export interface AlertmanagerSettings {
  readonly kind: 'alertmanager'
  /** One for each peer of the cluster, without /api/v2/alerts. */
  readonly urls: readonly string[]
  /** Added to the labels of every alert. They override ours. */
  readonly labels: Labels
}

type AlertmanagerConfig = Omit<AlertmanagerSettings, 'kind'>
/** Omitted labels keep their value. A new channel has none. */
type AlertmanagerInput = Pick<AlertmanagerSettings, 'urls'> & { readonly labels?: Labels | undefined }

const MAX_PEERS = 10
const MAX_LABELS = 20
const MAX_LABEL_LENGTH = 200

/** Prometheus data model, "Metric names and labels". Names that begin with two underscores are reserved. */
const LABEL_NAME = /^(?:[a-zA-Z][a-zA-Z0-9_]*|_(?:[a-zA-Z0-9][a-zA-Z0-9_]*)?)$/
/** They identify an alert. `severity` is not among them: the team that routes alerts decides what is critical. */
export const OUR_LABELS = ['alertname', 'namespace', 'check', 'project', 'reason']
const LABELS_RULE = `must be an object of at most ${MAX_LABELS} labels`
const NAME_RULE = `must have a name of at most ${MAX_LABEL_LENGTH} letters, digits and _ that begins with a letter or one _, and is not ${OUR_LABELS.slice(0, -1).join(', ')} or ${OUR_LABELS.at(-1)}`
const VALUE_RULE = `must be text of 1 to ${MAX_LABEL_LENGTH} characters, without control characters`

const labels = z
  .unknown()
  .superRefine((value, context) => {
    // By hand: zod's record drops a label named `__proto__` in silence.
    if (value === null) return context.addIssue('cannot be null')
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return context.addIssue(LABELS_RULE)
    const entries = Object.entries(value)
    if (entries.length > MAX_LABELS) return context.addIssue(LABELS_RULE)
    for (const [name, text] of entries) {
      const isNamed = LABEL_NAME.test(name) && name.length <= MAX_LABEL_LENGTH && !OUR_LABELS.includes(name)
      const message = isNamed ? (isLabelValue(text) ? null : VALUE_RULE) : NAME_RULE
      if (message !== null) context.addIssue({ code: 'custom', path: [name], message })
    }
  })
  .transform((value) => value as Labels)
  .meta({
    type: 'object',
    maxProperties: MAX_LABELS,
    propertyNames: { pattern: LABEL_NAME.source, maxLength: MAX_LABEL_LENGTH, not: { enum: OUR_LABELS } },
    additionalProperties: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_LABEL_LENGTH,
      pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$',
    },
    description: `Added to the labels of every alert, for routing. They override our \`severity\`. Not ${OUR_LABELS.join(', ')}. An update without them keeps them.`,
  })

function isLabelValue(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > 2 * MAX_LABEL_LENGTH || /\p{Cc}|\p{Cs}/u.test(value)) return false
  const length = Array.from(value).length
  return length >= 1 && length <= MAX_LABEL_LENGTH
}

const peer = webUrl('Address of a peer, without /api/v2/alerts.', {
  words: 'without ? and /api/v2/alerts at the end',
  without: '?',
  holds: (url) => !url.includes('?') && !/\/api\/v\d+(\/alerts)?\/*$/.test(new URL(url).pathname),
})

export const alertmanagerConfig: KindConfig<AlertmanagerSettings, AlertmanagerInput, AlertmanagerConfig> = {
  title: 'Alertmanager',
  purpose: 'An alert that fires as long as the check is down, routed by your Alertmanager.',
  form: [
    {
      name: 'urls',
      label: 'Addresses',
      meaning: `Every peer of the cluster, one on each line, at most ${MAX_PEERS}, without /api/v2/alerts. Later they are shown with … instead of credentials.`,
      as: 'lines',
      example: 'https://alertmanager.example.com',
      isSecret: true,
    },
    {
      name: 'labels',
      label: 'Labels',
      meaning:
        'Added to every alert, for your routes: name=value on each line. They override our severity, which is critical.',
      as: 'pairs',
      example: 'team=payments',
    },
  ],
  input: configOf({
    urls: listOf(peer, MAX_PEERS, 'URLs').meta({
      description: 'Every peer of the Alertmanager cluster. Responses show … instead of credentials.',
    }),
    labels: labels.optional(),
  }),
  shown: z.object({ urls: z.array(z.string()), labels: z.record(z.string(), z.string()) }),

  toSettings({ urls, labels }, stored) {
    return {
      kind: 'alertmanager',
      urls: urls.map((url, index) => reveal(url, stored?.urls ?? [], hideCredentials, `urls.${index}`)),
      labels: labels ?? stored?.labels ?? {},
    }
  },
  urlsOf: ({ urls }) => urls.map((url, index) => ({ url, field: `urls.${index}` })),
  show: ({ urls, labels }) => ({ urls: urls.map(hideCredentials), labels }),
}
