/** Thresholds, reminders and pauses that end, in the database: what is stored and sent, and by two replicas at once. */

import { expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import type { CheckInput } from '../../support/check.ts'
import { wakeOf } from '../../support/state.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, type Replica, usePings } from '../pings/fixture.ts'

const t = usePings()
const replica = useEach(() => t.addReplica('one'))
const other = useEach(() => t.addReplica('two'))
const ago = (ms: number) => Math.floor(systemClock.now()) - ms

/** No search counts as a stall, however long it takes. */
async function expire(by: Replica = replica) {
  await t.stayUp()
  return expireOverdue({ database: by.database, now: () => 0 }, 10)
}

/** A check with a period of an hour and five minutes of grace, made a day ago. */
const addCheck = (spec: NonNullable<CheckInput['spec']>) => t.addCheck({ spec }, ago(24 * HOUR))
const ping = (check: CheckRecord, type: 'success' | 'fail', msAgo: number) =>
  replica.commit([pingOf(check, { type, exitCode: type === 'fail' ? 1 : 0, at: ago(msAgo) })])

async function addChannel(kind: string): Promise<string> {
  const { rows } = await t.database.query<{ id: string }>(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
      values (gen_random_uuid(), $1, $2, 'Team', '\\x00', '\\x00', array['check.down', 'check.up'], now()) returning id`,
    [t.tenant().organizationId, kind],
  )
  return rows[0]!.id
}

const sentTo = async (channel: string) => {
  const { rows } = await t.database.query<{ type: string; reminder: number | null }>(
    `select e.type, (e.data ->> 'reminder')::int4 as reminder from deliveries d join events e on e.id = d.event_id
      where d.channel_id = $1 order by e.id`,
    [channel],
  )
  return rows.map(({ type, reminder }) => reminder ?? type)
}

it('a counted miss is an entry of the history and no event, and the second one takes the check down', async () => {
  const check = await addCheck({ missesBeforeDown: 2 })
  await ping(check, 'success', 2 * HOUR + 6 * MINUTE)
  const [first, second] = [await expire(), await expire(other)]
  expect(first.flips).toMatchObject([{ reason: 'missed' }])
  expect(second.flips).toMatchObject([{ reason: 'missed' }])
  const flips = (await t.flipsOf(check)).map(({ from, to, reason }) => [from, to, reason])
  expect(flips.slice(0, 2)).toEqual([
    ['up', 'down', 'missed'],
    ['up', 'up', 'missed'],
  ])
  expect(await t.eventsOf(check)).toEqual(['check.down'])
  expect(await t.stateOf(check)).toMatchObject({ status: 'down', consecutiveMisses: 2 })
})

it('a success after a counted miss resets it, also one that would be plain', async () => {
  const check = await addCheck({ missesBeforeDown: 2 })
  await ping(check, 'success', HOUR + 6 * MINUTE)
  await expire()
  expect(await t.stateOf(check)).toMatchObject({ status: 'up', consecutiveMisses: 1 })
  await ping(check, 'success', 0)
  expect(await t.stateOf(check)).toMatchObject({ status: 'up', consecutiveMisses: 0 })
})

it('a fail below its threshold is in the history alone, and a lower threshold takes the check down', async () => {
  const check = await addCheck({ failuresBeforeDown: 3 })
  await ping(check, 'success', 3 * SECOND)
  await ping(check, 'fail', 2 * SECOND)
  await ping(check, 'fail', SECOND)
  expect(await t.stateOf(check)).toMatchObject({ status: 'up', consecutiveFailures: 2, lastOutcome: 'fail' })
  expect(await t.eventsOf(check)).toEqual([])
  await updateCheck(t.context, t.tenant(), check.id, { failuresBeforeDown: 2 })
  expect(await t.stateOf(check)).toMatchObject({ status: 'down', reason: 'failed' })
  expect(await t.eventsOf(check)).toEqual(['check.down'])
})

it('a threshold or a reminder that is changed moves no deadline', async () => {
  const check = await addCheck({ graceSeconds: 300 })
  await ping(check, 'success', HOUR)
  const before = await t.stateOf(check)
  await updateCheck(t.context, t.tenant(), check.id, { missesBeforeDown: 5, remindEverySeconds: 300 })
  expect(await t.stateOf(check)).toEqual(before)
})

it('one reminder is sent by whichever replica looks, and none to what repeats by itself', async () => {
  const [hook, alertmanager] = [await addChannel('webhook'), await addChannel('alertmanager')]
  const check = await addCheck({ remindEverySeconds: 3_600 })
  await ping(check, 'success', 3 * HOUR)
  await ping(check, 'fail', HOUR + MINUTE)
  expect(await wakeOf(t, check)).toBeLessThan(ago(0))
  await Promise.all([expire(), expire(other), expire(), expire(other)])
  expect(await sentTo(hook)).toEqual(['check.down', 1])
  expect(await sentTo(alertmanager)).toEqual(['check.down'])
  expect(await wakeOf(t, check)).toBeGreaterThan(ago(-59 * MINUTE))
  await ping(check, 'success', 0)
  expect(await sentTo(hook)).toEqual(['check.down', 1, 'check.up'])
  expect(await sentTo(alertmanager)).toEqual(['check.down', 'check.up'])
})

it('a reminder of a further run is about that run', async () => {
  const hook = await addChannel('webhook')
  const check = await addCheck({ remindOnEachRun: true })
  await ping(check, 'success', 3 * HOUR)
  await ping(check, 'fail', 2 * MINUTE)
  await replica.commit([
    pingOf(check, { type: 'fail', exitCode: 7, at: ago(MINUTE) }),
    pingOf(check, { type: 'log', exitCode: null, at: ago(SECOND) }),
  ])
  expect(await sentTo(hook)).toEqual(['check.down', 1])
  const { rows } = await t.database.query('select last_ping, data from events order by id desc limit 1')
  expect(rows).toMatchObject([{ last_ping: { exit_code: 7 }, data: { reason: 'failed', previous_status: 'down' } }])
})

it('a pause ends at its time, by whichever replica looks, and says so once', async () => {
  const check = await addCheck({})
  await ping(check, 'success', 2 * HOUR)
  const past = { ...t.context, clock: { now: () => ago(2 * MINUTE) } }
  const paused = await pauseCheck(past, t.tenant(), check.id, { forSeconds: 60, comment: 'Disks are replaced' })
  expect(paused.state.pause).toMatchObject({ comment: 'Disks are replaced' })
  expect(await wakeOf(t, check)).toBe(paused.state.pause!.until)
  const found = await Promise.all([expire(), expire(other), expire(), expire(other)])
  expect(found.flatMap(({ flips }) => flips.map(({ reason }) => reason))).toEqual(['resumed'])
  expect(await t.stateOf(check)).toMatchObject({ status: 'new', pause: null, since: paused.state.pause!.until })
  expect(await t.eventsOf(check)).toEqual(['check.paused', 'check.resumed'])
})

it('pausing again replaces the end, and is one entry of the history', async () => {
  const check = await addCheck({})
  await ping(check, 'success', MINUTE)
  await pauseCheck(t.context, t.tenant(), check.id, { forSeconds: 60 })
  const { state } = await pauseCheck(t.context, t.tenant(), check.id, { forSeconds: 7_200 })
  expect(await wakeOf(t, check)).toBe(state.pause!.until)
  expect(state.pause!.until).toBeGreaterThan(ago(-2 * HOUR + MINUTE))
  await pauseCheck(t.context, t.tenant(), check.id)
  expect(await wakeOf(t, check)).toBeNull()
  expect(await t.eventsOf(check)).toEqual(['check.paused'])
})

it.each([
  [{ forSeconds: 10, until: 1 }, 'until', 'cannot be given beside for_seconds'],
  [{ until: 1 }, 'until', 'must be a time within 31536000 seconds from now'],
  [{ until: systemClock.now() + 366 * 24 * HOUR }, 'until', 'must be a time within 31536000 seconds from now'],
])('a pause with %j is refused', async (input, field, message) => {
  const check = await addCheck({})
  await expect(pauseCheck(t.context, t.tenant(), check.id, input)).rejects.toMatchObject({
    code: 'invalid_request',
    field,
    message,
  })
})
