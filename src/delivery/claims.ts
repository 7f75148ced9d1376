/** What one attempt of the outbox sends: a delivery, or a digest of many. */

import type { Instant } from '../domain/check.ts'
import { DIGEST, type Digest, planDigest } from '../domain/digest.ts'
import { newId } from '../runtime/ids.ts'
import { type ClaimedDelivery, claimDeliveries } from '../store/outbox/deliveries.ts'
import type { Database } from '../store/postgres/database.ts'

export type Message =
  | { readonly delivery: ClaimedDelivery }
  | { readonly digest: Digest; readonly deliveries: readonly ClaimedDelivery[] }

/**
 * Up to DIGEST.deliveries of a channel in one message; a delivery alone where no other one is due. `count`: how many
 * deliveries were claimed or postponed.
 */
export async function claimDigest(
  database: Database,
  channelId: string,
  times: { readonly now: Instant; readonly until: Instant },
): Promise<{ messages: Message[]; count: number }> {
  const wanted = [{ channelId, tests: 0, others: DIGEST.deliveries }]
  const { claimed, count } = await claimDeliveries(database, wanted, { ...times, asOne: true })
  const events = claimed.flatMap(({ event }) => (event.type === 'channel.test' ? [] : [event]))
  if (events.length < 2) return { messages: claimed.map((delivery) => ({ delivery })), count }
  const digest = { id: newId(times.now), at: times.now, events: events.length, ...planDigest(events) }
  return { messages: [{ digest, deliveries: claimed }], count }
}
