/**
 * The outbox (design, section 5). A pending delivery is due at next_attempt_at, unless a replica has claimed it until
 * claimed_until. The deliveries of one check to one channel are a sequence: only the oldest pending one, the head, is
 * sent. When a later one becomes due, it is postponed behind the head. When the head is finished, the next one is due.
 */

import { DELIVERY_STATUSES, type DeliveryStatus } from '../../domain/channel.ts'
import type { Instant } from '../../domain/check.ts'
import type { Event, EventType } from '../../domain/event.ts'
import { instantArray, int4Array, int8Array, textArray, uuidArray } from '../postgres/binary-arrays.ts'
import type { Database, Queryable, Statement } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { CHANNEL_COLUMNS, type ChannelRow } from './channels.ts'
import { type EventRow, toEvent } from './events.ts'

/** The time limit of a claim's transaction. A poll that hangs would block all later ones. */
const CLAIM_BUDGET_MS = 4_000

/**
 * The channels with a due delivery. The recursive query reads one index entry for each channel, however many deliveries wait. It has
 * this form because the planner has no other plan for it: with `exists`, a plan made while the table was empty read all due
 * deliveries on each call until the next `analyze`.
 */
export async function listDueChannels(db: Queryable, now: Instant): Promise<ChannelRow[]> {
  const { rows } = await db.query<ChannelRow>({
    name: 'list_due_channels',
    text: `with recursive waiting (channel_id, next_attempt_at) as (
        (select d.channel_id, d.next_attempt_at from deliveries d where d.status = 0 order by d.channel_id, d.next_attempt_at limit 1)
        union all
        select n.* from waiting w cross join lateral (
          select d.channel_id, d.next_attempt_at from deliveries d
          where d.status = 0 and d.channel_id > w.channel_id order by d.channel_id, d.next_attempt_at limit 1) n)
      select ${CHANNEL_COLUMNS} from waiting w join channels c on c.id = w.channel_id where w.next_attempt_at <= $1::timestamptz`,
    values: [timestamp(now)],
  })
  return rows
}

export interface ClaimedDelivery {
  readonly id: string
  readonly eventId: string
  readonly channelId: string
  readonly checkKey: number | null
  readonly type: EventType
  /** In all. The number also identifies this claim. */
  readonly attempts: number
  /** Since the delivery was created or requested again. */
  readonly attempt: number
  readonly giveUpAt: Instant
  /** Since when the receiver has refused each attempt; null when it did not refuse the last one. */
  readonly refusedAt: Instant | null
  readonly event: Event
}

/** How many deliveries of a channel a claim takes at most. */
export interface Wanted {
  readonly channelId: string
  readonly tests: number
  /** Less the tests that it takes. */
  readonly others: number
}

const IS_DUE = `d.channel_id = w.channel_id and d.status = 0 and d.next_attempt_at <= $4::timestamptz
            and (d.claimed_until is null or d.claimed_until <= $4::timestamptz)`

/**
 * Claims due deliveries of each channel, tests first, then the others, longest due first. Tests have no check: the
 * index of sequences finds them, however many other deliveries are due. `asOne`: one message, without an order within,
 * so a delivery behind its head is claimed with everything before it, and the events of several have no body of a ping.
 * `count`: how many were claimed or postponed.
 *
 * The second statement sees every head that was finished before the first one got its locks. A head that finishes later
 * makes the next delivery due (finishAttempts) behind these locks, so postponing that delivery here is safe. Exception:
 * a delivery that is inserted while its head finishes waits until the claim of the head would have expired.
 */
