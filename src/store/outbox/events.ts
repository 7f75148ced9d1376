/**
 * Events and their deliveries. They are written in the transaction of the flip, so that a flip without its event cannot exist (design,
 * section 5). An event contains all that a delivery reports: by the time it is sent, the check may be renamed or removed.
 */

import { ACKNOWLEDGING_KINDS, DELIVERY_STATUSES, type Held, INCIDENT_KINDS } from '../../domain/channel.ts'
import { type Instant, PING_TYPES, type PingType } from '../../domain/check.ts'
import type { Reach } from '../../domain/escalation.ts'
import {
  EVENT_BODY_BYTES,
  type Event,
  type EventCheck,
  type EventFacts,
  type EventPing,
  type EventType,
  type NotifiedType,
} from '../../domain/event.ts'
import { SOURCE_KIND } from '../../domain/last-run.ts'
import { withoutBrokenStart } from '../../domain/plain-text.ts'
import { PATIENCE_MS } from '../../domain/retry.ts'
import { EVENT_PAIRS } from '../checks/columns.ts'
import type { NewFlip } from '../history/new-flips.ts'
import { instantArray, int4Array, int8Array, jsonbArray, textArray, uuidArray } from '../postgres/binary-arrays.ts'
import type { Queryable, Statement } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { SERVES } from './channels.ts'

export interface NewEvent {
  readonly id: Buffer
  readonly key: number
  /** Null for check.late, check.warned, and for what is notified when a check stops flapping: these have no flip. */
  readonly flipId: Buffer | null
  /** The ping that caused the flip; null for the newest ping of the check. */
  readonly pingId: Buffer | null
  readonly type: NotifiedType
  readonly data: EventFacts
  readonly at: Instant
  /** Of an event without a flip: the run of a CronJob that it is about. */
  readonly about?: Pick<NewFlip, 'detail' | 'job'> | undefined
  /** Why no channel is sent the event. Null: channels are. */
  readonly suppressed: Held | null
  readonly reach: Reach
}

