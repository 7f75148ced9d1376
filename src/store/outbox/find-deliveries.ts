/**
 * Deliveries as the API shows and repeats them. A caller sees those of its organization; a caller bound to a project sees only those
 * of the project. Both are columns of the delivery.
 */

import type { Tenant } from '../../domain/access.ts'
import {
  type Cause,
  type ChannelKind,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  type Suppression,
} from '../../domain/channel.ts'
import type { Instant } from '../../domain/check.ts'
import type { EventType } from '../../domain/event.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface DeliveryRecord {
  readonly id: string
  readonly eventId: string
  readonly type: EventType
  readonly channelId: string
  /** Its present name. */
  readonly channelName: string
  readonly channelKind: ChannelKind
  /** Null for a test. */
  readonly checkId: string | null
  /** Its present name; null for a test, and when the check was removed. */
  readonly checkName: string | null
  readonly status: DeliveryStatus
  /** Why it is suppressed, and by what; null unless it is, and where nothing is to be named. */
  readonly reason: Suppression | null
  readonly cause: Cause | null
  readonly attempts: number
  /** While an attempt is running, the time at which its claim expires. Null unless pending. */
  readonly nextAttemptAt: Instant | null
  readonly lastStatus: number | null
  readonly lastError: string | null
  readonly createdAt: Instant
  readonly deliveredAt: Instant | null
  /** The digest that it was delivered in; null unless it was. */
  readonly digestId: string | null
}

type Row = Omit<DeliveryRecord, 'status'> & { status: number; channelProjectId: string | null }

/** From `deliveries d` and its `channels c`. */
const COLUMNS = `d.id, d.event_id as "eventId", d.type, d.channel_id as "channelId", c.name as "channelName", c.kind as "channelKind",
  c.project_id as "channelProjectId", d.check_id as "checkId", (select k.name from checks k where k.id = d.check_id) as "checkName",
  d.status, d.reason, d.cause, d.attempts, case when d.status = 0 then greatest(d.next_attempt_at, d.claimed_until) end as "nextAttemptAt",
  d.last_status as "lastStatus", d.last_error as "lastError", d.created_at as "createdAt", d.delivered_at as "deliveredAt",
  d.digest_id as "digestId"`
const WITH_CHANNEL = 'join channels c on c.id = d.channel_id'

/** $1 organization, $2 project of the tenant or null. */
const VISIBLE = 'd.organization_id = $1 and ($2::uuid is null or d.project_id = $2)'

/** Responses of a channel of the whole organization are not for callers that are bound to a project: they can hold what other projects sent. */
function toDelivery({ status, channelProjectId, ...row }: Row, { projectId }: Tenant): DeliveryRecord {
  const isHidden = projectId !== null && channelProjectId === null
  return { ...row, status: DELIVERY_STATUSES[status]!, ...(isHidden ? { lastStatus: null, lastError: null } : {}) }
}

export interface DeliveryFilter {
  readonly channelId?: string
  readonly checkId?: string
  readonly status?: DeliveryStatus
  /** Only deliveries of events that happened at this time or later. */
  readonly since?: Instant
}

