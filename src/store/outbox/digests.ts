/**
 * Claims for digests (design, section 5): many deliveries of one channel that are sent in one message. The rows, their claims and their
 * outcomes are those of deliveries.ts. The turn of a channel, next_digest_at, is taken by one replica: so two do not share a crowd.
 *
 * A pending delivery with a digest_id is released: that digest was refused as a message, and the delivery is sent alone.
 */

import type { Instant } from '../../domain/check.ts'
import { DIGEST } from '../../domain/digest.ts'
import type { CheckEventType, Event } from '../../domain/event.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import { instantArray, int8Array, uuidArray } from '../postgres/binary-arrays.ts'
import type { Database, Queryable, Statement } from '../postgres/database.ts'
import { CLAIM_BUDGET_MS, CLAIM_PLACED, type ClaimedDelivery } from './deliveries.ts'
import { EVENT_COLUMNS, type EventRow, toEvent } from './events.ts'

/** A poll claims so many digests at most: each can take a second, and a poll is to end before its first claims expire. */
const TURNS_AT_ONCE = 3

/** A poll looks at so many due deliveries for a crowd: more than these can be released, and what is behind them is sent after them. */
const LOOKED_AT = DIGEST.deliveries

export interface Crowd {
  readonly channelId: string
  /** This call has taken its turn: a digest may be sent. */
  readonly isTurn: boolean
  /** What has been due for longest is released. Only then are more looked for: behind a crowd, that would read all of it. */
  readonly hasReleased: boolean
}

/**
 * Which of these channels have a crowd: more than DIGEST.crowd deliveries that are due, or as many of events of the last DIGEST.windowMs,
 * sent or not. Takes the turns of some of those whose pause is over, longest over first. Tests do not count, and of what is due no released
 * delivery. It reads no more rows than it needs to know.
 */
export async function findCrowds(db: Queryable, channelIds: readonly string[], now: Instant): Promise<Crowd[]> {
  const { rows } = await db.query<Crowd>({
    name: 'find_crowds',
    text: `with crowds as materialized (
        select w.channel_id from unnest($1::uuid[]) w (channel_id)
        where (select count(*) from (
            select from (
              select d.digest_id from deliveries d
              where d.channel_id = w.channel_id and d.status = 0 and d.next_attempt_at <= ($2::timestamptz[])[1]
                and (d.claimed_until is null or d.claimed_until <= ($2::timestamptz[])[1]) and d.check_key is not null
              order by d.next_attempt_at limit ${LOOKED_AT}) due
            where due.digest_id is null limit ${DIGEST.crowd + 1}) waiting) > ${DIGEST.crowd}
          or (select count(*) from (
            select from deliveries d where d.channel_id = w.channel_id and d.id >= ($3::uuid[])[1] and d.check_key is not null
            order by d.id limit ${DIGEST.crowd + 1}) recent) > ${DIGEST.crowd}),
      taken as (
        update channels c set next_digest_at = ($2::timestamptz[])[2]
        from (
          select o.id from crowds w join channels o on o.id = w.channel_id
          where coalesce(o.next_digest_at <= ($2::timestamptz[])[1], true)
          order by o.next_digest_at nulls first limit ${TURNS_AT_ONCE} for no key update of o skip locked) o
        where c.id = o.id returning c.id)
      select w.channel_id as "channelId", exists (select from taken t where t.id = w.channel_id) as "isTurn",
        coalesce((select d.digest_id is not null from deliveries d
          where d.channel_id = w.channel_id and d.status = 0 and d.next_attempt_at <= ($2::timestamptz[])[1]
            and (d.claimed_until is null or d.claimed_until <= ($2::timestamptz[])[1])
          order by d.next_attempt_at limit 1), false) as "hasReleased"
      from crowds w`,
    values: [
      uuidArray(channelIds),
      instantArray([now, now + DIGEST.pauseMs]),
      uuidArray([firstIdAt(now - DIGEST.windowMs)]),
    ],
  })
  return rows
}

