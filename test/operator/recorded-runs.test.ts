/** What Jobs report reaches the history of the checks that follow their CronJob, once. */

import { describe, expect, it } from 'vitest'
import { toTime } from '../../src/kubernetes/objects.ts'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { type JobPing, readJobPings } from '../support/job-pings.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { failed, running, succeeded, useChecks, useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ resyncMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)
const { age, eventsOf } = useChecks(t)

let base = 0
/** So many seconds after a time that is long ago, and later than the creation of the last check. */
const at = (seconds: number) => toTime(base + seconds * 1_000)

/** A CronJob and a HeartbeatCheck that follows it. */
async function makeFollowed(
  name: string,
  spec: object = {},
  ofCronJob: object = {},
): Promise<{ id: string; owner: string }> {
  const { uid: owner } = await cronJobs.create(name, { schedule: '@hourly', ...ofCronJob })
  const { status } = await t.place.makeReady(name, { ...follow(name), ...spec })
  await age(status!.checkId!)
  base = Date.now() - 3_600_000
  return { id: status!.checkId!, owner }
}

const pingsOf = (id: string) => readJobPings(t, id)
const check = async (id: string) => (await t.app.call('GET', `/checks/${id}`)).body
const shortOf = ({ type, runId, at }: JobPing) => `${type} ${runId} ${toTime(at)}`

async function recorded(id: string, expected: readonly string[]): Promise<readonly JobPing[]> {
  return eventually(`recorded: ${expected.join(', ')}`, async () => {
    const pings = await pingsOf(id)
    expect(pings.map(shortOf)).toEqual(expected)
    return pings
  })
}

/** Waits until no run of the check is open. */
const closed = (id: string) =>
  eventually('its runs are closed', async () => {
    const { rows } = await t.sql(
      'select runs from check_states s join checks c on c.key = s.check_key where c.id = $1',
      id,
    )
    return (rows as { runs: unknown }[])[0]!.runs === null
  })

/** Waits until all that is in the cluster now is recorded. */
async function seen(): Promise<void> {
  const timeIn = async (sql: string) => ((await t.sql(sql)).rows as { at: number | null }[])[0]?.at ?? 0
  const from = await timeIn('select clock_timestamp() as at')
  const seenAt = `select seen_at as at from seen_areas where area = 'default'`
  await eventually('all Jobs are seen', async () => (await timeIn(seenAt)) > from)
}

it('a check that was down when it was deleted is not down again, if a Job has succeeded meanwhile', async () => {
  const { id, owner } = await makeFollowed('fixed')
  // While no check follows a CronJob, that all is seen is written seldom.
  await makeFollowed('beside')
  await cronJobs.createJob('fixed-1', owner, { status: failed(at(1), at(31)) })
  await t.place.inState('fixed', 'down')
  await t.place.delete('fixed')
  await t.sql('update tombstones set deleted_at = $2 where id = $1', id, new Date(base + 60_000))
  await cronJobs.createJob('fixed-2', owner, { status: succeeded(at(100), at(131)) })
  await seen()
  await t.place.makeReady('fixed', follow('fixed'))
  await t.place.inState('fixed', 'up')
  expect(await eventsOf(id)).toEqual(['check.down', 'check.paused', 'check.up'])
})

