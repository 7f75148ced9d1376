/**
 * What an Alertmanager is to believe about a check by our word, one row for each channel and check.
 *
 * Several may tell it at once: the sender of an event, and the keepers of all replicas. Whoever is about to, writes first what is
 * true and moves tell_at to the end of its claim; when it has told, the row must still be as it left it. If not, somebody else
 * wrote meanwhile, and nobody knows whose word arrived last: the row is due at once, and the truth is told again. So what an
 * Alertmanager hears last is true, and whoever dies on the way is replaced when its claim ends.
 *
 */

import { type Instant, STATUSES } from '../../domain/check.ts'
import { instantArray, int8Array, jsonbArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import { CHANNEL_COLUMNS, type ChannelRow } from './channels.ts'

export type Labels = Readonly<Record<string, string>>

export interface StoredAlert {
  readonly labels: Labels
  readonly annotations: Labels
  readonly startsAt: Instant
  /** Null: firing. */
  readonly resolvedAt: Instant | null
}

const ALERT_COLUMNS = `a.labels, a.annotations, a.starts_at as "startsAt", a.resolved_at as "resolvedAt"`
/** Whatever anybody's clock says. */
const AT_ONCE = `'epoch'`
const DOWN = STATUSES.indexOf('down')

/** Which row, and until when it is the caller's to tell: a time that no other claim has (claimUntil). */
export interface Claim {
  readonly channelId: string
  readonly checkKey: number
  readonly until: Instant
}

/** Longer than any telling. */
const CLAIM_MS = 30_000
const CLAIM_SPREAD_MS = 1_000

/** `random`: 0 .. 1, which tells claims of the same moment apart. */
export function claimUntil(now: Instant, random = Math.random()): Instant {
  return now + CLAIM_MS + CLAIM_SPREAD_MS * random
}

/**
 * From now on the alert fires. `before`: the one that it takes the place of. `isNewest` false: the row is of a later alert and stays.
 */
export async function raiseAlert(
  db: Queryable,
  { channelId, checkKey, until }: Claim,
  { labels, annotations, startsAt }: Omit<StoredAlert, 'resolvedAt'>,
): Promise<{ isNewest: boolean; before: StoredAlert | null }> {
  const { rows } = await db.query<StoredAlert & { isNewest: boolean; startsAt: Instant | null }>({
    name: 'raise_alert',
    text: `with raised as (
        insert into alerts as a (channel_id, check_key, labels, annotations, starts_at, tell_at)
        values ($1, $2, ($3::jsonb[])[1], ($3::jsonb[])[2], ($4::timestamptz[])[1], ($4::timestamptz[])[2])
        on conflict (channel_id, check_key) do update
        set labels = excluded.labels, annotations = excluded.annotations, starts_at = excluded.starts_at, resolved_at = null,
          tell_at = excluded.tell_at
        where a.starts_at <= excluded.starts_at
        returning 1)
      select exists (select from raised) as "isNewest", ${ALERT_COLUMNS}
      from (select 1) one left join alerts a on a.channel_id = $1 and a.check_key = $2`,
    values: [channelId, checkKey, jsonbArray([labels, annotations]), instantArray([startsAt, until])],
  })
  const { isNewest, ...before } = rows[0]!
  return { isNewest, before: before.startsAt === null ? null : before }
}

/** From now on it does not. Null when there is no alert of the check, or only one that began after `at`. */
export async function resolveAlert(
  db: Queryable,
  { channelId, checkKey, until }: Claim,
  at: Instant,
  now: Instant,
): Promise<StoredAlert | null> {
  const { rows } = await db.query<StoredAlert>({
    name: 'resolve_alert',
    text: `update alerts a set resolved_at = coalesce(a.resolved_at, ($3::timestamptz[])[2]), tell_at = ($3::timestamptz[])[3]
      where a.channel_id = $1 and a.check_key = $2 and a.starts_at <= ($3::timestamptz[])[1]
      returning ${ALERT_COLUMNS}`,
    values: [channelId, checkKey, instantArray([at, now, until])],
  })
  return rows[0] ?? null
}

/** The channels that have something to tell; `channel` null: it was removed. */
export async function listChannelsToTell(
  db: Queryable,
  now: Instant,
): Promise<{ channelId: string; channel: ChannelRow | null }[]> {
  const { rows } = await db.query<ChannelRow & { channelId: string; id: string | null }>({
    name: 'list_channels_to_tell',
    text: `select d.channel_id as "channelId", ${CHANNEL_COLUMNS}
      from (select distinct a.channel_id from alerts a where a.tell_at <= ($1::timestamptz[])[1]) d
      left join channels c on c.id = d.channel_id order by d.channel_id`,
    values: [instantArray([now])],
  })
  return rows.map(({ channelId, ...channel }) => ({ channelId, channel: channel.id === null ? null : channel }))
}

export interface ClaimedAlert extends StoredAlert {
  readonly checkKey: number
  /** The check is down, and the channel serves it and is not muted. */
  readonly isTrue: boolean
  /** As the check is called now; null when it is gone. */
  readonly check: CheckNames | null
}

export interface CheckNames {
  readonly id: string
  readonly slug: string
  readonly project: string
  /** Of the resource that declares it. */
  readonly kubernetes: { readonly namespace: string; readonly name: string } | null
}

/**
 * Up to `limit` alerts of a channel that are due, longest due first, each with what is true of its check now; those that another
 * replica is at are left out. The inner limits are fences: the planner would join whole tables.
 */
export async function claimAlerts(
  db: Queryable,
  channelId: string,
  { now, until, limit }: { now: Instant; until: Instant; limit: number },
): Promise<ClaimedAlert[]> {
  const { rows } = await db.query<
    StoredAlert & {
      checkKey: number
      isTrue: boolean
      id: string | null
      slug: string
      project: string
      namespace: string | null
      name: string | null
    }
  >({
    name: 'claim_alerts',
    text: `with due as materialized (
        select a.check_key from alerts a
        where a.channel_id = $1 and a.tell_at <= ($2::timestamptz[])[1]
        order by a.tell_at limit $3 for no key update skip locked),
      a as (
        update alerts a set tell_at = ($2::timestamptz[])[2] from due d
        where a.channel_id = $1 and a.check_key = d.check_key
        returning a.*)
      select a.check_key as "checkKey", ${ALERT_COLUMNS}, c.id, c.slug, c.project, c.namespace, c.name, coalesce(
          c.status = ${DOWN} and not h.muted and coalesce(h.organization_id = c.organization_id, true)
            and coalesce(h.project_id = c.project_id, true), false) as "isTrue"
      from a left join channels h on h.id = $1
      left join lateral (
        select c.id, c.slug, c.project_id, c.kubernetes_namespace as namespace, c.kubernetes_name as name, p.organization_id,
          p.slug as project, s.status
        from checks c join projects p on p.id = c.project_id join check_states s on s.check_key = c.key
        where c.key = a.check_key limit 1) c on true`,
    values: [channelId, instantArray([now, until]), limit],
  })
  return rows.map(({ id, slug, project, namespace, name, ...row }) => {
    const kubernetes = namespace === null || name === null ? null : { namespace, name }
    return { ...row, check: id === null ? null : { id, slug, project, kubernetes } }
  })
}

export interface ToldAlert {
  readonly checkKey: number
  /** What the Alertmanager has heard. */
  readonly labels: Labels
  readonly resolvedAt: Instant | null
  readonly nextAt: Instant
}

/**
 * Keeps what was told under the claim that ends at `until`. Of alerts that somebody wrote since the claim nothing is kept, and
 * they are due at once; so are those that fire although their check is not down any more. Answers how many were written since.
 */
export async function finishTelling(
  db: Queryable,
  channelId: string,
  told: readonly ToldAlert[],
  until: Instant,
): Promise<number> {
  const { rowCount } = await db.query({
    name: 'finish_telling',
    text: `with i as materialized (
        select * from unnest($2::int8[], $3::jsonb[], $4::timestamptz[], $5::timestamptz[]) i (check_key, labels, resolved_at, next_at)),
      kept as (
        update alerts a set labels = i.labels, resolved_at = i.resolved_at, tell_at = case
          when i.resolved_at is not null or exists (select from check_states s where s.check_key = a.check_key and s.status = ${DOWN})
          then i.next_at else ${AT_ONCE} end
        from i where a.channel_id = $1 and a.check_key = i.check_key and a.tell_at = ($6::timestamptz[])[1]
        returning a.check_key)
      update alerts a set tell_at = ${AT_ONCE}
      from i where a.channel_id = $1 and a.check_key = i.check_key
        and not exists (select from kept k where k.check_key = a.check_key)`,
    values: [
      channelId,
      int8Array(told.map(({ checkKey }) => checkKey)),
      jsonbArray(told.map(({ labels }) => labels)),
      instantArray(told.map(({ resolvedAt }) => resolvedAt)),
      instantArray(told.map(({ nextAt }) => nextAt)),
      instantArray([until]),
    ],
  })
  return rowCount
}

/** Those of these alerts that are still as their claim left them. */
export async function forgetAlerts(
  db: Queryable,
  channelId: string,
  checkKeys: readonly number[],
  until: Instant,
): Promise<void> {
  await db.query(
    'delete from alerts where channel_id = $1 and check_key = any($2::int8[]) and tell_at = ($3::timestamptz[])[1]',
    [channelId, int8Array(checkKeys), instantArray([until])],
  )
}

/** Of a channel that is gone. At each Alertmanager they end by themselves. */
export async function forgetChannelAlerts(db: Queryable, channelId: string): Promise<void> {
  await db.query(
    'delete from alerts a where a.channel_id = $1 and not exists (select from channels c where c.id = $1)',
    [channelId],
  )
}

/** In the transaction of a change after which a firing alert of the check may be wrong: the keeper looks at once. */
export async function hurryAlerts(tx: Queryable, checkKey: number): Promise<void> {
  await tx.query({
    name: 'hurry_alerts',
    text: `update alerts set tell_at = ${AT_ONCE} where check_key = $1`,
    values: [checkKey],
  })
}