/** Without its event: a digest names few of its checks, and can have thousands. */
export interface DigestDelivery extends Omit<ClaimedDelivery, 'event'> {
  readonly type: CheckEventType
  /** Its event is stored. */
  readonly hasEvent: boolean
}

/**
 * Claims up to `limit` due deliveries of a channel, longest due first, without tests. Unlike claimDeliveries, it takes what is behind the
 * head of a sequence, if everything before it is taken with it: one message has no order within. `moved`: how many were postponed because
 * an older delivery of their check is pending and not among them.
 */
export async function claimForDigest(
  db: Database,
  channelId: string,
  { now, until, limit }: { now: Instant; until: Instant; limit: number },
): Promise<{ claimed: DigestDelivery[]; moved: number; isMore: boolean }> {
  let isMore = false
  const rows = await db.session((session) =>
    session.groupTransaction(
      CLAIM_BUDGET_MS,
      (tx) =>
        tx.queryColumns({
          name: 'lock_for_digest',
          text: `select d.event_id, d.check_key from deliveries d
            where d.channel_id = $1 and d.status = 0 and d.next_attempt_at <= ($2::timestamptz[])[1]
              and (d.claimed_until is null or d.claimed_until <= ($2::timestamptz[])[1]) and d.check_key is not null and d.digest_id is null
            order by d.next_attempt_at limit $3 for no key update skip locked`,
          values: [channelId, instantArray([now]), limit],
        }),
      async (tx, locked) => {
        isMore = locked.length === limit
        return locked.length === 0 ? [] : (await tx.query<ClaimRow>(claimLocked(channelId, locked, until))).rows
      },
    ),
  )
  const claimed = rows.flatMap(({ moved: _, ...row }) => (row.id === null ? [] : [row as DigestDelivery]))
  return { claimed, moved: rows[0]?.moved ?? 0, isMore }
}

type ClaimRow = Omit<DigestDelivery, 'id'> & { readonly id: string | null; readonly moved: number }

function claimLocked(channelId: string, locked: readonly unknown[][], until: Instant): Statement {
  return {
    name: 'claim_for_digest',
    text: `with placed as materialized (
        select d.event_id, $1::uuid as channel_id, older.next_attempt_at as behind
        from unnest($2::uuid[], $3::int8[]) d (event_id, check_key)
        left join lateral (
          select o.next_attempt_at from deliveries o
          where o.channel_id = $1 and o.check_key = d.check_key and o.status = 0 and o.event_id < d.event_id
            and o.event_id not in (select unnest($2::uuid[]))
          order by o.event_id limit 1) older on true),
      ${CLAIM_PLACED}
      select c.id, c.event_id as "eventId", c.channel_id as "channelId", c.check_key as "checkKey", c.type, c.attempts,
        c.attempts - c.attempts_before as attempt, c.give_up_at as "giveUpAt", c.refused_at as "refusedAt", (select count(*) from moved) as moved,
        exists (select from events e where e.id = c.event_id and e.subject is not null) as "hasEvent"
      from (select 1) one left join claimed c on true
      order by c.event_id`,
    values: [
      channelId,
      uuidArray(locked.map(([eventId]) => eventId as string)),
      int8Array(locked.map(([, checkKey]) => checkKey as number)),
      instantArray([until]),
    ],
  }
}

/** The events of these ids that are stored. */
export async function findEvents(db: Queryable, ids: readonly string[]): Promise<Map<string, Event>> {
  const { rows } = await db.query<EventRow & { id: string }>({
    name: 'find_events',
    text: `select e.id, ${EVENT_COLUMNS} from events e where e.id = any($1::uuid[])`,
    values: [uuidArray(ids)],
  })
  return new Map(
    rows.flatMap(({ id, ...row }) => {
      const event = toEvent(id, row)
      return event === null ? [] : [[id, event] as const]
    }),
  )
}