/** A UUIDv7 with the time of the event, so that ids of deliveries are in order of time. The first 15 characters end with the version. */
const DELIVERY_ID = (event: string) => `(left(${event}::text, 15) || substr(gen_random_uuid()::text, 16))::uuid`
const GIVE_UP_AT = (at: string) => `${at} + ${PATIENCE_MS} * interval '1 millisecond'`
const SUPPRESSED = DELIVERY_STATUSES.indexOf('suppressed')
const FAILED = DELIVERY_STATUSES.indexOf('failed')
/** Milliseconds, as in responses of the API. */
const ISO = (at: string) => `to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
/** Of these the usual duration is the median: some weeks of a daily job. */
const RECENT_PINGS = 40
const PING_TYPE = (type: string) => `(array['${PING_TYPES.join("', '")}'])[${type} + 1]`

/**
 * Inserts events, and a delivery for each channel that wants them (a suppressed one where nothing is sent), and that
 * the check has chosen or that is the installation's. A channel of INCIDENT_KINDS gets check.down if it wants it, and
 * always check.up and check.paused, which end incidents, and no reminder. `reach` says which `after_seconds` an event
 * is for; a channel with some gets check.paused only of such a kind. What the flip says of the run of a CronJob is
 * added; an event without a flip of its own says it itself, or takes that of the newest flip, if it is about that one.
 * `limit 1` in the inner queries keeps index lookups in the plan: a plan made for small tables would scan them, and
 * plans are kept for long.
 */
export function insertEvents(events: readonly NewEvent[]): Statement {
  return {
    name: 'insert_events',
    text: `with described as materialized (
        select i.*, coalesce(i.own_detail, f.detail) as detail, c.*, l.*, u.*
        from unnest($1::uuid[], $2::int8[], $3::uuid[], $4::text[], $5::jsonb[], $6::timestamptz[], $7::uuid[], $8::text[], $9::text[], $11::text[], $13::jsonb[], $14::int4[], $15::int4[], $16::int4[])
          i (event_id, check_key, flip_id, type, data, at, ping_id, own_detail, own_job, suppressed, cause, above, up_to, listed)
        left join lateral (
          select case when about then detail end as detail, case when about then job end as job from (
            select f.detail, f.job, f.reason = i.data ->> 'reason'
                and (i.flip_id is not null or date_trunc('milliseconds', f.at) = (i.data ->> 'occurred_at')::timestamptz) as about from flips f
            where f.check_key = i.check_key and (i.flip_id is null or f.id = i.flip_id) order by f.id desc limit 1) f) f on true
        left join lateral (
          select c.id as check_id, c.channels as chosen, p.id as project_id, p.organization_id, jsonb_strip_nulls(jsonb_build_object('description', c.description)) || jsonb_build_object(
              ${EVENT_PAIRS}, 'project', jsonb_build_object('id', p.id, 'slug', p.slug),
              'kubernetes', case when c.kubernetes_name is not null then jsonb_build_object(
                'cluster', c.kubernetes_cluster, 'namespace', c.kubernetes_namespace, 'name', c.kubernetes_name)
                || jsonb_strip_nulls(jsonb_build_object('run', coalesce(i.own_job, f.job), 'source', (
                  select jsonb_build_object('kind', '${SOURCE_KIND}', 'name', j.name) from cron_jobs j where j.check_key = c.key))) end) as subject
          from checks c join projects p on p.id = c.project_id where c.key = i.check_key limit 1) c on true
        left join lateral (
          select jsonb_build_object('type', ${PING_TYPE('p.type')}, 'exit_code', p.exit_code, 'duration_ms', p.duration_ms,
              'created_at', ${ISO('p.created_at')}) as last_ping,
            (select ${BODY_END('b.body')} from ping_bodies b
              where b.check_key = p.check_key and b.ping_id = p.id) as last_body
          from pings p where p.check_key = i.check_key and (i.ping_id is null or p.id = i.ping_id)
          order by p.id desc limit 1) l on true
        left join lateral (
          select percentile_disc(0.5) within group (order by r.duration_ms) as usual_ms from (
            select p.type, p.duration_ms from pings p where p.check_key = i.check_key order by p.id desc limit ${RECENT_PINGS}) r
          where r.duration_ms is not null and r.type <> ${PING_TYPES.indexOf('fail')}) u on true),
      made as (
        insert into deliveries (event_id, channel_id, id, check_key, organization_id, project_id, check_id, type,
            status, reason, cause, next_attempt_at, give_up_at, created_at)
        select t.event_id, c.id, ${DELIVERY_ID('t.event_id')}, t.check_key, t.organization_id, t.project_id, t.check_id, t.type,
          case when c.muted or is_early or t.suppressed is not null then ${SUPPRESSED} else 0 end,
          case when c.muted then 'muted' when is_early then 'escalation' else t.suppressed end,
          case when c.muted or is_early then jsonb_build_object('kind', 'channel', 'id', c.id) else t.cause end,
          case when not (c.muted or is_early) and t.suppressed is null then t.at end, ${GIVE_UP_AT('t.at')}, t.at
        from described t join channels c on ${SERVES}
          and c.after_seconds > t.above and c.after_seconds <= t.listed
          and not (c.kind = any($10::text[]) and t.data ? 'reminder')
          and case when c.kind <> all($10::text[]) or t.type = 'check.down' then t.type = any(c.event_types)
              and (t.type <> 'check.paused' or c.after_seconds = 0)
            else t.type in ('check.up', 'check.paused') or t.type = 'check.acknowledged' and c.kind = any($12::text[]) end
          -- Its after_seconds may have changed since. A reminder that was not sent hides nothing that was.
          cross join lateral (
            select (c.after_seconds > t.up_to or t.data ? 'escalated') and coalesce((
              select d.type = 'check.down' from deliveries d
              where d.check_id = t.check_id and d.channel_id = c.id and d.type in ('check.down', 'check.up')
                and not (d.type = 'check.down' and (d.status = ${SUPPRESSED} or t.data ? 'escalated' and d.status = ${FAILED}))
                and (not t.data ? 'incident_at' or d.created_at >= (t.data ->> 'incident_at')::timestamptz)
              order by d.id desc limit 1), false) as is_told) o
          cross join lateral (select c.after_seconds > t.up_to and not is_told as is_early) e
        where not (t.data ? 'escalated' and is_told) and not (t.type = 'check.acknowledged' and is_early)
        returning event_id)
      insert into events (id, check_key, flip_id, type, data, created_at, subject, last_ping, last_body)
      select event_id, check_key, flip_id, type, jsonb_strip_nulls(jsonb_build_object('detail', detail, 'usual_ms', usual_ms)) || data,
        at, subject, last_ping, last_body
      from described where suppressed is null and type <> 'check.acknowledged' and not data ? 'escalated'
        or event_id in (select event_id from made)`,
    values: [
      uuidArray(events.map((event) => event.id)),
      int8Array(events.map((event) => event.key)),
      uuidArray(events.map((event) => event.flipId)),
      textArray(events.map((event) => event.type)),
      jsonbArray(events.map((event) => event.data)),
      instantArray(events.map((event) => event.at)),
      uuidArray(events.map((event) => event.pingId)),
      textArray(events.map(({ about }) => about?.detail ?? null)),
      textArray(events.map(({ about }) => about?.job ?? null)),
      textArray(INCIDENT_KINDS),
      textArray(events.map(({ suppressed }) => suppressed?.reason ?? null)),
      textArray(ACKNOWLEDGING_KINDS),
      jsonbArray(events.map(({ suppressed }) => suppressed?.cause ?? null)),
      int4Array(events.map(({ reach }) => reach.above / 1_000)),
      int4Array(events.map(({ reach }) => reach.upTo / 1_000)),
      int4Array(events.map(({ reach }) => reach.listed / 1_000)),
    ],
  }
}

export interface TestEvent {
  readonly eventId: string
  readonly deliveryId: string
  readonly channelId: string
  readonly organizationId: string
  /** The project of the channel; null when it serves the whole organization. */
  readonly projectId: string | null
  readonly at: Instant
}

/** Inserts a channel.test with one delivery, to this channel, muted or not. */
export async function insertTestEvent(tx: Queryable, event: TestEvent): Promise<void> {
  const { eventId, deliveryId, channelId, organizationId, projectId, at } = event
  await tx.query(
    `with added as (insert into events (id, type, data, created_at) values ($1, 'channel.test', '{}', $6::timestamptz))
      insert into deliveries (event_id, channel_id, id, organization_id, project_id, type, next_attempt_at, give_up_at, created_at)
      values ($1, $2, $3, $4, $5, 'channel.test', $6::timestamptz, ${GIVE_UP_AT('$6::timestamptz')}, $6::timestamptz)`,
    [eventId, channelId, deliveryId, organizationId, projectId, timestamp(at)],
  )
}

/** A row of the table, and the type of the event. */
export interface EventRow {
  readonly type: EventType
  readonly data: EventFacts
  /** Null for a test. */
  readonly subject: EventCheck | null
  readonly lastPing: (Omit<EventPing, 'type' | 'body'> & { readonly type: PingType }) | null
  readonly lastBody: Buffer | null
  readonly at: Instant
}

export function toEvent(id: string, { type, data, subject, lastPing, lastBody, at }: EventRow): Event {
  if (type === 'channel.test') return { id, type, at }
  const body = lastBody === null ? null : toBodyText(lastBody)
  return { id, type, at, facts: data, check: subject!, lastPing: lastPing === null ? null : { ...lastPing, body } }
}

/** The end of the body of a ping, an expression of bytea. */
export const BODY_END = (body: string) =>
  `substring(${body} from greatest(1, octet_length(${body}) - ${EVENT_BODY_BYTES - 1}))`

/** Reads a BODY_END. Only a body that may have been cut can begin in the middle of a character. */
export const toBodyText = (bytes: Buffer): string =>
  (bytes.length === EVENT_BODY_BYTES ? withoutBrokenStart(bytes) : bytes).toString()