export async function claimDeliveries(
  db: Database,
  wanted: readonly Wanted[],
  { now, until, asOne = false }: { now: Instant; until: Instant; asOne?: boolean },
): Promise<{ claimed: ClaimedDelivery[]; count: number }> {
  return db.session((session) =>
    session.groupTransaction(
      CLAIM_BUDGET_MS,
      (tx) =>
        tx.queryColumns({
          name: 'lock_due_deliveries',
          text: `with wanted as materialized (
              select * from unnest($1::uuid[], $2::int4[], $3::int4[]) w (channel_id, tests, others)),
            tests as materialized (
              select d.* from wanted w cross join lateral (
                select d.event_id, d.channel_id, d.check_key from deliveries d where ${IS_DUE} and d.check_key is null
                order by d.check_key, d.event_id limit w.tests for no key update skip locked) d),
            others as materialized (
              select d.* from wanted w cross join lateral (
                select d.event_id, d.channel_id, d.check_key from deliveries d where ${IS_DUE} and d.check_key is not null
                order by d.next_attempt_at
                limit greatest(0, w.others - (select count(*) from tests t where t.channel_id = w.channel_id))
                for no key update skip locked) d)
            select * from tests union all select * from others`,
          values: [
            uuidArray(wanted.map(({ channelId }) => channelId)),
            int4Array(wanted.map(({ tests }) => tests)),
            int4Array(wanted.map(({ others }) => others)),
            timestamp(now),
          ],
        }),
      async (tx, locked) => {
        const rows = locked.length === 0 ? [] : (await tx.query<ClaimRow>(claimLocked(locked, until, asOne))).rows
        return { claimed: rows.map(toClaimed), count: locked.length }
      },
    ),
  )
}

function claimLocked(locked: readonly unknown[][], until: Instant, asOne: boolean): Statement {
  return {
    name: 'claim_deliveries',
    text: `with locked as materialized (
        select * from unnest($1::uuid[], $2::uuid[], $3::int8[]) d (event_id, channel_id, check_key)),
      placed as materialized (
        select d.event_id, d.channel_id, older.next_attempt_at as behind from locked d left join lateral (
          select o.next_attempt_at from deliveries o
          where o.channel_id = d.channel_id and o.check_key = d.check_key and o.status = 0 and o.event_id < d.event_id
            and not ($5 and (o.event_id, o.channel_id) in (select l.event_id, l.channel_id from locked l))
          order by o.event_id limit 1) older on true),
      moved as (
        update deliveries d set next_attempt_at = greatest(p.behind, $4::timestamptz)
        from placed p where d.event_id = p.event_id and d.channel_id = p.channel_id and p.behind is not null),
      claimed as (
        update deliveries d set claimed_until = $4::timestamptz, attempts = d.attempts + 1
        from placed p where d.event_id = p.event_id and d.channel_id = p.channel_id and p.behind is null
        returning d.*)
      select c.id, c.event_id as "eventId", c.channel_id as "channelId", c.check_key as "checkKey", c.type, c.attempts,
        c.attempts - c.attempts_before as attempt, c.give_up_at as "giveUpAt", c.refused_at as "refusedAt",
        e.data, e.subject, e.last_ping as "lastPing", e.created_at as at,
        case when not $5 or (select count(*) from claimed) = 1 then e.last_body end as "lastBody"
      from claimed c join events e on e.id = c.event_id
      order by c.event_id`,
    values: [
      uuidArray(locked.map(([eventId]) => eventId as string)),
      uuidArray(locked.map(([, channelId]) => channelId as string)),
      int8Array(locked.map(([, , checkKey]) => checkKey as number | null)),
      timestamp(until),
      asOne,
    ],
  }
}

type ClaimRow = Omit<ClaimedDelivery, 'event'> & EventRow

function toClaimed({ data, subject, lastPing, lastBody, at, ...row }: ClaimRow): ClaimedDelivery {
  return { ...row, event: toEvent(row.eventId, { type: row.type, data, subject, lastPing, lastBody, at }) }
}

export interface FinishedAttempt {
  readonly delivery: Pick<ClaimedDelivery, 'eventId' | 'channelId' | 'attempts'>
  readonly status: DeliveryStatus
  /** Null unless pending. */
  readonly nextAttemptAt: Instant | null
  /** Of the HTTP or SMTP response. */
  readonly lastStatus: number | null
  readonly lastError: string | null
  /** Default: null. */
  readonly refusedAt?: Instant | null
  /** The digest that it was sent in; null when it was sent alone, or not accepted. */
  readonly digestId: string | null
}

