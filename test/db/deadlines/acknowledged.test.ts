/** Reminders of an incident that a person has in hand: they are not sent, and a delivery says so. */

import { expect, it } from 'vitest'
import { endAcknowledgement } from '../../../src/checks/acknowledge.ts'
import { acknowledgeByLink } from '../../../src/checks/acknowledge-by-link.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, usePings } from '../pings/fixture.ts'

const t = usePings()
const replica = useEach(() => t.addReplica('one'))
const ago = (ms: number) => Math.floor(systemClock.now()) - ms

async function expire() {
  await t.stayUp()
  const { failed } = await expireOverdue({ database: t.database, now: () => 0 }, 10)
  expect(failed).toEqual([])
}

/** The deliveries of a webhook, oldest first. */
async function deliveries() {
  const { rows } = await t.database.query<{ type: string; status: number; reason: string | null }>(
    `select e.type, d.status, d.reason from deliveries d join events e on e.id = d.event_id order by e.id`,
  )
  return rows.map(({ type, status, reason }) => [type, status === 3 ? reason : 'sent'])
}

it('is suppressed while the acknowledgement holds, and sent when it has ended', async () => {
  await t.database.query(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
      values (gen_random_uuid(), $1, 'webhook', 'Team', '\\x00', '\\x00', array['check.down', 'check.up'], now())`,
    [t.tenant().organizationId],
  )
  const check = await t.addCheck({ spec: { remindEverySeconds: 3_600 } }, ago(24 * HOUR))
  const ping = (type: 'success' | 'fail', at: number) => replica.commit([pingOf(check, { type, exitCode: 1, at })])
  const [firstAt, downAt] = [ago(3 * HOUR), ago(2 * HOUR)]
  await ping('success', firstAt)
  await ping('fail', downAt)
  const past = { ...t.context, clock: { now: () => downAt + MINUTE } }
  const pressed = await acknowledgeByLink(
    past,
    { checkId: check.id, since: downAt },
    { name: 'Ada', address: '192.0.2.1' },
  )
  expect(pressed).toMatchObject({ isNew: true })
  await expire()
  const suppressed = [
    ['check.down', 'sent'],
    ['check.down', 'acknowledged'],
  ]
  expect(await deliveries()).toEqual(suppressed)
  await endAcknowledgement(t.context, t.tenant(), check.id)
  await t.database.query(
    `update check_states set down_notified_at = down_notified_at - interval '1 hour', wake_at = wake_at - interval '1 hour'`,
  )
  await expire()
  expect(await deliveries()).toEqual([...suppressed, ['check.down', 'sent']])
  await ping('success', ago(0))
  expect((await deliveries()).at(-1)).toEqual(['check.up', 'sent'])
})
