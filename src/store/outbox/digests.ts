/**
 * Which channels have a crowd, and whose turn it is to send a digest (design, section 5). The rows, their claims and
 * their outcomes are in deliveries.ts. One replica takes the turn of a channel, next_digest_at, so two replicas do not
 * share a crowd.
 */

import type { Instant } from '../../domain/check.ts'
import { DIGEST } from '../../domain/digest.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import { uuidArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

/** A poll claims so many digests at most: each can take a second, and a poll is to end before its first claims expire. */
const TURNS_AT_ONCE = 3

export interface Crowd {
  readonly channelId: string
  /** This call has taken its turn: a digest may be sent. */
  readonly isTurn: boolean
}

/**
 * Which of these channels have a crowd: more than DIGEST.crowd deliveries that are due, or as many of events of the
 * last DIGEST.windowMs, sent or not. Takes the turns of some channels whose pause is over, longest over first. Tests do
 * not count. The statement reads no more rows than it needs to know.
 */
export async function findCrowds(db: Queryable, channelIds: readonly string[], now: Instant): Promise<Crowd[]> {
  if (channelIds.length === 0) return []
  const { rows } = await db.query<Crowd>({
    name: 'find_crowds',
    text: `with crowds as materialized (
        select w.channel_id from unnest($1::uuid[]) w (channel_id)
        where (select count(*) from (
            select from deliveries d
            where d.channel_id = w.channel_id and d.status = 0 and d.next_attempt_at <= $2::timestamptz
              and (d.claimed_until is null or d.claimed_until <= $2::timestamptz) and d.check_key is not null
            order by d.next_attempt_at limit ${DIGEST.crowd + 1}) waiting) > ${DIGEST.crowd}
          or (select count(*) from (
            select from deliveries d where d.channel_id = w.channel_id and d.id >= $4::uuid and d.check_key is not null
            order by d.id limit ${DIGEST.crowd + 1}) recent) > ${DIGEST.crowd}),
      taken as (
        update channels c set next_digest_at = $3::timestamptz
        from (
          select o.id from crowds w join channels o on o.id = w.channel_id
          where coalesce(o.next_digest_at <= $2::timestamptz, true)
          order by o.next_digest_at nulls first limit ${TURNS_AT_ONCE} for no key update of o skip locked) o
        where c.id = o.id returning c.id)
      select w.channel_id as "channelId", exists (select from taken t where t.id = w.channel_id) as "isTurn" from crowds w`,
    values: [uuidArray(channelIds), timestamp(now), timestamp(now + DIGEST.pauseMs), firstIdAt(now - DIGEST.windowMs)],
  })
  return rows
}
