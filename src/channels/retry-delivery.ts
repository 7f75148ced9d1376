import type { Tenant } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { CLAIM_MS, PATIENCE_MS } from '../domain/retry.ts'
import { type DeliveryRecord, hurryDelivery, lockDelivery, renewDelivery } from '../store/outbox/find-deliveries.ts'
import type { ChannelContext } from './context.ts'

/** Clocks of replicas differ a little: who waits for longer is not being sent. */
const LONGEST_CLAIM_MS = CLAIM_MS + 5_000

/**
 * Makes a delivery due at once. One that failed or was delivered starts anew, with all its patience; a pending one goes on as it
 * is, and is left alone when it is being sent at this moment, as far as can be seen, or is due within seconds anyway. Throws
 * AppError `not_found`; `conflict` when its channel is muted (unless it is a test) or removed, or its event is no longer stored.
 */
export async function retryDelivery(
  { database, clock }: ChannelContext,
  tenant: Tenant,
  id: string,
): Promise<DeliveryRecord> {
  if (!isUuid(id)) throw notFound('delivery')
  return database.transaction(async (tx) => {
    const found = await lockDelivery(tx, tenant, id)
    if (found === null) throw notFound('delivery')
    const { delivery, isChannelMuted, isElsewhere, hasEvent } = found
    if (isChannelMuted === null) throw new AppError('conflict', 'the channel of the delivery was removed')
    if (isChannelMuted && delivery.type !== 'channel.test')
      throw new AppError('conflict', 'the channel of the delivery is muted: unmute it first')
    if (isElsewhere && delivery.type !== 'channel.test')
      throw new AppError('conflict', 'the channel of the delivery serves another project now')
    if (!hasEvent)
      throw new AppError('conflict', 'what the delivery should say is no longer stored: its event was too old')
    const now = clock.now()
    if (delivery.status !== 'pending') return renewDelivery(tx, id, { now, giveUpAt: now + PATIENCE_MS })
    if (delivery.nextAttemptAt! <= now + LONGEST_CLAIM_MS) return delivery
    return hurryDelivery(tx, id, now)
  })
}
