/** Deliveries: the state of each event for each channel (design, sections 3.5 and 5). */

import { type DeliveryRecord, getDelivery as get, listDeliveries as list } from '../../channels/find-deliveries.ts'
import { retryDelivery as retry } from '../../channels/retry-delivery.ts'
import { inPieces } from '../../domain/page.ts'
import { Delivery, DeliveryList, DeliveryListQuery, DeliveryParams } from './deliveries.schema.ts'
import { given, readEntries, toIso, toIsoOrNull, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listDeliveries = endpoint({
  id: 'listDeliveries',
  summary: 'List the deliveries, newest first',
  query: DeliveryListQuery,
  status: 200,
  response: DeliveryList,
  async handle({ context, caller, query }) {
    const { channel_id: channelId, check_id: checkId, status, since } = query
    const filter = given({ channelId, checkId, status, since })
    const pieces = inPieces(toPageRequest(query), (piece) => list(context, caller, filter, piece))
    const { entries, next_cursor } = await readEntries('deliveries', pieces, presentDelivery)
    return { deliveries: entries, next_cursor }
  },
})

export const getDelivery = endpoint({
  id: 'getDelivery',
  summary: 'Get a delivery',
  params: DeliveryParams,
  status: 200,
  response: Delivery,
  handle: async ({ context, caller, params }) => presentDelivery(await get(context, caller, params.id)),
})

export const retryDelivery = endpoint({
  id: 'retryDelivery',
  summary: 'Send a delivery again at once, and retry it as long as a new one',
  params: DeliveryParams,
  status: 202,
  response: Delivery,
  errors: ['conflict', 'muted'],
  handle: async ({ context, caller, params }) => presentDelivery(await retry(context, caller, params.id)),
})

function presentDelivery(delivery: DeliveryRecord) {
  const { id, eventId, type, channelId, checkId, status, attempts, lastStatus, lastError } = delivery
  return {
    id,
    event_id: eventId,
    type,
    channel_id: channelId,
    check_id: checkId,
    status,
    attempts,
    next_attempt_at: toIsoOrNull(delivery.nextAttemptAt),
    last_status: lastStatus,
    last_error: lastError,
    created_at: toIso(delivery.createdAt),
    delivered_at: toIsoOrNull(delivery.deliveredAt),
    digest_id: delivery.digestId,
  }
}
