/** Runs that a person starts while their CronJob is suspended: nothing is scheduled, and they are judged (docs/use/cronjobs.md). */

import { describe, expect, it } from 'vitest'
import { toTime } from '../../src/kubernetes/objects.ts'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { failed, running, succeeded, useChecks, useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ resyncMs: 600_000, pollMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)
const { age, eventsOf } = useChecks(t)

interface Template {
  readonly id: string
  /** The uid of the CronJob. */
  readonly owner: string
}

/** A CronJob that is suspended, and a HeartbeatCheck that follows it, since a day. */
async function makeTemplate(name: string, spec: object = {}, schedule = '0 0 31 12 *'): Promise<Template> {
  const { uid: owner } = await cronJobs.create(name, { schedule, suspend: true })
  await t.place.apply(name, { ...follow(name), ...spec })
  const { status } = await t.place.inState(name, 'paused')
  await age(status!.checkId!)
  return { id: status!.checkId!, owner }
}

const base = Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000
const at = (seconds: number) => toTime(base + seconds * 1_000)
const checkOf = async (id: string) => (await t.app.call('GET', `/checks/${id}`)).body

describe('a CronJob that is suspended as a template', () => {
  it('takes its check down when a run of it fails, until one succeeds', async () => {
    const template = await makeTemplate('template')
    await cronJobs.createJob('template-1', template.owner, { status: failed(at(1), at(2)) })
    const object = await t.place.inState('template', 'down')
    expect(conditionOf(object, 'Up')).toMatchObject({ status: 'False', reason: 'JobFailed' })
    expect(object.status?.source?.suspended).toBe(true)
    expect(await checkOf(template.id)).toMatchObject({
      status: 'down',
      status_detail: expect.stringContaining('Job template-1 failed'),
      due_at: null,
    })
    // A full sync leaves it down, and does not notify of the suspension again.
    await cronJobs.change('template', { spec: { schedule: '0 0 30 12 *' } })
    await eventually('it is synced', async () => (await checkOf(template.id)).schedule === '0 0 30 12 *')
    expect((await checkOf(template.id)).status).toBe('down')
    await t.restart()
    await t.place.ready('template')
    expect(await eventsOf(template.id)).toEqual(['check.down'])
    await cronJobs.createJob('template-2', template.owner, { status: succeeded(at(3), at(4)) })
    await t.place.inState('template', 'paused')
    expect(await checkOf(template.id)).toMatchObject({
      status: 'paused',
      status_detail: 'the CronJob template is suspended',
    })
    expect(await eventsOf(template.id)).toEqual(['check.down', 'check.up'])
    // The next failure is one again.
    await cronJobs.createJob('template-3', template.owner, { status: failed(at(3_600), toTime(Date.now())) })
    await t.place.inState('template', 'down')
    expect(await eventsOf(template.id)).toEqual(['check.down', 'check.up', 'check.down'])
  })

  it('pauses its check, which is down, when it is deleted', async () => {
    const template = await makeTemplate('gone')
    await cronJobs.createJob('gone-1', template.owner, { status: failed(at(1), at(2)) })
    await t.place.inState('gone', 'down')
    await cronJobs.delete('gone')
    await t.place.stalled('gone', 'SourceNotFound')
    await t.place.inState('gone', 'paused')
    expect(await eventsOf(template.id)).toEqual(['check.down', 'check.paused'])
  })

  it('has a schedule that never comes: its runs are judged as well', async () => {
    const { uid: owner } = await cronJobs.create('never', { schedule: '0 0 31 2 *' })
    await t.place.apply('never', follow('never'))
    await t.place.stalled('never', 'InvalidSpec')
    const id = (await t.place.get('never')).status!.checkId!
    await age(id)
    await cronJobs.createJob('never-1', owner, { status: failed(at(1), at(2)) })
    await t.place.inState('never', 'down')
    expect(await eventsOf(id)).toEqual(['check.down'])
  })
})

describe('a CronJob that is suspended while its Job runs', () => {
  it('pauses its check, which that Job takes down when it fails', async () => {
    const { uid: owner } = await cronJobs.create('stopped', { schedule: '@hourly' })
    const { status } = await t.place.makeReady('stopped', follow('stopped'))
    const template = { id: status!.checkId!, owner }
    await age(template.id)
    await cronJobs.createJob('stopped-1', owner, { status: running(toTime(Date.now())) })
    await eventually('it runs', async () => (await checkOf(template.id)).running === 1)
    await cronJobs.change('stopped', { spec: { suspend: true } })
    await t.place.inState('stopped', 'paused')
    await cronJobs.changeJob('stopped-1', failed(toTime(Date.now()), toTime(Date.now())))
    await t.place.inState('stopped', 'down')
    expect(await eventsOf(template.id)).toEqual(['check.paused', 'check.down'])
    // Scheduled again, it is down until a run succeeds.
    await cronJobs.change('stopped', { spec: { suspend: false } })
    await eventually('it is not suspended', async () => {
      const object = await t.place.get('stopped')
      return object.status?.source?.suspended === false && object.status.state === 'down'
    })
    await cronJobs.createJob('stopped-2', owner, { status: succeeded(toTime(Date.now()), toTime(Date.now())) })
    await t.place.inState('stopped', 'up')
    // Suspended again, that is news.
    await cronJobs.change('stopped', { spec: { suspend: true } })
    await t.place.inState('stopped', 'paused')
    expect(await eventsOf(template.id)).toEqual(['check.paused', 'check.down', 'check.up', 'check.paused'])
  })
})

it('a check that follows a CronJob is paused and resumed by the CronJob alone', async () => {
  const template = await makeTemplate('asked')
  for (const act of ['pause', 'resume']) {
    const { status, body } = await t.app.call('PATCH', `/checks/${template.id}/${act}`)
    expect([status, body.error]).toEqual([
      409,
      `HeartbeatCheck ${t.place.name}/asked in cluster default follows the CronJob asked; change spec.suspend of the CronJob to ${act} the check`,
    ])
  }
  expect((await checkOf(template.id)).status).toBe('paused')
  expect(await eventsOf(template.id)).toEqual([])
})