/** Up to `limit` deliveries older than `beforeId`, newest first; ids are in order of time. Without those of removed channels. */
export async function listDeliveryRows(
  db: Queryable,
  tenant: Tenant,
  { channelId, checkId, status, since }: DeliveryFilter,
  { beforeId, limit }: { beforeId: string | null; limit: number },
): Promise<DeliveryRecord[]> {
  const values: unknown[] = [tenant.organizationId, tenant.projectId, limit]
  const conditions: string[] = []
  // The statement has only the given conditions, so that the planner can choose an index for them.
  const add = (column: string, comparison: '=' | '<' | '>=', value: unknown) => {
    values.push(value)
    conditions.push(`and d.${column} ${comparison} $${values.length}`)
  }
  if (beforeId !== null) add('id', '<', beforeId)
  // By the id, which the index has, not by the time: a list that ends early does not read what is older.
  if (since !== undefined) add('id', '>=', firstIdAt(since))
  if (channelId !== undefined) add('channel_id', '=', channelId)
  if (checkId !== undefined) add('check_id', '=', checkId)
  if (status !== undefined) add('status', '=', DELIVERY_STATUSES.indexOf(status))
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from deliveries d ${WITH_CHANNEL}
      where ${VISIBLE} ${conditions.join(' ')} order by d.id desc limit $3`,
    values,
  )
  return rows.map((row) => toDelivery(row, tenant))
}

/** Deliveries of a channel that are read to find its last one: many can wait, and those of the installation's channel are of all organizations. */
const LOOK_BACK = 1_000

/**
 * The newest delivery of each channel that was attempted, among its newest LOOK_BACK; none of channels without one. `between` and the order by
 * channel_id, twice, leave the planner only the index of a channel's deliveries: with `=` it walks the ids of all, the whole table for a channel without one.
 */
export async function listLastDeliveries(
  db: Queryable,
  tenant: Tenant,
  channelIds: readonly string[],
): Promise<DeliveryRecord[]> {
  const { rows } = await db.query<Row>(
    `select last.* from unnest($3::uuid[]) w (channel_id) cross join lateral (
        select ${COLUMNS} from (
          select * from deliveries o where o.channel_id between w.channel_id and w.channel_id
          order by o.channel_id desc, o.id desc limit ${LOOK_BACK}) d ${WITH_CHANNEL}
        where ${VISIBLE} and d.attempts > 0 order by d.channel_id desc, d.id desc limit 1) last`,
    [tenant.organizationId, tenant.projectId, channelIds],
  )
  return rows.map((row) => toDelivery(row, tenant))
}

/** Null when the tenant has no such delivery, or its channel was removed. */
export async function findDelivery(db: Queryable, tenant: Tenant, id: string): Promise<DeliveryRecord | null> {
  const { rows } = await db.query<Row>(
    `select ${COLUMNS} from deliveries d ${WITH_CHANNEL} where ${VISIBLE} and d.id = $3`,
    [tenant.organizationId, tenant.projectId, id],
  )
  return rows[0] === undefined ? null : toDelivery(rows[0], tenant)
}

export interface LockedDelivery {
  readonly delivery: DeliveryRecord
  /** Null when the channel was removed. */
  readonly isChannelMuted: boolean | null
  /** The channel serves another project now. */
  readonly isElsewhere: boolean
}

/** Locks a delivery against claims and outcomes until the transaction ends. Null when the tenant has no such delivery. */
export async function lockDelivery(tx: Queryable, tenant: Tenant, id: string): Promise<LockedDelivery | null> {
  const { rows } = await tx.query<Row & { isChannelMuted: boolean | null; isElsewhere: boolean }>(
    `select ${COLUMNS}, c.muted as "isChannelMuted",
        coalesce(c.project_id <> d.project_id, false) as "isElsewhere"
      from deliveries d left join channels c on c.id = d.channel_id
      where ${VISIBLE} and d.id = $3 for no key update of d`,
    [tenant.organizationId, tenant.projectId, id],
  )
  if (rows[0] === undefined) return null
  const { isChannelMuted, isElsewhere, ...row } = rows[0]
  return { delivery: toDelivery(row, tenant), isChannelMuted, isElsewhere }
}

/**
 * Makes a delivery pending and due. One that is pending keeps its attempt count and its end; another one has new ones.
 * The last status and error stay until the next attempt.
 */
export async function makeDeliveryDue(
  tx: Queryable,
  tenant: Tenant,
  id: string,
  { now, giveUpAt }: { now: Instant; giveUpAt: Instant },
): Promise<DeliveryRecord> {
  const { rows } = await tx.query<Row>(
    `update deliveries d set status = 0, reason = null, cause = null, next_attempt_at = $2::timestamptz, delivered_at = null, digest_id = null,
        give_up_at = case d.status when 0 then d.give_up_at else $3::timestamptz end,
        attempts_before = case d.status when 0 then d.attempts_before else d.attempts end,
        refused_at = case d.status when 0 then d.refused_at end
      from channels c where d.id = $1 and c.id = d.channel_id returning ${COLUMNS}`,
    [id, timestamp(now), timestamp(giveUpAt)],
  )
  return toDelivery(rows[0]!, tenant)
}
