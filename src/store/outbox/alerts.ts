/**
 * The alerts that Alertmanagers should know, one row for each channel and check. Several writers may post the same
 * alert: the sender of an event, and the keepers of all replicas. Before a writer posts, it stores what is true and
 * moves tell_at to the end of its lease. If tell_at is another value after the post, another writer has changed the row
 * in between, and the order of the posts is unknown. Then the row becomes due at once, and what is true is posted again.
 */

import { type Instant, STATUSES } from '../../domain/check.ts'
import type { Labels } from '../../domain/labels.ts'
import { pingTypeCode } from '../checks/columns.ts'
import { instantArray, int8Array, jsonbArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { CHANNEL_COLUMNS, type ChannelRow } from './channels.ts'
import { BODY_END, toBodyText } from './events.ts'

export interface StoredAlert {
  readonly labels: Labels
  /** The labels of the check when the alert began: they are part of `labels` until it ends, whatever the check has since. */
  readonly checkLabels: Labels
  readonly annotations: Labels
  readonly startsAt: Instant
  /** Null: firing. */
  readonly resolvedAt: Instant | null
}

const ALERT_COLUMNS = `a.labels, a.check_labels as "checkLabels", a.annotations, a.starts_at as "startsAt", a.resolved_at as "resolvedAt"`
/** Due at once, by every clock. */
const AT_ONCE = `'epoch'`
const DOWN = STATUSES.indexOf('down')
/** Whether the recipients know the check, with the state `s`, as down. While it flaps, that is not its status. */
const IS_DOWN = `coalesce(s.notified, s.status) = ${DOWN}`

/** The smallest id of a ping of that time or later (runtime/ids.ts). */
const FIRST_ID_AT = (at: string) =>
  `rpad(lpad(to_hex(floor(extract(epoch from ${at}) * 1000)::int8), 12, '0'), 32, '0')::uuid`

/** The lease of a row. `until` identifies it: no other lease ends at that time (leaseUntil). */
export interface AlertLease {
  readonly channelId: string
  readonly checkKey: number
  readonly until: Instant
}

/** Longer than any post. */
const LEASE_MS = 30_000
const LEASE_SPREAD_MS = 1_000

/** The end of a lease that begins now. `random`: 0 .. 1, so that two leases of the same moment differ. */
export function leaseUntil(now: Instant, random = Math.random()): Instant {
  return now + LEASE_MS + LEASE_SPREAD_MS * random
}

/** Stores that the alert fires. `before`: the alert that it replaces. `isNewest` is false when the row holds a later alert; it stays. */
export async function raiseAlert(
  db: Queryable,
  { channelId, checkKey, until }: AlertLease,
  { labels, checkLabels, annotations, startsAt }: Omit<StoredAlert, 'resolvedAt'>,
): Promise<{ isNewest: boolean; before: StoredAlert | null }> {
  const { rows } = await db.query<StoredAlert & { isNewest: boolean; startsAt: Instant | null }>({
    name: 'raise_alert',
    text: `with raised as (
        insert into alerts as a (channel_id, check_key, labels, annotations, check_labels, starts_at, tell_at)
        values ($1, $2, $3::jsonb, $4::jsonb, $5::jsonb, $6::timestamptz, $7::timestamptz)
        on conflict (channel_id, check_key) do update
        set labels = excluded.labels, annotations = excluded.annotations, check_labels = excluded.check_labels,
          starts_at = excluded.starts_at, resolved_at = null, tell_at = excluded.tell_at
        where a.starts_at <= excluded.starts_at
        returning 1)
      select exists (select from raised) as "isNewest", ${ALERT_COLUMNS}
      from (select 1) one left join alerts a on a.channel_id = $1 and a.check_key = $2`,
    values: [channelId, checkKey, labels, annotations, checkLabels, timestamp(startsAt), timestamp(until)],
  })
  const { isNewest, ...before } = rows[0]!
  return { isNewest, before: before.startsAt === null ? null : before }
}

/** Stores that the alert has ended. Returns null when the check has no alert, or only one that began after `at`. */
export async function resolveAlert(
  db: Queryable,
  { channelId, checkKey, until }: AlertLease,
  at: Instant,
  now: Instant,
): Promise<StoredAlert | null> {
  const { rows } = await db.query<StoredAlert>({
    name: 'resolve_alert',
    text: `update alerts a set resolved_at = coalesce(a.resolved_at, $4::timestamptz), tell_at = $5::timestamptz
      where a.channel_id = $1 and a.check_key = $2 and a.starts_at <= $3::timestamptz
      returning ${ALERT_COLUMNS}`,
    values: [channelId, checkKey, timestamp(at), timestamp(now), timestamp(until)],
  })
  return rows[0] ?? null
}

/**
 * The channels with due alerts. Deletes the due alerts that ended before `overSince`, and those of removed channels,
 * which end at the Alertmanagers by themselves.
 */
export async function listChannelsWithDueAlerts(
  db: Queryable,
  now: Instant,
  overSince: Instant,
): Promise<ChannelRow[]> {
  const { rows } = await db.query<ChannelRow>({
    name: 'list_channels_with_due_alerts',
    text: `with over as (
        delete from alerts a where a.tell_at <= $1::timestamptz
          and (a.resolved_at < $2::timestamptz or not exists (select from channels c where c.id = a.channel_id)))
      select ${CHANNEL_COLUMNS} from channels c
      where c.id in (select a.channel_id from alerts a where a.tell_at <= $1::timestamptz) order by c.id`,
    values: [timestamp(now), timestamp(overSince)],
  })
  return rows
}

export interface LeasedAlert extends StoredAlert {
  readonly checkKey: number
  /** The check is down, as far as recipients know, and the channel serves it, is chosen and is not muted. */
  readonly isTrue: boolean
  /** The end of the newest text that a failing ping has brought since the alert began; null for none. */
  readonly newestText: string | null
  /** The present names of the check; null when it was removed. */
  readonly check: CheckNames | null
}

type LeasedRow = Omit<LeasedAlert, 'newestText'> & { newestBody: Buffer | null }

export interface CheckNames {
  readonly id: string
  readonly slug: string
  readonly project: string
  /** Of the resource that declares it. */
  readonly kubernetes: { readonly namespace: string; readonly name: string } | null
}

/**
 * Leases up to `limit` due alerts of a channel, longest due first, and returns each with the present state of its check. Rows that
 * another replica has locked are skipped. `limit 1` in the inner query keeps the planner from joining whole tables.
 */
export async function leaseAlerts(
  db: Queryable,
  channelId: string,
  { now, until, limit }: { now: Instant; until: Instant; limit: number },
): Promise<LeasedAlert[]> {
  const { rows } = await db.query<LeasedRow>({
    name: 'lease_alerts',
    text: `with due as materialized (
        select a.check_key from alerts a
        where a.channel_id = $1 and a.tell_at <= $2::timestamptz
        order by a.tell_at limit $4 for no key update skip locked),
      a as (
        update alerts a set tell_at = $3::timestamptz from due d
        where a.channel_id = $1 and a.check_key = d.check_key
        returning a.*)
      select a.check_key as "checkKey", ${ALERT_COLUMNS}, t.body as "newestBody", c.names as check, coalesce(
          c.is_down and not h.muted and coalesce(h.organization_id = c.organization_id, true)
            and coalesce(h.project_id = c.project_id, true)
            and (c.channels is null or h.id = any(c.channels) or h.organization_id is null), false) as "isTrue"
      from a left join channels h on h.id = $1
      left join lateral (
        select c.project_id, c.channels, p.organization_id, ${IS_DOWN} as is_down,
          jsonb_build_object('id', c.id, 'slug', c.slug, 'project', p.slug, 'kubernetes', case when c.kubernetes_name is not null
            then jsonb_build_object('namespace', c.kubernetes_namespace, 'name', c.kubernetes_name) end) as names
        from checks c join projects p on p.id = c.project_id join check_states s on s.check_key = c.key
        where c.key = a.check_key limit 1) c on true
      left join lateral (
        select ${BODY_END('b.body')} as body
        from pings p join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id and b.body is not null
        where p.check_key = a.check_key and p.id >= ${FIRST_ID_AT('a.starts_at')} and p.type = ${pingTypeCode('fail')}
        order by p.id desc limit 1) t on a.resolved_at is null`,
    values: [channelId, timestamp(now), timestamp(until), limit],
  })
  return rows.map(({ newestBody, ...row }) => ({
    ...row,
    newestText: newestBody === null ? null : toBodyText(newestBody),
  }))
}

export interface PostedAlert {
  readonly checkKey: number
  /** The labels that the Alertmanager has. */
  readonly labels: Labels
  readonly annotations: Labels
  readonly resolvedAt: Instant | null
  readonly nextAt: Instant
}

/**
 * Ends the lease that ends at `until` and stores what was posted. An alert that was changed during the lease is not stored and
 * becomes due at once. So does an alert that fires although its check is not down any more. Returns how many alerts were changed.
 */
export async function savePosted(
  db: Queryable,
  channelId: string,
  posted: readonly PostedAlert[],
  until: Instant,
): Promise<number> {
  const { rowCount } = await db.query({
    name: 'save_posted',
    text: `with i as materialized (
        select * from unnest($2::int8[], $3::jsonb[], $4::timestamptz[], $5::timestamptz[], $7::jsonb[])
          i (check_key, labels, resolved_at, next_at, annotations)),
      kept as (
        update alerts a set labels = i.labels, annotations = i.annotations, resolved_at = i.resolved_at, tell_at = case
          when i.resolved_at is not null or exists (select from check_states s where s.check_key = a.check_key and ${IS_DOWN})
          then i.next_at else ${AT_ONCE} end
        from i where a.channel_id = $1 and a.check_key = i.check_key and a.tell_at = $6::timestamptz
        returning a.check_key)
      update alerts a set tell_at = ${AT_ONCE}
      from i where a.channel_id = $1 and a.check_key = i.check_key
        and not exists (select from kept k where k.check_key = a.check_key)`,
    values: [
      channelId,
      int8Array(posted.map(({ checkKey }) => checkKey)),
      jsonbArray(posted.map(({ labels }) => labels)),
      instantArray(posted.map(({ resolvedAt }) => resolvedAt)),
      instantArray(posted.map(({ nextAt }) => nextAt)),
      timestamp(until),
      jsonbArray(posted.map(({ annotations }) => annotations)),
    ],
  })
  return rowCount
}

/** Makes all alerts of a check due at once, in the transaction of a change that may have made them wrong. */
export async function makeAlertsDue(tx: Queryable, checkKey: number): Promise<void> {
  await tx.query({
    name: 'make_alerts_due',
    text: `update alerts set tell_at = ${AT_ONCE} where check_key = $1`,
    values: [checkKey],
  })
}
