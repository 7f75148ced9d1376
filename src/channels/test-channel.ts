import type { Tenant } from '../domain/access.ts'
import { notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { newId } from '../runtime/ids.ts'
import { lockChannel } from '../store/outbox/channels.ts'
import { insertTestEvent } from '../store/outbox/events.ts'
import type { ChannelContext } from './context.ts'

/** Queues an event `channel.test` for the channel, muted or not, and returns its delivery. Throws AppError `not_found`. */
export function testChannel(
  { database, clock }: ChannelContext,
  tenant: Tenant,
  id: string,
): Promise<{ readonly deliveryId: string }> {
  return database.transaction(async (tx) => {
    const channel = isUuid(id) ? await lockChannel(tx, tenant, id, 'keep') : null
    if (channel === null) throw notFound('channel')
    const at = clock.now()
    const [eventId, deliveryId] = [newId(at), newId(at)]
    const { projectId } = channel
    const { organizationId } = tenant
    await insertTestEvent(tx, { eventId, deliveryId, channelId: channel.id, organizationId, projectId, at })
    return { deliveryId }
  })
}
