/** The annotation that pauses a check until a time (docs/use/checks.md). Nothing here is seen by a resync or a poll. */

import { expect, it } from 'vitest'
import { toTime } from '../../src/kubernetes/objects.ts'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { failed, useChecks, useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ pollMs: 600_000, resyncMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)
const { age, eventsOf } = useChecks(t)

const ANNOTATION = 'heartbeat-operator.io/paused-until'
const pause = (value: string | null) => ({ metadata: { annotations: { [ANNOTATION]: value } } })
const at = (ms: number) => new Date(Math.floor(Date.now() / 1_000) * 1_000 + ms).toISOString()
const HOUR = 3_600_000
const inAnHour = () => at(HOUR)

/** As if the annotation of the check had named this time, which passes now. */
const endPause = (id: string) =>
  t.sql(
    `update check_states set pause = pause || jsonb_build_object('until', (extract(epoch from now()) * 1000)::int8),
      since = since - interval '1 minute', wake_at = now() where check_key = (select key from checks where id = $1)`,
    id,
  )

it('pauses the check until then, and taking it away resumes the check', async () => {
  const { status } = await t.place.makeReady('nightly')
  const until = inAnHour()
  await t.place.change('nightly', pause(until))
  const object = await t.place.inState('nightly', 'paused')
  expect(conditionOf(object, 'Up')).toMatchObject({
    reason: 'Suspended',
    message: `the check is paused until ${toTime(Date.parse(until))}: nothing is expected of the job`,
  })
  expect(await t.checkOf('nightly')).toMatchObject({
    status: 'paused',
    pause: { by: { kind: 'kubernetes', id: null, name: 'default' }, until, comment: null },
  })
  const { status: refused } = await t.app.call('POST', `/checks/${status!.checkId}/resume`)
  expect(refused).toBe(409)
  await t.place.change('nightly', pause(null))
  await t.place.inState('nightly', 'new')
  expect((await t.app.call('POST', `/checks/${status!.checkId}/pause`)).status).toBe(200)
})

it('when it has passed, the check is resumed, not paused again, and the API may pause it', async () => {
  const { status } = await t.place.makeReady('ended', undefined, { annotations: { [ANNOTATION]: inAnHour() } })
  const id = status!.checkId!
  await t.place.inState('ended', 'paused')
  // The resource still names the time, which has passed.
  await t.place.change('ended', pause(at(-HOUR)))
  await t.place.inState('ended', 'new')
  await t.place.change('ended', pause(inAnHour()))
  await t.place.inState('ended', 'paused')
  await t.operator().stop()
  await endPause(id)
  await eventually('the evaluator has resumed it', async () => (await t.checkOf('ended')).status === 'new')
  await t.place.change('ended', pause(at(-1_000)))
  await t.restart()
  await t.place.inState('ended', 'new')
  await eventually('the API may pause it', async () => {
    const answer = await t.app.call('POST', `/checks/${id}/pause`)
    return answer.status === 200
  })
  await t.place.inState('ended', 'paused')
  expect(await t.checkOf('ended')).toMatchObject({ status: 'paused', pause: { by: { kind: 'api_key' }, until: null } })
})

it('is a Warning, and changes nothing, if it is no time', async () => {
  const until = inAnHour()
  await t.place.makeReady('invalid', undefined, { annotations: { [ANNOTATION]: until } })
  await t.place.inState('invalid', 'paused')
  await t.place.change('invalid', pause('next week'))
  const { type, note } = await t.place.event('invalid', 'InvalidPausedUntil')
  expect([type, note]).toEqual(['Warning', expect.stringContaining('not "next week"')])
  expect(await t.checkOf('invalid')).toMatchObject({ status: 'paused', pause: { until } })
})

it('has no effect beside spec.suspend', async () => {
  await t.place.makeReady(
    'both',
    { periodSeconds: 3_600, suspend: true },
    { annotations: { [ANNOTATION]: inAnHour() } },
  )
  expect(await t.checkOf('both')).toMatchObject({ status: 'paused', pause: { until: null } })
})

it('pauses a check that follows a CronJob: its Jobs go on, and alert no one', async () => {
  const { uid } = await cronJobs.create('jobs', { schedule: '@hourly' })
  await t.place.makeReady('jobs', follow('jobs'))
  const { id } = await t.checkOf('jobs')
  await age(id)
  await t.place.change('jobs', pause(inAnHour()))
  await t.place.inState('jobs', 'paused')
  await cronJobs.createJob('jobs-1', uid, { status: failed(at(0), at(0)) })
  await eventually('the run is recorded', async () => (await t.checkOf('jobs')).last_outcome === 'fail')
  expect(await eventsOf(id)).toEqual(['check.paused'])
  await t.place.change('jobs', pause(null))
  await t.place.inState('jobs', 'new')
  // Suspended, it has no end.
  await t.place.change('jobs', pause(inAnHour()))
  await t.place.inState('jobs', 'paused')
  await cronJobs.change('jobs', { spec: { suspend: true } })
  await eventually('the pause has no end', async () => (await t.checkOf('jobs')).pause?.until === null)
})
