/** The events that webhooks receive (design, section 3.5), for the document. channels/kinds/webhook/payload.ts renders them. */

import { z } from 'zod'
import { PING_TYPES, STATUSES } from '../../domain/check.ts'
import { EVENT_BODY_BYTES } from '../../domain/event.ts'
import { DETAIL_CHARS } from '../../domain/last-run.ts'
import { FLAPPING } from '../../domain/limits.ts'
import * as field from './fields.ts'

const EventCheck = z
  .object({
    id: field.id('As in the management API. The id for the ping API is never sent.'),
    name: z.string(),
    slug: z.string(),
    tags: z.array(z.string()),
    labels: z.record(z.string(), z.string()),
    project: z.object({ id: field.id('Project of the check.'), slug: z.string() }),
    kubernetes: z
      .object({
        cluster: z.string(),
        namespace: z.string(),
        name: z.string(),
        source: z
          .object({ kind: field.string('`CronJob`.'), name: z.string() })
          .optional()
          .meta({ description: 'What the check follows. Absent if it follows nothing.' }),
        run: z.string().optional().meta({
          description: 'Name of the Job that failed, took too long, waits, or succeeded. Absent if there is none.',
        }),
      })
      .nullable()
      .meta({ description: 'The HeartbeatCheck that declares it.' }),
  })
  .meta({ id: 'EventCheck', description: 'The check with its names at the time of the event.' })

const EventPing = z
  .object({
    type: z.enum(PING_TYPES),
    exit_code: z.int().nullable(),
    duration_ms: field.integerOrNull('Duration of the run in milliseconds.'),
    created_at: field.instant('When the ping arrived.'),
    body: field.stringOrNull(`The end of the output that the job sent, at most ${EVENT_BODY_BYTES} bytes.`),
  })
  .meta({ id: 'EventPing', description: 'The ping that caused the event, else the last one before it.' })

const EventLinks = z
  .object({
    check: field.string('The check in the management API; needs a credential, as the next two do.'),
    pings: z.string(),
    flips: z.string(),
    dashboard: z.string().optional().meta({
      description: 'The page of the check, for people. Absent while the dashboard is off.',
    }),
    acknowledge: z.string().optional().meta({
      description:
        'Only of check.down: a page for people that acknowledges the incident. It needs no other credential, and is valid until the incident ends. A POST to it does the same at once.',
    }),
  })
  .meta({ id: 'EventLinks', description: 'Where to read more.' })

function head<const Type extends string>(type: Type) {
  return {
    version: z.literal(1).meta({ description: 'Version of the payload. New fields do not change it.' }),
    id: field.id('Id of the event: the same in every attempt and at every receiver. Also in the header `webhook-id`.'),
    type: z.literal(type),
    timestamp: field.instant('When the event was created.'),
  }
}

interface Facts {
  readonly reasons: readonly [string, ...string[]]
  readonly status: z.ZodType
  readonly downFor?: z.ZodType
  readonly flips?: z.ZodType
  readonly reminder?: z.ZodType
  readonly escalated?: z.ZodType
  readonly silencedFrom?: z.ZodType
  readonly detail?: z.ZodType
  readonly gap?: z.ZodType
}

function checkEvent<const Type extends string>(
  id: string,
  type: Type,
  description: string,
  { reasons, status, reminder, escalated, silencedFrom, ...facts }: Facts,
) {
  const { downFor = z.null(), flips = z.null(), detail = z.null(), gap = z.null() } = facts
  return z
    .object({
      ...head(type),
      data: z.object({
        reason: z.enum(reasons),
        occurred_at: field.instant('When it happened. A missed ping has the time of its deadline.'),
        detected_at: field.instant('When the service detected it.'),
        status: status.meta({ description: 'Status of the check after the event.' }),
        previous_status: z.enum(STATUSES).nullable().meta({ description: 'Status of the check before the event.' }),
        down_for_seconds: downFor.meta({
          description:
            'Seconds from the time at which the check went down, by the first check.down since the last check.up.',
        }),
        ...(reminder === undefined ? {} : { reminder }),
        ...(escalated === undefined ? {} : { escalated }),
        ...(silencedFrom === undefined ? {} : { silenced_from: silencedFrom }),
        flips: flips.meta({
          description: `How often the check went down or up within the last ${FLAPPING.windowMs / 60_000} minutes.`,
        }),
        gap: gap.meta({ description: 'Interval in which the service could not receive pings.' }),
        detail: detail.meta({
          description: `Why the run of a CronJob failed, did not start or took too long, or why nothing is expected of it, in words, at most ${DETAIL_CHARS} characters. Null if that is not known, and without a CronJob.`,
        }),
        check: EventCheck,
        last_ping: EventPing.nullable(),
        links: EventLinks,
      }),
    })
    .meta({ id, description })
}

