/** What one attempt of the outbox sends: a delivery, or a digest of many. */

import type { Instant } from '../domain/check.ts'
import { DIGEST, type Digest, planDigest } from '../domain/digest.ts'
import { newId } from '../runtime/ids.ts'
import { type ClaimedDelivery, claimDeliveries } from '../store/outbox/deliveries.ts'
import { findEvents } from '../store/outbox/events.ts'
import type { Database } from '../store/postgres/database.ts'

export type Message =
  | { readonly delivery: ClaimedDelivery }
  | { readonly digest: Digest; readonly deliveries: readonly ClaimedDelivery[] }

/**
 * Up to DIGEST.deliveries of a channel in one message; alone what cannot be a part of one: a delivery without its
 * event, and one that no other is due with. `count`: how many deliveries were claimed or postponed.
 */
export async function claimDigest(
  database: Database,
  channelId: string,
  times: { readonly now: Instant; readonly until: Instant },
): Promise<{ messages: Message[]; count: number }> {
  const wanted = [{ channelId, tests: 0, others: DIGEST.deliveries }]
  const { claimed, moved } = await claimDeliveries(database, wanted, { ...times, asOne: true })
  const lost = claimed.filter(({ hasEvent }) => !hasEvent)
  const whole = claimed.filter(({ hasEvent }) => hasEvent)
  const messages: Message[] = lost.map((delivery) => ({ delivery }))
  if (whole.length > 0) messages.push(await toMessage(database, whole, times.now))
  return { messages, count: claimed.length + moved }
}

async function toMessage(database: Database, deliveries: readonly ClaimedDelivery[], at: Instant): Promise<Message> {
  const { named, counts } = planDigest(
    deliveries.flatMap(({ type, ...delivery }) => (type === 'channel.test' ? [] : [{ ...delivery, type }])),
  )
  const ids = named.map(({ eventId }) => eventId)
  const stored = await findEvents(database, ids)
  const [only, ...others] = deliveries
  if (others.length === 0) return { delivery: { ...only!, event: stored.get(only!.eventId) ?? null } }
  const events = ids.flatMap((id) => stored.get(id) ?? []).filter((event) => event.type !== 'channel.test')
  return { digest: { id: newId(at), at, events: deliveries.length, named: events, counts }, deliveries }
}
