import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { keepBeat } from '../../../src/checks/deadlines/beat.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { resumeCheck } from '../../../src/checks/pause-resume.ts'
import { createCheckCache } from '../../../src/checks/ping/cache.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { createFixture, type Fixture } from '../delivery/fixture.ts'

/** PostgreSQL's clock judges deadlines, so here time passes by moving the check into the past. */
let fixture: Fixture
beforeAll(async () => {
  fixture = await createFixture()
})
afterAll(() => fixture.close())
beforeEach(async () => {
  await fixture.clear()
  await beat()
})

const beat = () =>
  keepBeat({ database: fixture.database, recorder: { isWell: () => true, recovered: () => {} }, onGap: () => {} })
const expire = async () => {
  const { failed } = await expireOverdue({ database: fixture.database, cache: createCheckCache(), now: () => 0 }, 10)
  expect(failed).toEqual([])
}

/** Up for an hour, with five minutes of grace; its wake-up time is where a ping puts it. */
async function addUpCheck(spec: { graceSeconds?: number } = {}): Promise<void> {
  const check = await fixture.addCheck({ spec })
  await fixture.ping(check)
  const { rows } = await fixture.database.query<{ away: number }>(
    'select extract(epoch from now() - last_ping_at)::float8 * 1000 as away from check_states',
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

/** What a ping would write, and no more: it moves no wake-up time that is not too late. Up, unless told otherwise. */
async function completeNow(status = 1): Promise<void> {
  await fixture.database.query(
    `update check_states set status = $1, last_ping_at = now(), expected_at = now() + period_seconds * interval '1 second',
      due_at = now() + (period_seconds + grace_seconds) * interval '1 second'`,
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

it('is told once, when the completion was expected, and is no flip', async () => {
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

it('is told again in the next interval', async () => {
  await wantLate()
  await addUpCheck()
  for (const untilLateMs of [HOUR + MINUTE, HOUR - 3 * MINUTE]) {
    await pass(untilLateMs)
    await expire()
    // An on-time ping moves no wake-up time; the evaluator finds the new one by itself.
    await completeNow()
    await pass(4 * MINUTE)
    await expire()
  }
  expect(await types()).toEqual(['check.late', 'check.late'])
})

it('is told also when the grace time is longer than the interval', async () => {
  await wantLate()
  await addUpCheck({ graceSeconds: 3 * 3_600 })
  for (const round of [1, 2, 3]) {
    await pass(HOUR)
    await expire()
    expect(await types(), `round ${round}`).toEqual(Array.from({ length: round }, () => 'check.late'))
    await pass(MINUTE)
    await expire()
    // Late, and then on time again: the ping's new deadline is later, so it moves no wake-up time.
    await completeNow()
    await expire()
  }
})

it('is told in the first interval of a check that was armed before its first completion', async () => {
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

it('never moves the wake-up time beyond the deadline', async () => {
  await wantLate()
  await addUpCheck({ graceSeconds: 3 * 3_600 })
  for (let i = 0; i < 8; i += 1) {
    await pass(25 * MINUTE)
    await expire()
    const { rows } = await fixture.database.query('select from check_states where wake_at is null or wake_at > due_at')
    expect(rows).toEqual([])
  }
})

it('is told to nobody who did not ask, and then costs no wake-up', async () => {
  await fixture.addChannel()
  await fixture.addChannel({ eventTypes: ['check.late'], muted: true })
  await addUpCheck()
  await pass(HOUR + MINUTE)
  await expire()
  expect(await types()).toEqual([])
  const { rows } = await fixture.database.query('select from check_states where wake_at <> due_at')
  expect(rows).toEqual([])
})

it('is not told when our own downtime may have hidden the ping', async () => {
  await wantLate()
  await addUpCheck()
  await pass(HOUR + MINUTE)
  await fixture.database.query(
    `insert into gaps (started_at, ended_at) values (now() - interval '70 seconds', now() - interval '20 seconds')`,
  )
  await expire()
  expect(await types()).toEqual([])
})