describe('a Job', () => {
  it('is recorded with its start and its end, at its own times, as one run', async () => {
    const { id, owner } = await makeFollowed('backup')
    const job = await cronJobs.createJob('backup-1', owner, { status: { startTime: at(1), active: 1 } })
    await cronJobs.changeJob('backup-1', running(at(1)))
    await recorded(id, [`start ${job} ${at(1)}`])
    expect((await check(id)).running).toBe(1)
    await cronJobs.changeJob('backup-1', succeeded(at(1), at(31)))
    const [, success] = await recorded(id, [`start ${job} ${at(1)}`, `success ${job} ${at(31)}`])
    expect(success).toMatchObject({ duration: 30_000 })
    expect(await check(id)).toMatchObject({ status: 'up', running: 0 })
    await t.place.inState('backup', 'up')
  })

  it('that fails says why, although its pods go with it at once', async () => {
    const { id, owner } = await makeFollowed('broken')
    const job = await cronJobs.createJob('broken-1', owner, { status: running(at(1)) })
    await recorded(id, [`start ${job} ${at(1)}`])
    const terminated = { exitCode: 137, reason: 'OOMKilled', finishedAt: at(20) }
    const containerStatuses = [{ name: 'main', restartCount: 0, state: { terminated } }]
    await cronJobs.createPod('broken-1-a', job, { phase: 'Failed', containerStatuses })
    await cronJobs.changeJob('broken-1', failed(at(1), at(21)))
    await cronJobs.deleteJob('broken-1')
    const [, fail] = await recorded(id, [`start ${job} ${at(1)}`, `fail ${job} ${at(21)}`])
    expect(fail).toMatchObject({ exitCode: 137, duration: 20_000 })
    const object = await t.place.inState('broken', 'down')
    expect(object.status?.lastRun).toMatchObject({
      name: 'broken-1',
      outcome: 'Failed',
      exitCode: 137,
      reason: 'OOMKilled',
      message: 'container main was OOMKilled (exit code 137)',
    })
    // Events are gone after an hour.
    const detail = 'container main was OOMKilled (exit code 137)'
    expect(conditionOf(object, 'Up')).toMatchObject({
      reason: 'JobFailed',
      message: `the job reported a failure at ${at(21)}: ${detail}`,
    })
    const { flips } = (await t.app.call('GET', `/checks/${id}/flips`)).body
    expect(flips[0]).toMatchObject({ reason: 'failed', detail })
    expect(flips.at(-1)).toMatchObject({ reason: 'created', detail: null })
  })

  it('that fails with an exit code of the resource ends with a warning', async () => {
    const { id, owner } = await makeFollowed('warned', { warnExitCodes: [3] })
    const job = await cronJobs.createJob('warned-1', owner, { status: running(at(1)) })
    const terminated = { exitCode: 3, reason: 'Error', finishedAt: at(20) }
    const containerStatuses = [{ name: 'main', restartCount: 0, state: { terminated } }]
    await cronJobs.createPod('warned-1-a', job, { phase: 'Failed', containerStatuses })
    await cronJobs.changeJob('warned-1', failed(at(1), at(21)))
    const [, warning] = await recorded(id, [`start ${job} ${at(1)}`, `warn ${job} ${at(21)}`])
    expect(warning).toMatchObject({ exitCode: 3, duration: 20_000 })
    const object = await t.place.inState('warned', 'up')
    expect(object.status?.lastRun).toMatchObject({
      outcome: 'Warned',
      exitCode: 3,
      message: 'container main failed (exit code 3)',
    })
    expect(await eventsOf(id)).toEqual(['check.warned'])
  })

  it('that runs is watched by a check that is deleted and made again', async () => {
    const { id, owner } = await makeFollowed('again')
    const job = await cronJobs.createJob('again-1', owner, { status: running(at(1)) })
    await recorded(id, [`start ${job} ${at(1)}`])
    await t.place.delete('again')
    await eventually('it is gone', async () => (await check(id)).id === undefined)
    await t.place.makeReady('again', follow('again'))
    await eventually('its run is open', async () => (await check(id)).running === 1)
    await recorded(id, [`start ${job} ${at(1)}`])
  })

  it('that takes too long is named with its limit, its pod and its node', async () => {
    const { id, owner } = await makeFollowed('long', { maxRuntimeSeconds: 7_200 })
    const job = await cronJobs.createJob('long-1', owner, { status: { startTime: at(1), active: 1 } })
    // It starts by its pod, which is known then.
    const containerStatuses = [{ name: 'main', state: { running: { startedAt: at(2) } } }]
    await cronJobs.createPod('long-1-x7k2p', job, { phase: 'Running', containerStatuses })
    await recorded(id, [`start ${job} ${at(1)}`])
    // Its deadline is now, and so after all that was seen.
    await t.sql(
      `update check_states s set runs = jsonb_set(runs, '{0,deadlineAt}', to_jsonb(d.ms)), wake_at = to_timestamp(d.ms / 1000.0)
         from checks c, (select floor(extract(epoch from clock_timestamp()) * 1000) as ms) d where c.key = s.check_key and c.id = $1`,
      id,
    )
    const object = await t.place.inState('long', 'down')
    const detail =
      'Job long-1 has run for longer than 7200 s (spec.maxRuntimeSeconds of its HeartbeatCheck): pod long-1-x7k2p on node worker-3'
    expect(conditionOf(object, 'Up')).toMatchObject({
      reason: 'Overran',
      message: expect.stringContaining(`: ${detail}`),
    })
    const { flips } = (await t.app.call('GET', `/checks/${id}/flips`)).body
    expect(flips[0]).toMatchObject({ reason: 'overran', detail })
  })

  it('that goes on although its container has ended is named with the code, and with what keeps the pod', async () => {
    const { id, owner } = await makeFollowed('kept')
    const job = await cronJobs.createJob('kept-1', owner, { status: running(at(1)) })
    await recorded(id, [`start ${job} ${at(1)}`])
    const terminated = { exitCode: 7, reason: 'Error', finishedAt: at(2) }
    const containerStatuses = [
      { name: 'main', restartCount: 0, state: { terminated } },
      { name: 'proxy', restartCount: 0, state: { running: { startedAt: at(1) } } },
    ]
    await cronJobs.createPod('kept-1-a', job, { phase: 'Running', containerStatuses })
    const detail = 'container main failed (exit code 7), and container proxy keeps the pod running'
    const says = () =>
      eventually(`it says ${detail}`, async () => {
        const object = await t.place.get('kept')
        expect(await check(id)).toMatchObject({ status: 'new', status_detail: detail })
        expect(conditionOf(object, 'Up')?.message).toContain(`; a run in progress: ${detail}`)
        return object
      })
    const lastRun = { outcome: 'Running', exitCode: 7, reason: 'Error', message: detail }
    expect((await says()).status?.lastRun).toMatchObject(lastRun)
    expect((await check(id)).kubernetes.source.last_run).toMatchObject({ outcome: 'running', message: detail })
    const { project_id } = await check(id)
    const { body } = await t.app.call('GET', `/checks?slug=kept&project_id=${project_id}`)
    expect(body).toMatchObject({ checks: [{ status_detail: detail }] })
    await t.restart()
    await says()
    // Its end says why, and a Job that is gone is no run in progress.
    await cronJobs.changeJob('kept-1', failed(at(1), at(9)))
    await t.place.inState('kept', 'down')
    expect((await check(id)).status_detail).toBe('container main failed (exit code 7)')
  })
})

