import type { Tenant } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { newId } from '../runtime/ids.ts'
import { findChannelRow } from '../store/outbox/channels.ts'
import { insertTestEvent } from '../store/outbox/events.ts'
import { takeFromSlidingWindow } from '../store/tenancy/rate-windows.ts'
import type { ChannelContext } from './context.ts'

/** An e-mail channel would be a relay otherwise: recipients do not confirm. */
const TESTS_PER_HOUR = 10

/**
 * Queues an event `channel.test` for the channel, muted or not, and returns its delivery. Throws AppError `not_found`; `too_many_requests`
 * after TESTS_PER_HOUR tests.
 */
export function testChannel(
  { database, clock }: ChannelContext,
  tenant: Tenant,
  id: string,
): Promise<{ readonly deliveryId: string }> {
  return database.transaction(async (tx) => {
    const channel = isUuid(id) ? await findChannelRow(tx, tenant, id, 'keep') : null
    if (channel === null) throw notFound('channel')
    const window = { bucket: `test:${channel.id}:${tenant.organizationId}`, limit: TESTS_PER_HOUR, seconds: 3_600 }
    const { isAllowed, resetSeconds } = await takeFromSlidingWindow(tx, window)
    if (!isAllowed) throw tooManyTests(resetSeconds)
    const at = clock.now()
    const [eventId, deliveryId] = [newId(at), newId(at)]
    const { projectId } = channel
    const { organizationId } = tenant
    await insertTestEvent(tx, { eventId, deliveryId, channelId: channel.id, organizationId, projectId, at })
    return { deliveryId }
  })
}

function tooManyTests(retryAfterSeconds: number): AppError {
  const reason = { why: 'many_tests', most: TESTS_PER_HOUR, seconds: retryAfterSeconds } as const
  return new AppError('too_many_requests', reason, { retryAfterSeconds })
}
