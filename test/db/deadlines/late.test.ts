import { expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { resumeCheck } from '../../../src/checks/pause-resume.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { useDelivery } from '../delivery/fixture.ts'

/** PostgreSQL's clock decides about deadlines: here time passes by moving the check into the past. */
const fixture = useDelivery()

/** In whole milliseconds, as a ping's time is: the evaluator compares whole milliseconds. */
const NOW = "date_trunc('milliseconds', now())"

/** As if the service had run all the while. */
const expire = async () => {
  await fixture.database.query('update service_beat set beat_at = clock_timestamp()')
  const { failed } = await expireOverdue({ database: fixture.database, now: () => 0 }, 10)
  expect(failed).toEqual([])
}

/** Just up, with a period of an hour and five minutes of grace; its wakeAt is as a ping sets it. */
async function addUpCheck(spec: { graceSeconds?: number } = {}): Promise<void> {
  const check = await fixture.addCheck({ spec })
  await fixture.ping(check)
  const { rows } = await fixture.database.query<{ away: number }>(
    `select extract(epoch from ${NOW} - last_ping_at)::float8 * 1000 as away from check_states`,
  )
  await pass(-rows[0]!.away)
}

async function pass(ms: number): Promise<void> {
  await fixture.database.query(
    `update check_states set last_ping_at = last_ping_at - i.passed, expected_at = expected_at - i.passed, due_at = due_at - i.passed,
      wake_at = wake_at - i.passed, since = since - i.passed from (select $1 * interval '1 millisecond' as passed) i`,
    [ms],
  )
}

/** Writes what a ping on time would write: wakeAt stays. Up, by default. */
async function completeNow(status = 1): Promise<void> {
  await fixture.database.query(
    `update check_states set status = $1, last_ping_at = ${NOW}, expected_at = ${NOW} + period_seconds * interval '1 second',
      due_at = ${NOW} + (period_seconds + grace_seconds) * interval '1 second'`,
    [status],
  )
}

async function events() {
  const { rows } = await fixture.database.query<{ type: string; data: { status: string }; flip_id: string | null }>(
    'select type, data, flip_id from events order by id',
  )
  return rows
}
const types = async () => (await events()).map(({ type }) => type)
const wantLate = () => fixture.addChannel({ eventTypes: ['check.late', 'check.down'] })

it('a late check has one event, at the expected time of its completion, and no flip', async () => {
  await wantLate()
  await addUpCheck()
  await pass(HOUR - MINUTE)
  await expire()
  expect(await types()).toEqual([])
  await pass(MINUTE)
  await expire()
  await pass(MINUTE)
  await expire()
  expect(await events()).toMatchObject([
    { type: 'check.late', flip_id: null, data: { reason: 'late', status: 'late', previous_status: 'up' } },
  ])
  expect((await fixture.deliveries()).map(({ type }) => type)).toEqual(['check.late'])
  await pass(4 * MINUTE)
  await expire()
  expect(await types()).toEqual(['check.late', 'check.down'])
})

it('a check that is late again in the next interval has another event', async () => {
  await wantLate()
  await addUpCheck()
  for (const untilLateMs of [HOUR + MINUTE, HOUR - 3 * MINUTE]) {
    await pass(untilLateMs)
    await expire()
    // A ping on time does not move wakeAt: the evaluator does.
    await completeNow()
    await pass(4 * MINUTE)
    await expire()
  }
  expect(await types()).toEqual(['check.late', 'check.late'])
})

it('a late check has one event for each interval when the grace time is longer', async () => {
  await wantLate()
  await addUpCheck({ graceSeconds: 3 * 3_600 })
  for (const round of [1, 2, 3]) {
    await pass(HOUR)
    await expire()
    expect(await types(), `round ${round}`).toEqual(Array.from({ length: round }, () => 'check.late'))
    await pass(MINUTE)
    await expire()
    // Late, and then on time again: the deadline of the ping is later, so wakeAt stays.
    await completeNow()
    await expire()
  }
})

it('a check that was resumed before its completion has its event in the first interval', async () => {
  await wantLate()
  await addUpCheck()
  await fixture.database.query('update check_states set status = 3, expected_at = null, due_at = null, wake_at = null')
  const { rows } = await fixture.database.query<{ id: string }>('select id from checks')
  await resumeCheck({ database: fixture.database, clock: systemClock }, fixture.tenant(), rows[0]!.id)
  await pass(MINUTE)
  await completeNow(1)
  await pass(HOUR - MINUTE)
  await expire()
  await pass(MINUTE)
  await expire()
  expect((await types()).filter((type) => type === 'check.late')).toEqual(['check.late'])
})

it('wakeAt is never later than the deadline', async () => {
  await wantLate()
  await addUpCheck({ graceSeconds: 3 * 3_600 })
  for (let i = 0; i < 8; i += 1) {
    await pass(25 * MINUTE)
    await expire()
    const { rows } = await fixture.database.query('select from check_states where wake_at is null or wake_at > due_at')
    expect(rows).toEqual([])
  }
})

it('without a channel that wants it there is no event, and no evaluation before the deadline', async () => {
  await fixture.addChannel()
  await fixture.addChannel({ eventTypes: ['check.late'], muted: true })
  await addUpCheck()
  await pass(HOUR + MINUTE)
  await expire()
  expect(await types()).toEqual([])
  const { rows } = await fixture.database.query('select from check_states where wake_at <> due_at')
  expect(rows).toEqual([])
})

it('a check whose ping may be hidden by a gap has no event', async () => {
  await wantLate()
  await addUpCheck()
  await pass(HOUR + MINUTE)
  await fixture.database.query(
    `insert into gaps (started_at, ended_at) values (now() - interval '70 seconds', now() - interval '20 seconds')`,
  )
  await expire()
  expect(await types()).toEqual([])
})
