/** Deliveries: the state of each event for each channel (design, sections 3.5 and 5). */

import { getDelivery as get, listDeliveries as list } from '../../channels/find-deliveries.ts'
import { retryDelivery as retry } from '../../channels/retry-delivery.ts'
import { Delivery, DeliveryList, DeliveryListQuery, DeliveryParams } from './deliveries.schema.ts'
import { readList } from './list-page.ts'
import { inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

export const listDeliveries = endpoint({
  summary: 'List the deliveries, newest first',
  query: DeliveryListQuery,
  response: DeliveryList,
  handle({ context, caller, query }) {
    const { limit: _limit, cursor: _cursor, ...filter } = inCamelCase(query)
    return readList('deliveries', Delivery, query, (piece) => list(context, caller, filter, piece))
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
