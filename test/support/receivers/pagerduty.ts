/**
 * PagerDuty, by "Events API v2 Overview", "Send an Alert Event" and "Events API Rate Limits" (developer.pagerduty.com), and the schema
 * of the event in its document of the API (github.com/PagerDuty/api-schema, reference/events-v2).
 */

import { z } from 'zod'
import { Refusal, startHttpService } from './service.ts'

const KEY = 's3cret00000000000000000000000000'
const PATH = '/v2/enqueue'
const MAX_BYTES = 512 * 1_024

const invalid = (...errors: readonly string[]) => ({
  status: 400,
  text: JSON.stringify({ status: 'invalid event', message: 'Event object is invalid', errors }),
})

/** Of `acknowledge` and `resolve` PagerDuty demands the first three alone; what else is there has the same form. */
const Event = z.strictObject({
  routing_key: z.string().length(32, "Length of 'routing_key' is incorrect (should be 32 characters)"),
  event_action: z.enum(['trigger', 'acknowledge', 'resolve']),
  dedup_key: z.string().min(1).max(255),
  client: z.string(),
  client_url: z.url(),
  links: z.array(z.strictObject({ href: z.url(), text: z.string().optional() })),
  payload: z.strictObject({
    summary: z.string().min(1).max(1_024),
    source: z.string().min(1),
    severity: z.enum(['critical', 'error', 'warning', 'info']),
    timestamp: z.iso.datetime(),
    component: z.string().optional(),
    group: z.string().optional(),
    class: z.string().optional(),
    custom_details: z.record(z.string(), z.unknown()).optional(),
  }),
})

export const startPagerduty = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'pagerduty', routing_key: KEY, url: url + PATH }) as const,
    accept({ path, body }) {
      if (path !== PATH) throw new Refusal('no such path', { status: 404 })
      if (Buffer.byteLength(body) > MAX_BYTES) throw new Refusal('too large', { status: 413 })
      const { error, data } = Event.safeParse(JSON.parse(body))
      if (error !== undefined) throw new Refusal(error.message, invalid(error.message))
      if (data.routing_key !== KEY) throw new Refusal('wrong key', invalid('Invalid routing key'))
      const { dedup_key } = data
      return { status: 202, text: JSON.stringify({ status: 'success', message: 'Event processed', dedup_key }) }
    },
    keyOf: ({ body }) => JSON.parse(body).dedup_key,
    tooMany: { status: 429, text: `Request Limit Exceeded for ${KEY}` },
    tooManyMs: 30_000,
    gone: invalid(`Invalid routing key: ${KEY}`),
    isGoneAtOnce: true,
  })
