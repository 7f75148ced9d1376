import type { Tenant } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { CLAIM_MS, PATIENCE_MS } from '../domain/retry.ts'
import type { Context } from '../store/context.ts'
import { type DeliveryRecord, lockDelivery, makeDeliveryDue } from '../store/outbox/find-deliveries.ts'

/** A delivery that is due later than this is not claimed, whatever the difference between the clocks of two replicas. */
const MAX_CLAIM_MS = CLAIM_MS + 5_000

/**
 * Makes a delivery due at once. A failed or delivered one starts again, for another PATIENCE_MS. A pending one becomes due, unless it
 * is due within seconds or may be being sent. Throws AppError `not_found`; `conflict` when its channel is muted (unless it is a test),
 * removed or serves another project now.
 */
export async function retryDelivery({ database, clock }: Context, tenant: Tenant, id: string): Promise<DeliveryRecord> {
  if (!isUuid(id)) throw notFound('delivery')
  return database.transaction(async (tx) => {
    const found = await lockDelivery(tx, tenant, id)
    if (found === null) throw notFound('delivery')
    const { delivery, isChannelMuted, isElsewhere } = found
    if (isChannelMuted === null) throw new AppError('conflict', { why: 'channel_gone' })
    if (isChannelMuted && delivery.type !== 'channel.test') throw new AppError('muted', {})
    if (isElsewhere && delivery.type !== 'channel.test') throw new AppError('conflict', { why: 'channel_moved' })
    const now = clock.now()
    if (delivery.status === 'pending' && delivery.nextAttemptAt! <= now + MAX_CLAIM_MS) return delivery
    return makeDeliveryDue(tx, tenant, id, { now, giveUpAt: now + PATIENCE_MS })
  })
}