describe('after a downtime', () => {
  it('each outcome is recorded once, and nothing that was recorded before again', async () => {
    const { id, owner } = await makeFollowed('restarted')
    const first = await cronJobs.createJob('restarted-1', owner, { status: succeeded(at(1), at(2)) })
    const second = await cronJobs.createJob('restarted-2', owner, { status: running(at(3)) })
    const before = [`start ${first} ${at(1)}`, `success ${first} ${at(2)}`, `start ${second} ${at(3)}`]
    await recorded(id, before)
    await t.operator().stop()
    // As a limit of the history does: what the CronJob says of it is no news.
    await cronJobs.changeStatus('restarted', { lastSuccessfulTime: at(2) })
    await cronJobs.deleteJob('restarted-1')
    await cronJobs.changeJob('restarted-2', running(at(3)))
    await t.restart()
    await seen()
    await recorded(id, before)
    await t.operator().stop()
    await cronJobs.changeJob('restarted-2', succeeded(at(3), at(4)))
    const third = await cronJobs.createJob('restarted-3', owner, { status: failed(at(5), at(6)) })
    await t.restart()
    const after = [`success ${second} ${at(4)}`, `start ${third} ${at(5)}`, `fail ${third} ${at(6)}`]
    await recorded(id, [...before, ...after])
    await t.restart()
    await seen()
    await recorded(id, [...before, ...after])
    expect((await check(id)).status).toBe('down')
  })
})

describe('a watch', () => {
  it('that has missed the end of a Job finds it by a list, and closes what it has missed altogether', async () => {
    const { id, owner } = await makeFollowed('missed')
    const first = await cronJobs.createJob('missed-1', owner, { status: running(at(1)) })
    const second = await cronJobs.createJob('missed-2', owner, { status: running(at(2)) })
    await recorded(id, [`start ${first} ${at(1)}`, `start ${second} ${at(2)}`])
    const { server } = t.cluster
    const watches = [...server.watches]
    for (const watch of watches) watch.silence()
    await cronJobs.changeJob('missed-1', succeeded(at(1), at(9)))
    await cronJobs.deleteJob('missed-2')
    server.expire()
    for (const watch of watches) watch.reset()
    await recorded(id, [`start ${first} ${at(1)}`, `start ${second} ${at(2)}`, `success ${first} ${at(9)}`])
    await closed(id)
    expect(await pingsOf(id)).toHaveLength(3)
  })
})
