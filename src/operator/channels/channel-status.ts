/** The status of a HeartbeatChannel beside what all kinds have. Pure. */

import type { ChannelDeliveries } from '../../channels/declare-channel.ts'
import { CHANNEL_KINDS } from '../../domain/channel.ts'
import type { Instant } from '../../domain/check.ts'
import { toTime } from '../../kubernetes/objects.ts'
import { conditionOf, cutMessage, type Statement } from '../resource/conditions.ts'
import type { Described } from '../resource/declared-kind.ts'
import type { DELIVERING_REASONS, HeartbeatChannel } from '../schema/channel.ts'

/** So long a delivery may wait before its channel counts as not delivering. */
export const UNDELIVERED_MS = 300_000
/** The time of the last delivery follows deliveries at most this often. */
const LAST_DELIVERY_STEP_MS = 60_000

/** `deliveries`: null where the service has no channel. */
export function describeChannel(
  object: HeartbeatChannel,
  deliveries: ChannelDeliveries | null,
  now: Instant,
): Described {
  const kind = CHANNEL_KINDS.find((kind) => object.spec[kind] !== undefined)
  const fields = {
    ...(deliveries === null ? {} : { channelId: deliveries.channelId }),
    ...(kind === undefined ? {} : { kind }),
    ...lastDeliveryOf(object, deliveries),
  }
  return { fields, statements: deliveries === null ? [] : [describeDelivering(object, deliveries, now)] }
}

/** Whether the status shows something else than what the deliveries say now. */
export function isOutdated(object: HeartbeatChannel, deliveries: ChannelDeliveries, now: Instant): boolean {
  // One that is stalled is tried again by itself.
  if (!deliveries.exists) return conditionOf(object.status, 'Stalled') === undefined
  const { status, reason, message } = describeDelivering(object, deliveries, now)
  const shown = conditionOf(object.status, 'Delivering')
  const isSame = shown?.status === status && shown.reason === reason && shown.message === cutMessage(message)
  return !isSame || lastDeliveryOf(object, deliveries).lastDeliveryTime !== object.status?.lastDeliveryTime
}

function lastDeliveryOf({ status }: HeartbeatChannel, deliveries: ChannelDeliveries | null) {
  const shown = status?.lastDeliveryTime
  const at = deliveries?.lastDeliveredAt ?? null
  if (at === null) return shown === undefined ? {} : { lastDeliveryTime: shown }
  const isDue = shown === undefined || Math.abs(at - Date.parse(shown)) >= LAST_DELIVERY_STEP_MS
  return { lastDeliveryTime: isDue ? toTime(at) : shown }
}

type Delivering = Statement<'Delivering', (typeof DELIVERING_REASONS)[number]>

function describeDelivering(
  { spec, status }: HeartbeatChannel,
  deliveries: ChannelDeliveries,
  now: Instant,
): Delivering {
  const { undelivered, lastDeliveredAt } = deliveries
  const type = 'Delivering'
  if (spec.muted === true)
    return { type, status: 'Unknown', reason: 'Muted', message: 'the channel is muted: it receives tests only' }
  if (undelivered !== null && now - undelivered.createdAt >= UNDELIVERED_MS) {
    const why = undelivered.error === null ? 'it was not tried yet' : undelivered.error
    const message = `a delivery of ${toTime(undelivered.createdAt)} is not delivered: ${why}`
    return { type, status: 'False', reason: 'NotDelivered', message }
  }
  return lastDeliveredAt === null && status?.lastDeliveryTime === undefined
    ? { type, status: 'Unknown', reason: 'NothingSent', message: 'nothing was delivered yet' }
    : { type, status: 'True', reason: 'Delivered', message: 'what is sent arrives' }
}
