import { describe, expect, it } from 'vitest'
import type { ChannelDeliveries } from '../../../../src/channels/declare-channel.ts'
import { toTime } from '../../../../src/kubernetes/objects.ts'
import { describeChannel, isOutdated, UNDELIVERED_MS } from '../../../../src/operator/channels/channel-status.ts'
import { computeStatus } from '../../../../src/operator/resource/declare.ts'
import type { HeartbeatChannel, HeartbeatChannelStatus } from '../../../../src/operator/schema/channel.ts'
import { MINUTE, NOON } from '../../../support/builders.ts'

const deliveries = (changes: Partial<ChannelDeliveries> = {}): ChannelDeliveries => ({
  namespace: 'shop',
  name: 'ops',
  channelId: 'c1',
  exists: true,
  undelivered: null,
  lastDeliveredAt: null,
  ...changes,
})
const resource = (status?: HeartbeatChannel['status'], spec: object = {}) =>
  ({
    metadata: { name: 'ops', namespace: 'shop', uid: 'u1', resourceVersion: '1', generation: 3 },
    spec: { ntfy: { topic: 'ops' }, ...spec },
    ...(status && { status }),
  }) as HeartbeatChannel

const statusAt = (found: ChannelDeliveries, now = NOON, object = resource()) =>
  computeStatus(object, 'i1', [], describeChannel(object, found, now), now) as HeartbeatChannelStatus
const delivering = (found: ChannelDeliveries, now = NOON, object = resource()) =>
  statusAt(found, now, object).conditions!.find(({ type }) => type === 'Delivering')

describe('Delivering', () => {
  const waiting = deliveries({ undelivered: { createdAt: NOON, error: 'HTTP 500' } })

  it('is False with the error from five minutes on', () => {
    expect(delivering(waiting, NOON + UNDELIVERED_MS - 1)).toMatchObject({ status: 'Unknown', reason: 'NothingSent' })
    expect(UNDELIVERED_MS).toBe(5 * MINUTE)
    expect(delivering(waiting, NOON + UNDELIVERED_MS)).toMatchObject({
      status: 'False',
      reason: 'NotDelivered',
      message: `a delivery of ${toTime(NOON)} is not delivered: HTTP 500`,
    })
  })

  it('is True after a delivery, and says nothing of a muted channel', () => {
    expect(delivering(deliveries({ lastDeliveredAt: NOON }))).toMatchObject({ status: 'True', reason: 'Delivered' })
    const muted = resource(undefined, { muted: true })
    expect(delivering(waiting, NOON + UNDELIVERED_MS, muted)).toMatchObject({ status: 'Unknown', reason: 'Muted' })
  })
})

describe('the time of the last delivery', () => {
  const shown = resource(statusAt(deliveries({ lastDeliveredAt: NOON })))

  it('is written at most once a minute', () => {
    const soon = deliveries({ lastDeliveredAt: NOON + MINUTE - 1_000 })
    expect(isOutdated(shown, soon, NOON + MINUTE)).toBe(false)
    expect(statusAt(soon, NOON, shown).lastDeliveryTime).toBe(toTime(NOON))
    const later = deliveries({ lastDeliveredAt: NOON + MINUTE })
    expect(isOutdated(shown, later, NOON + MINUTE)).toBe(true)
    expect(statusAt(later, NOON, shown).lastDeliveryTime).toBe(toTime(NOON + MINUTE))
  })

  it('stays when the deliveries were pruned', () => {
    expect(statusAt(deliveries(), NOON, shown).lastDeliveryTime).toBe(toTime(NOON))
  })
})

it('a channel that is gone from the database is outdated', () => {
  const shown = resource(statusAt(deliveries()))
  expect(isOutdated(shown, deliveries(), NOON)).toBe(false)
  expect(isOutdated(shown, deliveries({ exists: false }), NOON)).toBe(true)
})
