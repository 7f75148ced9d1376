/** What a check takes from the CronJob that it follows (design, section 6, "CronJobs"). Nothing here is seen by a resync or a poll. */

import { describe, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ pollMs: 600_000, resyncMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)

/** Where its longest run time is set, in words. */
async function limitOf({ status }: HeartbeatCheck): Promise<string | null> {
  const { rows } = await t.app.database.query<{ from: string | null }>(
    `select j.limit_from as "from" from cron_jobs j join checks c on c.key = j.check_key where c.id = $1`,
    [status!.checkId],
  )
  return rows[0]!.from
}

/** At once, as no resync and no poll comes before: these are ten minutes away. */
const inTime = (what: string, name: string, isSo: (object: HeartbeatCheck) => boolean) =>
  eventually(what, async () => {
    const object = await t.place.get(name)
    return isSo(object) && object
  })
const pauses = async (name: string) =>
  (await t.place.events(name)).filter(({ reason }) => reason === 'Suspended').length

describe('a check that follows a CronJob', () => {
  it('has its schedule, the grace time and the maximum run time of such a check, and publishes nothing', async () => {
    const { uid } = await cronJobs.create('plain', { schedule: '30 2 * * *' })
    const object = await t.place.makeReady('plain', follow('plain'))
    expect(await t.checkOf(object)).toMatchObject({
      status: 'new',
      schedule: '30 2 * * *',
      time_zone: 'Etc/UTC',
      grace_seconds: 300,
      max_runtime_seconds: 43_200,
    })
    expect(await limitOf(object)).toBe('the default')
    expect(object.status).toMatchObject({
      state: 'new',
      schedule: '30 2 * * *',
      timeZone: 'Etc/UTC',
      graceSeconds: 300,
      source: { name: 'plain', uid, suspended: false, active: [] },
    })
    expect(object.status).not.toHaveProperty('published')
    expect(conditionOf(object, 'Published')).toBeUndefined()
    expect(conditionOf(object, 'Ready')?.message).toBe('the service holds this specification')
    expect(await t.place.find('secrets', 'plain-heartbeat')).toBeNull()
    // It is armed: a CronJob that never runs is noticed.
    expect(conditionOf(object, 'Up')?.message).toContain('it counts as missed at')
  })

  it('has the time zone and the deadline of the CronJob, and what the resource says itself', async () => {
    await cronJobs.create('zoned', { schedule: '@daily', timeZone: 'Europe/Berlin', activeDeadlineSeconds: 600 })
    const object = await t.place.makeReady('zoned', follow('zoned'))
    expect(await t.checkOf(object)).toMatchObject({
      schedule: '@daily',
      time_zone: 'Europe/Berlin',
      max_runtime_seconds: 660,
    })
    expect(await limitOf(object)).toBe('activeDeadlineSeconds of the Job and 60 s')
    const own = { graceSeconds: 60, maxRuntimeSeconds: 120, warnExitCodes: [24, 3] }
    await t.place.apply('zoned', { ...follow('zoned'), ...own })
    expect(await t.checkOf(await t.place.ready('zoned'))).toMatchObject({
      grace_seconds: 60,
      max_runtime_seconds: 120,
      warn_exit_codes: [3, 24],
    })
    expect(await limitOf(object)).toBe('spec.maxRuntimeSeconds of its HeartbeatCheck')
  })

  it('follows each change of the CronJob within a second', async () => {
    await cronJobs.create('changing', { schedule: '0 1 * * *' })
    const object = await t.place.makeReady('changing', follow('changing'))
    await cronJobs.change('changing', { spec: { schedule: '0 4 * * *', timeZone: 'Asia/Tokyo' } })
    await inTime('the schedule is new', 'changing', ({ status }) => status?.schedule === '0 4 * * *')
    expect(await t.checkOf(object)).toMatchObject({ schedule: '0 4 * * *', time_zone: 'Asia/Tokyo' })
    await cronJobs.change('changing', { spec: { jobTemplate: { spec: { activeDeadlineSeconds: 30 } } } })
    await eventually('the maximum run time is new', async () => (await t.checkOf(object)).max_runtime_seconds === 90)

    await cronJobs.change('changing', { spec: { suspend: true } })
    const paused = await inTime('it is paused', 'changing', ({ status }) => status?.state === 'paused')
    expect(paused.status?.source?.suspended).toBe(true)
    expect(conditionOf(paused, 'Ready')?.status).toBe('True')
    expect((await t.app.call('PATCH', `/checks/${object.status!.checkId}/resume`)).status).toBe(409)
    await cronJobs.change('changing', { spec: { suspend: false } })
    await inTime('it is resumed', 'changing', ({ status }) => status?.state === 'new')
  })
})