const silencedFrom = field.instant('Only of what is sent at the end of a silence: when that began.').optional()

const CHECK_EVENTS = [
  checkEvent('CheckDownEvent', 'check.down', 'The job did not report in time, took too long, or failed.', {
    reasons: ['missed', 'failed', 'overran'],
    status: z.literal('down'),
    detail: z.string().nullable(),
    downFor: z.int().nullable(),
    escalated: z.literal(true).optional().meta({
      description:
        'Only for a channel with `after_seconds`: the check is down still, and no one has acknowledged that.',
    }),
    silencedFrom,
    reminder: z.int().optional().meta({
      description: 'Only while the check is down and is notified again: 1 for the first time, and so on.',
    }),
  }),
  checkEvent('CheckUpEvent', 'check.up', 'The job works again: its first success or warning since check.down.', {
    reasons: ['recovered'],
    status: z.literal('up'),
    downFor: z.int(),
    silencedFrom,
  }),
  checkEvent(
    'CheckPausedEvent',
    'check.paused',
    'A user paused the check, or its CronJob is suspended, gone, or never due. Nothing is expected until it is resumed; of a CronJob, a run that a person starts is judged all the same.',
    {
      reasons: ['paused'],
      status: z.literal('paused'),
      silencedFrom,
      detail: z.string().nullable(),
    },
  ),
  checkEvent('CheckResumedEvent', 'check.resumed', 'A user resumed the check.', {
    reasons: ['resumed'],
    status: z.literal('new'),
  }),
  checkEvent(
    'CheckFlappingEvent',
    'check.flapping',
    `The check went down or up more than ${FLAPPING.changes} times within ${FLAPPING.windowMs / 60_000} minutes. Further changes are not notified until it stays the same for as long; then check.down or check.up follows if the last one was another.`,
    { reasons: ['flapping'], status: z.enum(['up', 'down']), flips: z.int() },
  ),
  checkEvent(
    'CheckWarnedEvent',
    'check.warned',
    'The job is done, and a person should look at it. While warnings continue, one event in 24 hours.',
    { reasons: ['warned'], status: z.literal('up'), detail: z.string().nullable() },
  ),
  checkEvent(
    'CheckLateEvent',
    'check.late',
    'The job has not reported when it was expected; its grace time is running. For channels that choose this event.',
    { reasons: ['late'], status: z.literal('late') },
  ),
  checkEvent(
    'CheckUnknownEvent',
    'check.unknown',
    'The service was down when the job should have reported, and does not know whether the job ran. For channels that choose this event.',
    {
      reasons: ['outage'],
      status: z.enum(STATUSES),
      gap: z.object({ started_at: field.instant('From.'), ended_at: field.instant('Until.') }).nullable(),
    },
  ),
] as const

const ChannelTest = z
  .object({ ...head('channel.test'), data: z.object({ message: z.string() }) })
  .meta({ id: 'ChannelTestEvent', description: 'A user tested the channel.' })

export const WebhookPayload = z
  .discriminatedUnion('type', [...CHECK_EVENTS, ChannelTest])
  .meta({ id: 'WebhookPayload', description: 'The body of a webhook. `type` selects one of these events.' })

/** Standard Webhooks, "Webhook headers (sending metadata to consumers)". */
export const WEBHOOK_HEADERS = {
  'webhook-id': 'Id of the event. Store it to recognize repeats.',
  'webhook-timestamp': 'Time of this attempt in seconds since the epoch. Reject old requests.',
  'webhook-signature':
    'Signatures separated by spaces, one for each valid secret: `v1,` and the base64 of HMAC-SHA256 over `{webhook-id}.{webhook-timestamp}.{body}`. One matching signature is enough.',
} as const
