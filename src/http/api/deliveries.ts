/** Deliveries: the state of each event for each channel (design, sections 3.5 and 5). */

import { z } from 'zod'
import { getDelivery as get, listDeliveries as list } from '../../channels/find-deliveries.ts'
import { retryDelivery as retry } from '../../channels/retry-delivery.ts'
import { CAUSE_KINDS, DELIVERY_STATUSES, SUPPRESSIONS } from '../../domain/channel.ts'
import { EVENT_TYPES } from '../../domain/event.ts'
import * as field from './fields.ts'
import { listEndpoint } from './list-page.ts'
import { inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

const STANDARD_LIMIT = 100

export const DeliveryListQuery = z.object({
  channel_id: field.uuid('Only deliveries to this channel.').optional(),
  check_id: field.uuid('Only deliveries of events of this check.').optional(),
  status: field.oneOf(DELIVERY_STATUSES).optional().meta({ description: 'Only deliveries of this status.' }),
  since: field
    .moment()
    .optional()
    .meta({ format: 'date-time', description: 'Only deliveries of events that happened at this time or later.' }),
  ...field.page('deliveries', STANDARD_LIMIT),
})

export const Delivery = field.shape('Delivery', {
  id: field.id(),
  event_id: field.id('The id that receivers get: the same in every attempt and every channel.'),
  type: z.enum(EVENT_TYPES),
  channel_id: field.id(),
  check_id: field.idOrNull('Null for a test.'),
  status: z.enum(DELIVERY_STATUSES).meta({
    description:
      'pending: still to be delivered; failed: rejected, or given up after 24 hours; suppressed: not sent, for `reason`. One that is not pending can be sent all the same.',
  }),
  reason: z.enum(SUPPRESSIONS).nullable().meta({
    description:
      'Why it is not sent. muted: by its channel; flapping: the check went down and up, warned or was reminded of too often; silenced: a silence covered the check; dependency: a check that it depends on was down; escalation: the incident ended before `after_seconds` of its channel. Null unless suppressed.',
  }),
  cause: z
    .object({ kind: z.enum(CAUSE_KINDS), id: field.id() })
    .nullable()
    .meta({ id: 'Cause', description: 'What suppresses it. Null where there is nothing to name.' }),
  attempts: field.integer('Number of attempts, with a running one.'),
  next_attempt_at: field
    .instant('While an attempt is running: when the next one begins if its outcome is lost.')
    .nullable(),
  last_status: field.integerOrNull('Status of the last HTTP or SMTP response.'),
  last_error: field.stringOrNull('Why the last attempt failed, and what to do. For a delivered one, a note.'),
  created_at: field.instant('When the event happened.'),
  delivered_at: field.instant('When the receiver accepted it.').nullable(),
  digest_id: field.idOrNull(
    'The same for all deliveries that were sent in one message. Null for one that was sent alone, and until it is delivered.',
  ),
})

export const DeliveryParams = field.idOf('delivery')

export const listDeliveries = listEndpoint({
  list: 'deliveries',
  entry: Delivery,
  summary: 'List the deliveries, newest first',
  query: DeliveryListQuery,
  read({ context, caller, query }, piece) {
    const { limit: _limit, cursor: _cursor, ...filter } = inCamelCase(query)
    return list(context, caller, filter, piece)
  },
})

export const getDelivery = endpoint({
  summary: 'Get a delivery',
  params: DeliveryParams,
  response: Delivery,
  handle: ({ context, caller, params }) => get(context, caller, params.id),
})

export const retryDelivery = endpoint({
  summary: 'Send a delivery again at once, and retry it as long as a new one',
  params: DeliveryParams,
  status: 202,
  response: Delivery,
  errors: ['conflict', 'muted'],
  handle: ({ context, caller, params }) => retry(context, caller, params.id),
})
