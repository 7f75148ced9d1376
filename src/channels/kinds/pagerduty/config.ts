import { z } from 'zod'
import { rule } from '../../../domain/errors.ts'
import { configOf, hideAll, hidePath, reveal, secretText, webUrl } from '../fields.ts'
import type { KindConfig } from '../kind.ts'

/** PD-CEF, "Severity". */
const SEVERITIES = ['critical', 'error', 'warning', 'info'] as const

interface PagerdutyConfig {
  readonly routing_key: string
  /** Absent: critical. */
  readonly severity?: (typeof SEVERITIES)[number] | undefined
  /** The endpoint that takes events. Absent: ENQUEUE_URL. */
  readonly url?: string | undefined
}
export type PagerdutySettings = PagerdutyConfig & { readonly kind: 'pagerduty' }

export const ENQUEUE_URL = 'https://events.pagerduty.com/v2/enqueue'

/** PagerDuty's have 32 letters and digits; those of systems that take the same events may differ. */
const KEY = /^[!#-[\]-~]{8,255}$/
const KEY_RULE = 'must be 8 to 255 letters, digits and signs of ASCII, without white space, quotes and backslashes'

export const pagerdutyConfig: KindConfig<PagerdutySettings, PagerdutyConfig, PagerdutyConfig> = {
  title: 'PagerDuty',
  purpose: 'An incident that is open as long as the check is down, in PagerDuty or a system that takes its events.',
  form: [
    {
      name: 'routing_key',
      label: 'Integration key',
      meaning:
        'Of an integration "Events API v2" of your service in PagerDuty. It is a secret: later it is shown as ….',
      example: 'R0123456789ABCDEF0123456789ABCDE',
      isSecret: true,
    },
    {
      name: 'severity',
      label: 'Severity',
      meaning: `Of its incidents: ${SEVERITIES.join(', ')}. Empty: critical.`,
      example: 'critical',
      isOptional: true,
    },
    {
      name: 'url',
      label: 'URL',
      meaning: `Where events are sent. Empty: ${ENQUEUE_URL}. Later only its host is shown.`,
      example: 'https://events.eu.pagerduty.com/v2/enqueue',
      isSecret: true,
      isOptional: true,
    },
  ],
  input: configOf({
    routing_key: secretText(KEY, KEY_RULE, 'Integration key of an integration "Events API v2"'),
    severity: z
      .enum(SEVERITIES, rule(`must be one of ${SEVERITIES.join(', ')}`))
      .optional()
      .meta({ description: 'Of the incidents. Default: critical.' }),
    url: webUrl(
      `The endpoint that takes events, as a whole. Default: ${ENQUEUE_URL}. Responses show its origin and …, and a URL that is sent back as it was shown keeps its value.`,
    ).optional(),
  }),
  shown: z.object({ routing_key: z.string(), severity: z.enum(SEVERITIES).optional(), url: z.string().optional() }),

  toSettings({ routing_key, severity, url }, stored) {
    const known = stored?.url === undefined ? [] : [stored.url]
    const to = url === undefined ? {} : { url: reveal(url, known, hidePath, 'url') }
    // A hidden key does not go to another address.
    const kept = stored !== null && stored.url === to.url ? [stored.routing_key] : []
    const key = reveal(routing_key, kept, hideAll, 'routing_key')
    return { kind: 'pagerduty', routing_key: key, ...(severity === undefined ? {} : { severity }), ...to }
  },
  show: ({ kind: _, url, ...others }) => ({
    ...others,
    routing_key: hideAll(others.routing_key),
    ...(url === undefined ? {} : { url: hidePath(url) }),
  }),
  urlsOf: ({ url = ENQUEUE_URL }) => [{ url, field: 'url' }],
  inSecret: { field: 'routing_key' },
}
