import type { Tenant } from '../domain/access.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { type DeliveryFilter, type DeliveryRecord, listDeliveryRows } from '../store/outbox/find-deliveries.ts'
import type { ChannelContext } from './context.ts'

export { DELIVERY_STATUSES } from '../store/outbox/deliveries.ts'
export type { DeliveryFilter, DeliveryRecord } from '../store/outbox/find-deliveries.ts'

/** Deliveries, newest first, without those of removed channels. An unknown or another tenant's id in the filter matches none. */
export async function listDeliveries(
  { database }: ChannelContext,
  tenant: Tenant,
  filter: DeliveryFilter,
  { limit, after }: PageRequest,
): Promise<Page<DeliveryRecord>> {
  const rows = await listDeliveryRows(database, tenant, filter, { beforeId: after?.id ?? null, limit: limit + 1 })
  return toPage(rows, limit, ({ createdAt, id }) => ({ at: createdAt, id }))
}