describe('a CronJob that is not there', () => {
  it('stalls the resource, and makes it Ready within a second when it is created', async () => {
    await t.place.apply('early', follow('early'))
    const message = await t.place.stalled('early', 'SourceNotFound')
    expect(message).toBe(
      `the namespace ${t.place.name} has no CronJob early, which spec.sourceRef names: create it, or delete this HeartbeatCheck; the check is paused until the CronJob is there`,
    )
    const object = await t.place.get('early')
    expect(object.status).toMatchObject({ state: 'paused', graceSeconds: 300 })
    // What the database holds in its place is of no CronJob.
    expect(object.status).not.toHaveProperty('schedule')
    expect(await t.checkOf(object)).toMatchObject({ status: 'paused', max_runtime_seconds: 43_200 })
    const { flips } = (await t.app.call('GET', `/checks/${object.status!.checkId}/flips`)).body
    expect(flips[0]).toMatchObject({ reason: 'paused', detail: `the namespace ${t.place.name} has no CronJob early` })
    await cronJobs.create('early', { schedule: '@hourly' })
    const ready = await inTime('it is Ready', 'early', (one) => conditionOf(one, 'Ready')?.status === 'True')
    expect(ready.status).toMatchObject({ state: 'new', schedule: '@hourly', checkId: object.status!.checkId })
  })

  it('pauses the check when it is deleted, and brings it back within a second when it is created again', async () => {
    await cronJobs.create('gone', { schedule: '@hourly' })
    const { status } = await t.place.makeReady('gone', follow('gone'))
    await cronJobs.delete('gone')
    const stalled = await inTime('it is stalled', 'gone', (object) => conditionOf(object, 'Stalled') !== undefined)
    expect(conditionOf(stalled, 'Stalled')?.reason).toBe('SourceNotFound')
    expect(stalled.status).toMatchObject({ state: 'paused', checkId: status!.checkId, schedule: '@hourly' })
    expect(stalled.status).not.toHaveProperty('source')
    expect(conditionOf(stalled, 'Up')).toMatchObject({ status: 'Unknown', reason: 'Suspended' })

    // What else changes is in effect all the same.
    await t.place.apply('gone', { ...follow('gone'), displayName: 'Still here' })
    await t.place.stalled('gone', 'SourceNotFound')
    expect(await t.checkOf(stalled)).toMatchObject({ name: 'Still here', status: 'paused' })

    const { uid } = await cronJobs.create('gone', { schedule: '@daily' })
    const back = await inTime('it is back', 'gone', (object) => conditionOf(object, 'Ready')?.status === 'True')
    expect(back.status).toMatchObject({ state: 'new', schedule: '@daily', checkId: status!.checkId, source: { uid } })
    expect(conditionOf(back, 'Stalled')).toBeUndefined()
    expect(await pauses('gone')).toBe(1)
  })
})

