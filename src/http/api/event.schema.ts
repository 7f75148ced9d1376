/** What a webhook receives (design, section 3.5): rendered by delivery/payload.ts, described here for the document. */

import { z } from 'zod'
import { PING_TYPES, STATUSES } from '../../domain/check.ts'
import { EVENT_BODY_BYTES } from '../../domain/event.ts'
import * as field from './fields.ts'

const uuid = (description: string) => z.string().meta({ format: 'uuid', description })

const EventCheck = z
  .object({
    id: uuid('As in the management API. The id for the ping API is never told.'),
    name: z.string(),
    slug: z.string(),
    project: z.object({ id: uuid('Project of the check.'), slug: z.string() }),
    kubernetes: z
      .object({ cluster: z.string(), namespace: z.string(), name: z.string() })
      .nullable()
      .meta({ description: 'The HeartbeatCheck that declares it.' }),
  })
  .meta({ id: 'EventCheck', description: 'The check as it was called when it happened.' })

const EventPing = z
  .object({
    type: z.enum(PING_TYPES),
    exit_code: z.int().nullable(),
    duration_ms: z.int().nullable().meta({ description: 'Milliseconds that the run took.' }),
    created_at: field.instant('When the ping arrived.'),
    body: z
      .string()
      .nullable()
      .meta({ description: `The end of what the job sent, at most ${EVENT_BODY_BYTES} bytes of it.` }),
  })
  .meta({ id: 'EventPing', description: 'The ping that made the change, else the last one before it.' })

const EventLinks = z
  .object({ check: z.string(), pings: z.string(), flips: z.string() })
  .meta({ id: 'EventLinks', description: 'Where the management API tells more; a credential is needed.' })

const PREVIOUS = 'What the check was before.'
const DOWN_FOR = 'Seconds that the check was down.'

interface Flip<Type extends string> {
  readonly id: string
  readonly type: Type
  readonly description: string
  readonly reasons: readonly [string, ...string[]]
  readonly status: z.ZodType
  readonly downFor: z.ZodType
  readonly gap?: z.ZodType
}

function flipped<const Type extends string>({
  id,
  type,
  description,
  reasons,
  status,
  downFor,
  gap = z.null(),
}: Flip<Type>) {
  return z
    .object({
      ...head(type),
      data: z.object({
        reason: z.enum(reasons),
        occurred_at: field.instant('When it became true: a missed ping is dated at its deadline.'),
        detected_at: field.instant('When the service noticed.'),
        status: status.meta({ description: 'What the check is since then.' }),
        previous_status: z.enum(STATUSES).nullable().meta({ description: PREVIOUS }),
        down_for_seconds: downFor.meta({ description: DOWN_FOR }),
        gap: gap.meta({ description: 'When the service itself could take no pings.' }),
        check: EventCheck,
        last_ping: EventPing.nullable(),
        links: EventLinks,
      }),
    })
    .meta({ id, description })
}

function head<const Type extends string>(type: Type) {
  return {
    version: z.literal(1).meta({ description: 'Of this form. Fields may be added without a new version.' }),
    id: uuid('Of the event: the same in every attempt and at every receiver. Also in the header `webhook-id`.'),
    type: z.literal(type),
    timestamp: field.instant('When the event was made.'),
  }
}

const notDown = () => z.null()

const CheckDown = flipped({
  id: 'CheckDownEvent',
  type: 'check.down',
  description: 'The job did not report in time, took too long, or failed.',
  reasons: ['missed', 'failed', 'overran'],
  status: z.literal('down'),
  downFor: notDown(),
})

const CheckUp = flipped({
  id: 'CheckUpEvent',
  type: 'check.up',
  description: 'The job works again.',
  reasons: ['recovered'],
  status: z.literal('up'),
  downFor: z.int(),
})

const CheckPaused = flipped({
  id: 'CheckPausedEvent',
  type: 'check.paused',
  description: 'Somebody paused the check: it alerts nobody.',
  reasons: ['paused'],
  status: z.literal('paused'),
  downFor: notDown(),
})

const CheckResumed = flipped({
  id: 'CheckResumedEvent',
  type: 'check.resumed',
  description: 'Somebody resumed the check.',
  reasons: ['resumed'],
  status: z.literal('new'),
  downFor: notDown(),
})

const CheckLate = flipped({
  id: 'CheckLateEvent',
  type: 'check.late',
  description: 'The job has not reported when it was expected; its grace time runs. For channels that ask for it.',
  reasons: ['late'],
  status: z.literal('late'),
  downFor: notDown(),
})

const CheckUnknown = flipped({
  id: 'CheckUnknownEvent',
  type: 'check.unknown',
  description:
    'The service was away when the job should have reported, and cannot tell whether it did. For channels that ask for it.',
  reasons: ['outage'],
  status: z.enum(STATUSES),
  downFor: notDown(),
  gap: z.object({ started_at: field.instant('From.'), ended_at: field.instant('Until.') }).nullable(),
})

const ChannelTest = z
  .object({ ...head('channel.test'), data: z.object({ message: z.string() }) })
  .meta({ id: 'ChannelTestEvent', description: 'Somebody tried the channel.' })

export const WebhookPayload = z
  .discriminatedUnion('type', [CheckDown, CheckUp, CheckPaused, CheckResumed, CheckLate, CheckUnknown, ChannelTest])
  .meta({ id: 'WebhookPayload', description: 'What a webhook is sent. `type` says which of these it is.' })

/** Standard Webhooks, "Webhook headers (sending metadata to consumers)". */
export const WEBHOOK_HEADERS = {
  'webhook-id': 'Id of the event: remember it, and a repeat is recognised.',
  'webhook-timestamp': 'Seconds since the epoch at which this attempt was sent. Refuse what is old.',
  'webhook-signature':
    'Signatures with spaces between them, one for each secret that is valid: `v1,` and the base64 of HMAC-SHA256 over `{webhook-id}.{webhook-timestamp}.{body}`. One that fits is enough.',
} as const
