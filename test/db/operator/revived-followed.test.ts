/** A check that follows a CronJob keeps its status when its resource is deleted and declared again, and each check.down has an end. */

import { expect, it, vi } from 'vitest'
import { type Declaration, declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import { findFollowedFacts } from '../../../src/store/jobs/cron-jobs.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import { cronSpec, NOW, pruneAll } from '../checks/fixture.ts'
import { cronJobOf, eventsOf, failAt, flipsOf, reportOf, successAt } from '../jobs/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
const spec = cronSpec('0 * * * *', { graceSeconds: 300, maxRuntimeSeconds: 1_800, jobArea: 'default' })
const DETAIL = 'container backup failed (exit code 3)'
const LATER = NOW + 10 * MINUTE

const declare = (given: Partial<Declaration> = {}) => t.declare({ spec, suspend: false, ...given })
const reports = async (...entries: Parameters<typeof reportOf>[1]) =>
  recordJobs(t.context, [reportOf({ key: 0, id: '', resource: RESOURCE }, entries)])
const sent = async (key: number) => (await eventsOf(t, key)).map(({ type, detail }) => [type, detail])

/** Declared, then down since NOW + 1 s. */
async function addDown() {
  const { check } = await declare()
  t.clock.time = NOW + MINUTE
  await reports(failAt(NOW + SECOND, `${DETAIL}\nmore`))
  expect((await t.read())!.state.status).toBe('down')
  return check
}

it('a check that was down is down again, in the same incident, which the next success closes', async () => {
  const { key, id } = await addDown()
  t.clock.time = NOW + 2 * MINUTE
  // A miss that was only counted is not why it is down.
  await t.database.query(
    `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, detail)
      select 'ffffffff-ffff-7fff-bfff-ffffffffffff', $1, now(), now(), 2, 2, 'missed', 'another run'`,
    [key],
  )
  const { state } = (await t.read())!
  expect(await findFollowedFacts(t.database, { key, state })).toMatchObject({ detail: DETAIL })
  expect(await findFollowedFacts(t.database, { key, state: { ...state, reason: 'missed' } })).toMatchObject({
    detail: null,
  })
  await t.retire()
  const removed = 'its HeartbeatCheck was deleted, and the check with it'
  const restored = `as before its HeartbeatCheck was deleted: ${DETAIL}`
  expect(await sent(key)).toEqual([
    ['check.down', DETAIL],
    ['check.paused', removed],
  ])
  t.clock.time = LATER
  const { check, change } = await declare()
  await t.database.query('delete from flips where from_status = to_status')
  expect([change, check.id, check.state]).toMatchObject([
    'revived',
    id,
    { status: 'down', reason: 'failed', since: LATER, dueAt: null, incidentSince: NOW + SECOND },
  ])
  expect((await flipsOf(t, key)).at(-1)).toEqual({
    reason: 'failed',
    at: LATER,
    detail: restored,
    job: 'nightly-backup-1',
  })
  await reports(failAt(LATER + SECOND))
  t.clock.time = LATER + MINUTE
  await reports(successAt(LATER + 2 * SECOND))
  expect(await sent(key)).toEqual([
    ['check.down', DETAIL],
    ['check.paused', removed],
    ['check.down', restored],
    ['check.up', null],
  ])
  expect((await t.read())!.state).toMatchObject({ status: 'up', reason: 'recovered', incidentSince: null })
})

it('a success of the time in which it was away brings it up', async () => {
  const { key } = await addDown()
  await t.retire()
  t.clock.time = LATER
  await declare()
  await reports(successAt(NOW + 5 * MINUTE))
  expect((await t.read())!.state.status).toBe('up')
  expect((await sent(key)).at(-1)![0]).toBe('check.up')
})

it('a check that was up is up again, awaits its next run, and alarms of nothing before', async () => {
  const { check } = await declare()
  t.clock.time = NOW + MINUTE
  await reports(successAt(NOW + SECOND))
  await t.retire()
  t.clock.time = LATER
  const revived = await declare()
  expect(revived.check.state).toMatchObject({
    status: 'up',
    since: LATER,
    expectedAt: NOW + HOUR,
    dueAt: NOW + HOUR + 5 * MINUTE,
  })
  expect(await t.read()).toEqual(revived.check)
  await reports(failAt(NOW + 5 * MINUTE))
  expect((await t.read())!.state.status).toBe('up')
  expect(await sent(check.key)).toEqual([])
  expect(await t.flipsOf(check.key)).toEqual([
    [null, 0, 'created'],
    [0, 1, 'first_success'],
    [null, 1, 'created'],
  ])
})

it('a check that has no open incident, or that is known as paused, is removed without an event', async () => {
  const { check } = await declare()
  await t.retire()
  expect(await sent(check.key)).toEqual([])
  const { key } = await addDown()
  await declare({ suspend: true, pauseDetail: 'the CronJob is suspended' })
  await t.retire()
  expect(await sent(key)).toEqual([
    ['check.down', DETAIL],
    ['check.paused', 'the CronJob is suspended'],
  ])
})

it('a check whose CronJob is suspended comes back paused, and is not notified again', async () => {
  const { key } = await addDown()
  await t.retire()
  t.clock.time = LATER
  const { check } = await declare({ suspend: true, pauseDetail: 'the CronJob is suspended' })
  expect(check.state).toMatchObject({ status: 'paused', incidentSince: NOW + SECOND })
  expect((await sent(key)).map(([type]) => type)).toEqual(['check.down', 'check.paused'])
  await declare()
  await reports(successAt(LATER + SECOND))
  expect((await sent(key)).map(([type]) => type)).toEqual(['check.down', 'check.paused', 'check.resumed', 'check.up'])
})

it('after more than seven days it is another check, and new', async () => {
  const { id } = await addDown()
  await t.retire()
  t.clock.time = NOW + 8 * DAY
  await pruneAll(t, {})
  const { check } = await declare()
  expect(check.id).not.toBe(id)
  expect(check.state).toMatchObject({ status: 'new', incidentSince: null })
})

it('a check that follows nothing any more forgets its CronJob in the transaction that declares that', async () => {
  const { check } = await t.declare({ spec, source: { name: 'nightly', limitFrom: null } })
  expect(await cronJobOf(t, check.key)).not.toBeNull()
  // Killed after that transaction: what is outside is not done.
  const query = vi.fn(() => Promise.reject(new Error('killed')))
  const given = t.declaration({ spec: cronSpec('0 * * * *'), source: null })
  await declareCheck({ ...t.context, database: { ...t.database, query } }, given).catch(() => {})
  expect((await t.read())!.spec.jobArea).toBeNull()
  expect(await cronJobOf(t, check.key)).toBeNull()
})