describe('a schedule that cannot be read', () => {
  it.each([
    ['no date', '0 0 30 2 *', 'spec.schedule must come at some time: "0 0 30 2 *" names no real date'],
    ['no 31st', '0 0 31 4,6,9,11 *', 'spec.schedule must come at some time: "0 0 31 4,6,9,11 *" names no real date'],
    ['no minute', ', 2 * * *', 'spec.schedule must come at some time: ", 2 * * *" names no real date'],
    ['too often', '@every 5s', 'has the schedule "@every 5s": @every must have a length from 10s to 8760h'],
  ])('stalls the resource, with what is wrong, and pauses the check: %s', async (what, schedule, fault) => {
    const name = what.replace(' ', '-')
    await cronJobs.create(name, { schedule: '@hourly' })
    await t.place.makeReady(name, follow(name))
    await cronJobs.change(name, { spec: { schedule } })
    const message = await t.place.stalled(name, 'InvalidSpec')
    expect(message).toContain(`the CronJob ${name} has `)
    expect(message).toContain(`${fault}: correct it; until then the check is paused, and no run is expected`)
    const { checkId } = (await t.place.get(name)).status!
    const detail = message.slice(0, message.indexOf(': correct it'))
    expect((await t.app.call('GET', `/checks/${checkId}/flips`)).body.flips[0]).toMatchObject({
      reason: 'paused',
      detail,
    })
    const paused = await t.place.get(name)
    expect(paused.status).toMatchObject({ state: 'paused', source: { name } })
    expect(paused.status).not.toHaveProperty('schedule')
    const unscheduled = { schedule: null, period_seconds: null, time_zone: null }
    expect(await t.checkOf(paused)).toMatchObject({ ...unscheduled, status_detail: detail })
    await cronJobs.change(name, { spec: { schedule: '@daily' } })
    await inTime('it is Ready', name, (object) => conditionOf(object, 'Ready')?.status === 'True')
    const ready = await t.place.get(name)
    expect(ready.status).toMatchObject({ state: 'new', schedule: '@daily' })
    expect(await t.checkOf(ready)).toMatchObject({ schedule: '@daily', period_seconds: null, time_zone: 'Etc/UTC' })
  })

  it('stalls the resource of a CronJob that is suspended too, and in each zone', async () => {
    await cronJobs.create('idle', { schedule: '0 0 31 2 *', timeZone: 'Asia/Tokyo', suspend: true })
    await t.place.apply('idle', follow('idle'))
    await t.place.stalled('idle', 'InvalidSpec')
    expect(await t.checkOf('idle')).toMatchObject({ status: 'paused', schedule: null })
  })

  it('leaves a check with a period where the resource is deleted and its check retained', async () => {
    await cronJobs.create('kept', { schedule: '0 0 31 2 *' })
    await t.place.apply('kept', { ...follow('kept'), deletionPolicy: 'Retain' })
    await t.place.stalled('kept', 'InvalidSpec')
    const object = await t.place.get('kept')
    await t.place.delete('kept')
    await eventually('it is of the API', async () => (await t.checkOf(object)).managed_by === 'api')
    expect(await t.checkOf(object)).toMatchObject({ status: 'paused', schedule: null, period_seconds: 86_400 })
  })
})

it('a schedule that is never due is said on the CronJob too, from the start', async () => {
  await cronJobs.create('never', { schedule: '0 0 30 2 *' })
  await t.place.apply('never', follow('never'))
  const message = await t.place.stalled('never', 'InvalidSpec')
  expect(message).toMatch(
    /^the CronJob never has a schedule by which no run can be expected: .*: correct it; until then the check is paused, and no run is expected$/,
  )
  const kinds = await eventually('two Events', async () => {
    const found = (await t.place.events('never')).filter(({ reason }) => reason === 'InvalidSpec')
    return found.length === 2 && (found as unknown as { regarding: { kind: string }; note: string }[])
  })
  expect(kinds.map(({ regarding }) => regarding.kind).sort()).toEqual(['CronJob', 'HeartbeatCheck'])
  expect(new Set(kinds.map(({ note }) => note))).toEqual(new Set([message]))
})

