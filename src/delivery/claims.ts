/** What a poll of the outbox claims: deliveries that are sent alone, and digests. */

import type { Instant } from '../domain/check.ts'
import { DIGEST, type Digest, planDigest } from '../domain/digest.ts'
import { newId } from '../runtime/ids.ts'
import { type ClaimedDelivery, claimDeliveries } from '../store/outbox/deliveries.ts'
import { type Crowd, claimForDigest, type DigestDelivery, findEvents } from '../store/outbox/digests.ts'
import type { Database } from '../store/postgres/database.ts'

/** What one attempt sends: a delivery, or a digest of many. */
export type Message =
  | { readonly delivery: ClaimedDelivery }
  | { readonly digest: Digest; readonly deliveries: readonly DigestDelivery[] }

export interface ClaimTimes {
  readonly now: Instant
  readonly until: Instant
}

/** Deliveries that are claimed in one transaction for a digest. Pings wait for one of these, not for all. */
const CLAIMED_AT_ONCE = 500

/**
 * Of a channel with a crowd only tests and released deliveries: the others wait for its digest, which holds one of the free slots in its
 * turn.
 */
export async function claimSingly(
  database: Database,
  wanted: readonly { readonly channelId: string; readonly free: number }[],
  crowds: readonly Crowd[],
  times: ClaimTimes,
): Promise<{ claimed: ClaimedDelivery[]; moved: number }> {
  const held = new Map(crowds.map(({ channelId, isTurn }) => [channelId, isTurn ? 1 : 0]))
  const quiet = wanted.filter(({ channelId }) => !held.has(channelId))
  const crowded = wanted.flatMap(({ channelId, free }) => {
    const left = free - (held.get(channelId) ?? free)
    return left > 0 ? [{ channelId, free: left }] : []
  })
  const alone = quiet.length === 0 ? { claimed: [], moved: 0 } : await claimDeliveries(database, quiet, times)
  if (crowded.length === 0) return alone
  const tests = await claimDeliveries(database, crowded, { ...times, only: 'tests' })
  const claimed = [...alone.claimed, ...tests.claimed]
  const releasing = new Set(crowds.flatMap(({ channelId, hasReleased }) => (hasReleased ? [channelId] : [])))
  const left = crowded.flatMap(({ channelId, free }) => {
    const rest = free - tests.claimed.filter((delivery) => delivery.channelId === channelId).length
    return releasing.has(channelId) && rest > 0 ? [{ channelId, free: rest }] : []
  })
  if (left.length === 0) return { claimed, moved: alone.moved }
  const released = await claimDeliveries(database, left, { ...times, only: 'released' })
  return { claimed: [...claimed, ...released.claimed], moved: alone.moved + released.moved }
}

/**
 * Up to DIGEST.deliveries in one message; alone what cannot be a part of one: a delivery without its event, and one that no other is due
 * with. `count`: how many deliveries were claimed or postponed.
 */
export async function claimDigest(
  database: Database,
  channelId: string,
  times: ClaimTimes,
  yieldNow: () => Promise<void>,
): Promise<{ messages: Message[]; count: number }> {
  const { claimed, moved } = await claimAll(database, channelId, times, yieldNow)
  const lost = claimed.filter(({ hasEvent }) => !hasEvent)
  const whole = claimed.filter(({ hasEvent }) => hasEvent)
  const messages: Message[] = lost.map((delivery) => ({ delivery: { ...delivery, event: null } }))
  if (whole.length > 0) messages.push(await toMessage(database, whole, times.now))
  return { messages, count: claimed.length + moved }
}

async function claimAll(
  database: Database,
  channelId: string,
  times: ClaimTimes,
  yieldNow: () => Promise<void>,
): Promise<{ claimed: DigestDelivery[]; moved: number }> {
  const claimed: DigestDelivery[] = []
  let moved = 0
  for (let isMore = true; isMore && claimed.length < DIGEST.deliveries; ) {
    const limit = Math.min(CLAIMED_AT_ONCE, DIGEST.deliveries - claimed.length)
    const part = await claimForDigest(database, channelId, { ...times, limit })
    claimed.push(...part.claimed)
    moved += part.moved
    isMore = part.isMore
    await yieldNow()
  }
  return { claimed, moved }
}

async function toMessage(database: Database, deliveries: readonly DigestDelivery[], at: Instant): Promise<Message> {
  const { named, counts } = planDigest(deliveries)
  const ids = named.map(({ eventId }) => eventId)
  const stored = await findEvents(database, ids)
  const [only, ...others] = deliveries
  if (others.length === 0) return { delivery: { ...only!, event: stored.get(only!.eventId) ?? null } }
  const events = ids.flatMap((id) => stored.get(id) ?? []).filter((event) => event.type !== 'channel.test')
  return { digest: { id: newId(at), at, events: deliveries.length, named: events, counts }, deliveries }
}
