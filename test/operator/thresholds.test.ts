/** Thresholds and reminders that a HeartbeatCheck declares, and what Kubernetes sees of a miss below its threshold. */

import { expect, it } from 'vitest'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { failed, succeeded, useChecks, useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ pollMs: 600_000, resyncMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)
const { age, eventsOf } = useChecks(t)

const FIELDS = { failuresBeforeDown: 2, missesBeforeDown: 3, remindEverySeconds: 86_400, remindOnEachRun: true }
const SHOWN = {
  failures_before_down: 2,
  misses_before_down: 3,
  remind_every_seconds: 86_400,
  remind_on_each_run: true,
}
const STANDARD = {
  failures_before_down: 1,
  misses_before_down: 1,
  remind_every_seconds: null,
  remind_on_each_run: false,
}

it('are those of its check, and the defaults once they are taken away', async () => {
  await t.place.makeReady('given', { periodSeconds: 3_600, ...FIELDS })
  expect(await t.checkOf('given')).toMatchObject(SHOWN)
  await t.place.apply('given', { periodSeconds: 3_600 })
  await t.place.ready('given')
  expect(await t.checkOf('given')).toMatchObject(STANDARD)
})

it('a miss below its threshold has no Event, and no condition', async () => {
  await t.place.makeReady('misses', { periodSeconds: 3_600, graceSeconds: 0, missesBeforeDown: 2 })
  const url = await t.place.pingUrl('misses')
  expect((await fetch(url, { method: 'POST' })).status).toBe(200)
  await t.place.event('misses', 'FirstSuccess')
  const miss = () =>
    t.sql(
      `update check_states set expected_at = now() - interval '1 minute', due_at = now() - interval '1 minute', wake_at = now()
        where check_key = (select key from checks where slug = 'misses')`,
    )
  await miss()
  await eventually('it is counted', async () => (await t.checkOf('misses')).consecutive_misses === 1)
  // Each change of the resource is followed by a sync.
  await t.place.change('misses', { spec: { displayName: 'Other' } })
  const object = await t.place.ready('misses')
  expect(object.status?.state).toBe('up')
  expect(conditionOf(object, 'Up')).toMatchObject({ status: 'True', reason: 'OnTime' })
  await miss()
  await t.place.inState('misses', 'down')
  await t.place.event('misses', 'Missed')
  expect((await t.place.events('misses')).filter(({ reason }) => reason === 'Missed')).toHaveLength(1)
})

it('hold for the Jobs of a CronJob', async () => {
  const { uid } = await cronJobs.create('jobs', { schedule: '0 0 31 12 *' })
  await t.place.makeReady('jobs', { ...follow('jobs'), ...FIELDS })
  const { id, ...check } = await t.checkOf('jobs')
  expect(check).toMatchObject(SHOWN)
  await age(id)
  const at = (seconds: number) =>
    new Date(Math.floor(Date.now() / 1_000) * 1_000 + (seconds - 100) * 1_000).toISOString()
  await cronJobs.createJob('jobs-1', uid, { status: succeeded(at(1), at(2)) })
  await t.place.inState('jobs', 'up')
  await cronJobs.createJob('jobs-2', uid, { status: failed(at(3), at(4)) })
  await eventually('it is counted', async () => (await t.checkOf('jobs')).consecutive_failures === 1)
  expect((await t.checkOf('jobs')).status).toBe('up')
  await cronJobs.createJob('jobs-3', uid, { status: failed(at(5), at(6)) })
  await t.place.inState('jobs', 'down')
  expect(await eventsOf(id)).toEqual(['check.down'])
  await cronJobs.createJob('jobs-4', uid, { status: failed(at(7), at(8)) })
  await eventually('it is sent again', async () => (await eventsOf(id)).length === 2)
})