describe('a run', () => {
  it('is in the status from its start to its end, by the turns of minor changes, and its failure at once', async () => {
    const { uid } = await cronJobs.create('runs', { schedule: '@hourly' })
    await t.place.makeReady('runs', follow('runs'))
    const time = (seconds: number) =>
      `${new Date(Math.floor(Date.now() / 1_000 + seconds) * 1_000).toISOString().slice(0, 19)}Z`
    const shows = (run: object) =>
      eventually(`the status shows ${JSON.stringify(run)}`, async () => {
        const { status } = await t.place.get('runs')
        expect(status?.lastRun).toEqual(run)
        return status!
      })
    const [startTime, completionTime] = [time(0), time(1)]
    await cronJobs.createJob('runs-1', uid, { status: { startTime, ready: 1 } })
    await shows({ name: 'runs-1', startTime, outcome: 'Running' })
    const complete = { type: 'Complete', status: 'True' }
    await cronJobs.changeJob('runs-1', { ready: 0, succeeded: 1, completionTime, conditions: [complete] })
    const succeeded = await shows({ name: 'runs-1', startTime, completionTime, outcome: 'Succeeded' })
    expect(succeeded).toMatchObject({ state: 'up', lastPingTime: expect.any(String) })

    const failed = { type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'too often' }
    const end = { failed: 1, conditions: [{ ...failed, lastTransitionTime: time(3) }] }
    await cronJobs.createJob('runs-2', uid, { status: { startTime: time(2), ...end } })
    const down = await eventually('it is down', async () => {
      const { status } = await t.place.get('runs')
      return status?.state === 'down' && status
    })
    expect(down.lastRun).toMatchObject({ name: 'runs-2', outcome: 'Failed', reason: 'BackoffLimitExceeded' })
    const { note } = await t.place.event('runs', 'Failed')
    expect(note).toContain(`: ${down.lastRun!.message}`)
  })
})

describe('a flip', () => {
  it('is an Event of the HeartbeatCheck and of the CronJob', async () => {
    await cronJobs.create('flipping', { schedule: '@hourly' })
    const object = await t.place.makeReady('flipping', follow('flipping'))
    const { public_id } = await t.checkOf(object)
    await fetch(`${t.app.pingUrl}/ping/${public_id}/fail`, { method: 'POST' })
    const both = await eventually('two Events', async () => {
      const found = (await t.place.events('flipping')).filter(({ reason }) => reason === 'Failed')
      return found.length === 2 && (found as unknown as { regarding: object; note: string }[])
    })
    expect(both.map(({ regarding }) => regarding)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'HeartbeatCheck', uid: object.metadata.uid }),
        expect.objectContaining({
          apiVersion: 'batch/v1',
          kind: 'CronJob',
          uid: object.status!.source!.uid,
          namespace: t.place.name,
        }),
      ]),
    )
    expect(new Set(both.map(({ note }) => note)).size).toBe(1)
  })
})

describe('spec.publish', () => {
  it('publishes the ping URL of a check that follows a CronJob, and withdraws it for None', async () => {
    await cronJobs.create('published', { schedule: '@hourly' })
    await t.place.makeReady('published', { ...follow('published'), publish: { kind: 'Secret' } })
    expect((await fetch(await t.place.pingUrl('published'), { method: 'POST' })).status).toBe(200)
    await t.place.apply('published', { ...follow('published'), publish: { kind: 'None' } })
    const object = await t.place.ready('published')
    expect(await t.place.find('secrets', 'published-heartbeat')).toBeNull()
    expect(object.status).not.toHaveProperty('published')
    expect(conditionOf(object, 'Published')).toBeUndefined()
  })

  it('None works without a CronJob too: the check is armed, and its URL is in the API', async () => {
    const object = await t.place.makeReady('unpublished', { periodSeconds: 60, publish: { kind: 'None' } })
    expect(conditionOf(object, 'Up')?.message).toContain('it counts as missed at')
    expect((await t.checkOf(object)).public_id).toMatch(/^[0-9a-f-]{36}$/)
  })
})
