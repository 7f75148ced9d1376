/** The end of a silence, up to the receivers: each kind of channel is sent it once, and an alert fires then. */

import { expect, it } from 'vitest'
import { createAlertmanagerSender } from '../../../src/channels/kinds/alertmanager/send.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import type { Attempt } from '../../../src/delivery/outcome.ts'
import { CHANNEL_KINDS } from '../../../src/domain/channel.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { evaluate } from '../../support/evaluate.ts'
import { addSilence, messagesOf } from '../../support/silence.ts'
import { A, fakes, fixture, iso, keep, keepAfter, useAlerts } from './alerts-fixture.ts'
import { DELIVERED } from './fixture.ts'

useAlerts()

/** What receivers were sent: an Alertmanager has a sender of its own. */
async function addReceivers() {
  const settings = { kind: 'webhook', url: 'https://hooks.example.com/x' } as const
  await fixture.addChannel({ settings })
  await fixture.addChannel({ settings: { kind: 'pagerduty' } })
  const sent: unknown[] = []
  const send = async ({ channel, event }: Attempt) => {
    const from = event.type === 'channel.test' ? undefined : event.facts.silenced_from
    sent.push([channel.settings.kind, event.type, from])
    return DELIVERED
  }
  const { database, clock } = fixture
  const links = createLinks(() => 'https://heartbeat.example.com/api/v1')
  const alertmanager = createAlertmanagerSender({ client: fakes, clock, links, database })
  const senders = { ...Object.fromEntries(CHANNEL_KINDS.map((kind) => [kind, send])), alertmanager }
  const { drain } = fixture.createOutbox(send, { senders: senders as never })
  return {
    async take() {
      await drain()
      await keep()
      return sent.splice(0).sort()
    },
  }
}
const evaluateNow = (check: { id: string }) =>
  evaluate({ database: fixture.database, context: { clock: fixture.clock } as never }, check.id)

it('at its end each kind of channel is sent it once', async () => {
  const receivers = await addReceivers()
  const check = await fixture.addCheck({ spec: { periodSeconds: 604_800 } })
  const begins = fixture.clock.now() - HOUR
  await addSilence(fixture, fixture.tenant(), fixture.clock.now())
  const runId = newId(0)
  await fixture.ping(check, { type: 'start', runId })
  await fixture.ping(check, { type: 'fail', exitCode: 1, runId })
  expect(await messagesOf(fixture, check)).toEqual(Array(3).fill('(check.down: silenced)'))
  expect(await receivers.take()).toEqual([])
  // The keeper of alerts does not look at the status either.
  await keepAfter(MINUTE)
  expect(fakes.firing(A)).toEqual([])

  await fixture.clock.advance(HOUR - 3 * MINUTE - 1)
  await evaluateNow(check)
  expect(await receivers.take()).toEqual([])
  await fixture.clock.advance(1)
  await evaluateNow(check)
  await evaluateNow(check)
  const at = iso(begins)
  expect(await receivers.take()).toEqual([
    ['pagerduty', 'check.down', at],
    ['webhook', 'check.down', at],
  ])
  expect(fakes.firing(A)).toEqual([check.slug])

  await fixture.ping(check)
  expect(await receivers.take()).toEqual([
    ['pagerduty', 'check.up', undefined],
    ['webhook', 'check.up', undefined],
  ])
  expect(fakes.firing(A)).toEqual([])
})

it('an alert that fires already goes on, and ends with the silence in which the check recovered', async () => {
  const receivers = await addReceivers()
  const check = await fixture.addCheck({ spec: { periodSeconds: 604_800 } })
  await fixture.ping(check, { type: 'fail', exitCode: 1 })
  expect(await receivers.take()).toHaveLength(2)
  const at = iso(fixture.clock.now() - HOUR)
  await addSilence(fixture, fixture.tenant(), fixture.clock.now())
  await fixture.ping(check)
  expect(await receivers.take()).toEqual([])
  await keepAfter(MINUTE)
  expect(fakes.firing(A)).toEqual([check.slug])
  await fixture.clock.advance(HOUR - 2 * MINUTE)
  await evaluateNow(check)
  expect(await receivers.take()).toEqual([
    ['pagerduty', 'check.up', at],
    ['webhook', 'check.up', at],
  ])
  expect(fakes.firing(A)).toEqual([])
})