/**
 * Writes the outcomes of attempts and makes the next delivery of each sequence due. A success is stored always, a
 * failure only while the claim is still this one. The next delivery is updated even if it is due already, because
 * claimDeliveries may be about to postpone it; not if its own outcome is written here: a statement updates a row once.
 */
export async function finishAttempts(db: Queryable, attempts: readonly FinishedAttempt[], now: Instant): Promise<void> {
  await db.query({
    name: 'finish_attempts',
    text: `with i as materialized (
        select * from unnest($1::uuid[], $2::uuid[], $3::int4[], $4::int4[], $5::timestamptz[], $6::int4[], $7::text[], $9::uuid[], $10::timestamptz[])
          i (event_id, channel_id, attempts, status, next_attempt_at, last_status, last_error, digest_id, refused_at)),
      finished as (
        update deliveries d set status = i.status, next_attempt_at = i.next_attempt_at, claimed_until = null, last_status = i.last_status,
          last_error = i.last_error, refused_at = i.refused_at, delivered_at = case when i.status = 1 then $8::timestamptz end,
          digest_id = i.digest_id
        from i
        where d.event_id = i.event_id and d.channel_id = i.channel_id
          and case when i.status = 1 then d.status <> 1 else d.status = 0 and d.attempts = i.attempts end
        returning d.event_id, d.channel_id, d.check_key, d.status)
      update deliveries d set next_attempt_at = $8::timestamptz
      from finished f cross join lateral (
        select n.event_id from deliveries n
        where n.channel_id = f.channel_id and n.check_key = f.check_key and n.status = 0 and n.event_id > f.event_id
          and (n.event_id, n.channel_id) not in (select i.event_id, i.channel_id from i)
        order by n.event_id limit 1) next
      where f.status <> 0 and d.event_id = next.event_id and d.channel_id = f.channel_id`,
    values: [
      uuidArray(attempts.map(({ delivery }) => delivery.eventId)),
      uuidArray(attempts.map(({ delivery }) => delivery.channelId)),
      int4Array(attempts.map(({ delivery }) => delivery.attempts)),
      int4Array(attempts.map(({ status }) => DELIVERY_STATUSES.indexOf(status))),
      instantArray(attempts.map(({ nextAttemptAt }) => nextAttemptAt)),
      int4Array(attempts.map(({ lastStatus }) => lastStatus)),
      textArray(attempts.map(({ lastError }) => lastError)),
      timestamp(now),
      uuidArray(attempts.map(({ digestId }) => digestId)),
      instantArray(attempts.map(({ refusedAt = null }) => refusedAt)),
    ],
  })
}

/** The age of the oldest pending delivery in seconds; 0 when there is none. */
export async function oldestPendingSeconds(db: Queryable, now: Instant): Promise<number> {
  const { rows } = await db.query<{ seconds: number }>(
    `select greatest(0, extract(epoch from $1::timestamptz - min(created_at)))::float8 as seconds from deliveries d
      where status = 0 and exists (select from channels c where c.id = d.channel_id)`,
    [timestamp(now)],
  )
  return rows[0]?.seconds ?? 0
}

export interface Waiting {
  /** Pending deliveries; at most `limit`. */
  readonly count: number
  /** When the event of the oldest of them happened. */
  readonly oldestAt: Instant | null
  /** Since when the one that has been due for longest is due without being sent; null when no delivery is due. */
  readonly dueSince: Instant | null
}

/** The pending deliveries of an organization. Above `limit` the times are those of any `limit` of them. */
export async function findWaiting(
  db: Queryable,
  organizationId: string,
  { now, limit }: { now: Instant; limit: number },
): Promise<Waiting> {
  const { rows } = await db.query<Waiting>(
    `select count(*) as count, min(created_at) as "oldestAt",
        min(next_attempt_at) filter (where next_attempt_at <= $2::timestamptz and coalesce(claimed_until <= $2::timestamptz, true)) as "dueSince"
      from (
        select d.created_at, d.next_attempt_at, d.claimed_until from deliveries d
        where d.status = 0 and d.organization_id = $1 and exists (select from channels c where c.id = d.channel_id)
        limit $3) d`,
    [organizationId, timestamp(now), limit],
  )
  return rows[0]!
}
