import type { Tenant } from '../domain/access.ts'
import { notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import {
  type DeliveryFilter,
  type DeliveryRecord,
  findDelivery,
  listDeliveryRows,
  listLastDeliveries,
} from '../store/outbox/find-deliveries.ts'
import type { ChannelContext } from './context.ts'

export type { DeliveryFilter, DeliveryRecord } from '../store/outbox/find-deliveries.ts'

/** Deliveries, newest first, without those of removed channels. An unknown or another tenant's id in the filter matches none. */
export function listDeliveries(
  { database }: Pick<ChannelContext, 'database'>,
  tenant: Tenant,
  filter: DeliveryFilter,
  page: PageRequest,
): Promise<Page<DeliveryRecord>> {
  return readPage(page, ({ limit, after }) =>
    listDeliveryRows(database, tenant, filter, { beforeId: after?.id ?? null, limit }),
  )
}

/** The last delivery of each channel that was sent at least once, by the id of the channel. */
export async function findLastDeliveries(
  { database }: Pick<ChannelContext, 'database'>,
  tenant: Tenant,
  channelIds: readonly string[],
): Promise<ReadonlyMap<string, DeliveryRecord>> {
  const last = await listLastDeliveries(database, tenant, channelIds)
  return new Map(last.map((delivery) => [delivery.channelId, delivery]))
}

/** Throws AppError `not_found` for an unknown, foreign or malformed id, and for a delivery of a removed channel. */
export async function getDelivery(
  { database }: Pick<ChannelContext, 'database'>,
  tenant: Tenant,
  id: string,
): Promise<DeliveryRecord> {
  const found = isUuid(id) ? await findDelivery(database, tenant, id) : null
  if (found === null) throw notFound('delivery')
  return found
}
