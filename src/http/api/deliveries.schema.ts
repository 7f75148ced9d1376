import { z } from 'zod'
import { DELIVERY_STATUSES } from '../../channels/find-deliveries.ts'
import { EVENT_TYPES } from '../../domain/event.ts'
import * as field from './fields.ts'

const STANDARD_LIMIT = 100

export const DeliveryListQuery = z.object({
  channel_id: field.uuid('Only deliveries to this channel.').optional(),
  check_id: field.uuid('Only deliveries of events of this check.').optional(),
  status: field.oneOf(DELIVERY_STATUSES).optional().meta({ description: 'Only deliveries of this status.' }),
  limit: field.limit(STANDARD_LIMIT),
  cursor: field.cursor(),
})

export const Delivery = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    event_id: z
      .string()
      .meta({ format: 'uuid', description: 'What receivers know it by: the same in every attempt and every channel.' }),
    type: z.enum(EVENT_TYPES),
    channel_id: z.string().meta({ format: 'uuid' }),
    check_id: z.string().nullable().meta({ format: 'uuid', description: 'Null for a test.' }),
    status: z.enum(DELIVERY_STATUSES).meta({
      description: 'pending: it is still tried; failed: refused, or given up after 24 hours; it can be retried.',
    }),
    attempts: z.int().meta({ description: 'How often it was tried, an attempt that is running included.' }),
    next_attempt_at: field
      .instant('While an attempt is running: when the next one is made if nothing is heard of it.')
      .nullable(),
    last_status: z.int().nullable().meta({ description: 'Of the last HTTP or SMTP answer.' }),
    last_error: z.string().nullable().meta({
      description:
        'What was wrong with the last attempt, and what to do; of a delivered one, what to know nevertheless.',
    }),
    created_at: field.instant('When it was queued: in the moment of the event.'),
    delivered_at: field.instant('When the receiver took it.').nullable(),
  })
  .meta({ id: 'Delivery' })

export const DeliveryList = z
  .object({ deliveries: z.array(Delivery), next_cursor: field.nextCursor() })
  .meta({ id: 'DeliveryList' })

export const DeliveryParams = field.idOf('delivery')
