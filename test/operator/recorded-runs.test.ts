/** What Jobs report reaches the history of the checks that follow their CronJob, once. */

import { describe, expect, it } from 'vitest'
import { toTime } from '../../src/kubernetes/objects.ts'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { type JobPing, readJobPings } from '../support/job-pings.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { failed, ownedBy, running, succeeded, useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ resyncMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)

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
  // What ended before it was created would be its history.
  await t.sql(
    `with old as (update checks set created_at = created_at - interval '1 day' where id = $1 returning key)
       update check_states set since = since - interval '1 day' where check_key in (select key from old)`,
    status!.checkId,
  )
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

const seenAt = async () =>
  ((await t.sql(`select seen_at as at from seen_areas where area = 'default'`)).rows as { at: number | null }[])[0]
    ?.at ?? null

/** Waits until all that is in the cluster now is recorded. */
async function seen(): Promise<void> {
  const from = ((await t.sql('select clock_timestamp() as at')).rows as { at: number }[])[0]!.at
  await eventually('all Jobs are seen', async () => ((await seenAt()) ?? 0) > from)
}

it.each([
  ['a Job', 'fixed', (owner: string) => cronJobs.createJob('fixed-2', owner, { status: succeeded(at(100), at(131)) })],
  ['a Job that is gone', 'limits', () => cronJobs.changeStatus('limits', { lastSuccessfulTime: at(131) })],
])(
  'a check that was down when it was deleted is not down again, if %s has succeeded meanwhile',
  async (_, name, succeed) => {
    const { id, owner } = await makeFollowed(name)
    // While no check follows a CronJob, that all is seen is written seldom.
    await makeFollowed(`beside-${name}`)
    await cronJobs.createJob(`${name}-1`, owner, { status: failed(at(1), at(31)) })
    await t.place.inState(name, 'down')
    await t.place.delete(name)
    await t.sql('update tombstones set deleted_at = $2 where id = $1', id, new Date(base + 60_000))
    await succeed(owner)
    await seen()
    await t.place.makeReady(name, follow(name))
    await t.place.inState(name, 'up')
    const { rows } = await t.sql(
      'select e.type from events e join checks c on c.key = e.check_key where c.id = $1 order by e.id',
      id,
    )
    expect((rows as { type: string }[]).map(({ type }) => type)).toEqual(['check.down', 'check.paused', 'check.up'])
  },
)

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

  it('that succeeds with its third pod is one success', async () => {
    const { id, owner } = await makeFollowed('retried')
    const job = await cronJobs.createJob('retried-1', owner, { status: running(at(1), { failed: 1 }) })
    await recorded(id, [`start ${job} ${at(1)}`])
    await cronJobs.changeJob('retried-1', running(at(1), { failed: 2 }))
    await cronJobs.changeJob('retried-1', succeeded(at(1), at(40), { failed: 2 }))
    await recorded(id, [`start ${job} ${at(1)}`, `success ${job} ${at(40)}`])
    expect((await check(id)).status).toBe('up')
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

  it('that is suspended is no run in progress until it starts again, and is recorded once', async () => {
    const { id, owner } = await makeFollowed('queued')
    const job = await cronJobs.createJob('queued-1', owner, { status: running(at(1)) })
    await recorded(id, [`start ${job} ${at(1)}`])
    const suspended = (status: string) => ({ type: 'Suspended', status, lastTransitionTime: at(10) })
    await cronJobs.changeJob('queued-1', { startTime: null, active: 0, ready: 0, conditions: [suspended('True')] })
    await closed(id)
    await cronJobs.changeJob('queued-1', running(at(20), { conditions: [suspended('False')] }))
    await eventually('its run is open', async () => (await check(id)).running === 1)
    await cronJobs.changeJob('queued-1', succeeded(at(20), at(31)))
    const [, success] = await recorded(id, [`start ${job} ${at(1)}`, `success ${job} ${at(31)}`])
    expect(success).toMatchObject({ duration: 11_000 })
    await closed(id)
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

  it('that is deleted before it ended is a log, and its run is closed', async () => {
    const { id, owner } = await makeFollowed('cut')
    const job = await cronJobs.createJob('cut-1', owner, { status: running(at(-5)) })
    await recorded(id, [`start ${job} ${at(-5)}`])
    await cronJobs.deleteJob('cut-1')
    await eventually('it is recorded', async () => (await pingsOf(id)).at(-1)?.type === 'log')
    expect(await check(id)).toMatchObject({ running: 0, status: 'new' })
    const lastRun = { outcome: 'Deleted', message: 'Job cut-1 was deleted before it ended' }
    await eventually('the status says so', async () => {
      expect((await t.place.get('cut')).status?.lastRun).toMatchObject(lastRun)
      return true
    })
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

  it('that its CronJob replaces overran: the check goes down, and says which Job replaced it', async () => {
    const { id, owner } = await makeFollowed('hang', {}, { concurrencyPolicy: 'Replace' })
    const slot = (minutes: number) => ({
      annotations: { 'batch.kubernetes.io/cronjob-scheduled-timestamp': at(minutes * 60) },
    })
    const first = await cronJobs.createJob('hang-1', owner, { status: running(at(1)), ...slot(0) })
    await recorded(id, [`start ${first} ${at(1)}`])
    await cronJobs.deleteJob('hang-1')
    await cronJobs.createJob('hang-2', owner, slot(1))
    const detail = 'Job hang-1 had not ended when Job hang-2 replaced it'
    const object = await t.place.inState('hang', 'down')
    expect(conditionOf(object, 'Up')).toMatchObject({ reason: 'Overran' })
    expect(conditionOf(object, 'Up')?.message).toMatch(new RegExp(`^a run had not ended by .*: ${detail}$`))
    expect((await pingsOf(id)).map(({ type }) => type)).toEqual(['start', 'log'])
    const { flips } = (await t.app.call('GET', `/checks/${id}/flips`)).body
    expect(flips[0]).toMatchObject({ reason: 'overran', detail })
    await eventually('the status has the run', async () => {
      const { lastRun } = (await t.place.get('hang')).status!
      expect(lastRun).toMatchObject({ name: 'hang-1', outcome: 'Deleted', message: detail })
      return true
    })
  })

  it('whose container fails again and again has started, though its Job counts no pod', async () => {
    const { id, owner } = await makeFollowed('loop')
    const job = await cronJobs.createJob('loop-1', owner, { status: { startTime: at(1), active: 1, ready: 0 } })
    const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container' }
    const lastState = { terminated: { exitCode: 8, reason: 'Error', finishedAt: at(2) } }
    const containerStatuses = [{ name: 'main', restartCount: 1, state: { waiting }, lastState }]
    await cronJobs.createPod('loop-1-a', job, { phase: 'Running', containerStatuses })
    await recorded(id, [`start ${job} ${at(1)}`])
    expect(await check(id)).toMatchObject({ running: 1 })
  })

  it('of another CronJob, of none, and of one that only names it, is not its own', async () => {
    const { id } = await makeFollowed('alone')
    const other = await makeFollowed('other')
    const job = await cronJobs.createJob('other-1', other.owner, { status: succeeded(at(1), at(2)) })
    await cronJobs.createJob('alone-1', other.id, { status: succeeded(at(1), at(2)) })
    const later = await cronJobs.createJob('other-2', other.owner, { status: running(at(3)) })
    await recorded(other.id, [`start ${job} ${at(1)}`, `success ${job} ${at(2)}`, `start ${later} ${at(3)}`])
    expect(await pingsOf(id)).toEqual([])
  })

  describe('that goes on although its container has ended', () => {
    const state = (exitCode: number) => ({ terminated: { exitCode, reason: 'Error', finishedAt: at(2) } })
    const statuses = (main: object) => ({
      phase: 'Running',
      containerStatuses: [
        { name: 'main', restartCount: 0, state: main },
        { name: 'proxy', restartCount: 0, state: { running: { startedAt: at(1) } } },
      ],
    })
    /** @param main the state of its container, beside a proxy that runs */
    async function startKept(name: string, main: object) {
      const { id, owner } = await makeFollowed(name)
      const job = await cronJobs.createJob(`${name}-1`, owner, { status: running(at(1)) })
      await recorded(id, [`start ${job} ${at(1)}`])
      await cronJobs.createPod(`${name}-1-a`, job, statuses(main))
      return { id, job }
    }
    const says = (name: string, id: string, detail: string) =>
      eventually(`it says ${detail}`, async () => {
        const object = await t.place.get(name)
        expect(await check(id)).toMatchObject({ status: 'new', status_detail: detail })
        expect(conditionOf(object, 'Up')?.message).toContain(`; a run in progress: ${detail}`)
        return object
      })

    it('is named with the code, and with the container that keeps the pod', async () => {
      const { id } = await startKept('kept', state(7))
      const detail = 'container main failed (exit code 7), and container proxy keeps the pod running'
      const object = await says('kept', id, detail)
      const lastRun = { outcome: 'Running', exitCode: 7, reason: 'Error', message: detail }
      expect(object.status?.lastRun).toMatchObject(lastRun)
      expect((await check(id)).kubernetes.source.last_run).toMatchObject({ outcome: 'running', message: detail })
      const { project_id } = await check(id)
      const { body } = await t.app.call('GET', `/checks?slug=kept&project_id=${project_id}`)
      expect(body).toMatchObject({ checks: [{ status_detail: detail }] })
      await t.restart()
      await says('kept', id, detail)
      // Its end says why, and a Job that is gone is no run in progress.
      await cronJobs.changeJob('kept-1', failed(at(1), at(9)))
      await t.place.inState('kept', 'down')
      expect((await check(id)).status_detail).toBe('container main failed (exit code 7)')
    })

    it('is named if it has ended with 0, and no more when the run ends', async () => {
      const { id } = await startKept('done', state(0))
      await says('done', id, 'container main has ended (exit code 0), and container proxy keeps the pod running')
      await cronJobs.changeJob('done-1', succeeded(at(1), at(9)))
      const object = await t.place.inState('done', 'up')
      expect(conditionOf(object, 'Up')?.message).toBe('the job reports on time')
      expect((await check(id)).status_detail).toBeNull()
    })
  })

  describe('that a tool made from its CronJob', () => {
    const annotations = { 'cronjob.kubernetes.io/instantiate': 'manual' }

    it('counts, although the CronJob does not control it', async () => {
      const { id, owner } = await makeFollowed('triggered')
      const ownerReferences = [ownedBy(owner)]
      const job = await cronJobs.createJob('triggered-manual-x7k', owner, {
        ownerReferences,
        status: failed(at(1), at(2)),
      })
      await recorded(id, [`start ${job} ${at(1)}`, `fail ${job} ${at(2)}`])
      await t.place.inState('triggered', 'down')
    })

    it('counts, although it names no owner, for the CronJob with the longest name in front of its own', async () => {
      const { id } = await makeFollowed('stock')
      const { id: longer } = await makeFollowed('stock-db')
      const status = succeeded(at(1), at(2))
      const parts = { annotations, ownerReferences: [], status }
      const first = await cronJobs.createJob('stock-manual-x7k', '', parts)
      const second = await cronJobs.createJob('stock-db-manual-x7k', '', parts)
      await recorded(id, [`start ${first} ${at(1)}`, `success ${first} ${at(2)}`])
      await recorded(longer, [`start ${second} ${at(1)}`, `success ${second} ${at(2)}`])
      // Also when it is listed.
      await t.operator().stop()
      const third = await cronJobs.createJob('stock-db-manual-y8l', '', { ...parts, status: failed(at(3), at(4)) })
      await t.restart()
      await recorded(longer, [
        `start ${second} ${at(1)}`,
        `success ${second} ${at(2)}`,
        `start ${third} ${at(3)}`,
        `fail ${third} ${at(4)}`,
      ])
      await seen()
      expect(await pingsOf(id)).toHaveLength(2)
    })

    it('does not count without the annotation, of another owner, or of a CronJob of its name that is gone', async () => {
      const { id, owner } = await makeFollowed('strict')
      const status = failed(at(1), at(2))
      await cronJobs.createJob('strict-1', '', { ownerReferences: [], status })
      await cronJobs.createJob('strict-2', '', { annotations, ownerReferences: [ownedBy('former')], status })
      const workflow = { apiVersion: 'v1', kind: 'Workflow', name: 'x', uid: 'w', controller: true }
      await cronJobs.createJob('strict-3', '', { annotations, ownerReferences: [ownedBy(owner), workflow], status })
      const last = await cronJobs.createJob('strict-4', owner, { status: succeeded(at(3), at(4)) })
      await recorded(id, [`start ${last} ${at(3)}`, `success ${last} ${at(4)}`])
      expect(await check(id)).toMatchObject({ status: 'up' })
    })
  })

  it('that ended before its check existed is its history', async () => {
    const { uid: owner } = await cronJobs.create('before', { schedule: '@hourly' })
    base = Date.now() - 3_600_000
    const first = await cronJobs.createJob('before-1', owner, { status: failed(at(-7_200), at(-7_100)) })
    const second = await cronJobs.createJob('before-2', owner, { status: succeeded(at(-3_600), at(-3_500)) })
    const { status } = await t.place.makeReady('before', follow('before'))
    await recorded(status!.checkId!, [
      `start ${first} ${at(-7_200)}`,
      `fail ${first} ${at(-7_100)}`,
      `start ${second} ${at(-3_600)}`,
      `success ${second} ${at(-3_500)}`,
    ])
    await t.place.inState('before', 'up')
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

  it('an open run whose Job is gone is closed without a record, and the last success is that of the CronJob', async () => {
    const { id, owner } = await makeFollowed('limited')
    const first = await cronJobs.createJob('limited-1', owner, { status: running(at(1)) })
    await recorded(id, [`start ${first} ${at(1)}`])
    await t.operator().stop()
    await cronJobs.deleteJob('limited-1')
    await cronJobs.changeStatus('limited', { lastSuccessfulTime: at(7) })
    await t.restart()
    await recorded(id, [`start ${first} ${at(1)}`, `success null ${at(7)}`])
    await closed(id)
    expect((await check(id)).status).toBe('up')
    await t.restart()
    await seen()
    expect(await pingsOf(id)).toHaveLength(2)
  })
})

it('nothing counts as seen while the HeartbeatChecks cannot be listed', async () => {
  const { id, owner } = await makeFollowed('unlisted')
  await seen()
  await t.operator().stop()
  const job = await cronJobs.createJob('unlisted-1', owner, { status: succeeded(at(1), at(8)) })
  const { server } = t.cluster
  const isOfChecks = ({ path }: { path: string }) => path.includes('/heartbeatchecks')
  const heal = server.disturb(isOfChecks, { status: 500, reason: 'InternalError' }, Number.POSITIVE_INFINITY)
  const [from, asked] = [await seenAt(), server.requests.length]
  await t.restart()
  await eventually('they are asked for four times', () => server.requests.slice(asked).filter(isOfChecks).length >= 4)
  expect(await seenAt()).toEqual(from)
  heal()
  await recorded(id, [`start ${job} ${at(1)}`, `success ${job} ${at(8)}`])
  await seen()
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

  it('without its right stops the time up to which all is seen, and all is recorded when the right is back', async () => {
    const { id, owner } = await makeFollowed('forbidden')
    await seen()
    const isJobs = ({ path }: { path: string }) => path.includes('/batch/v1/jobs')
    const grant = t.cluster.server.disturb(isJobs, { status: 403, reason: 'Forbidden' }, Number.POSITIVE_INFINITY)
    for (const watch of t.cluster.server.watches) watch.reset()
    expect(await t.place.stalled('forbidden', 'SourceForbidden')).toContain('jobs.batch')
    const from = await seenAt()
    const job = await cronJobs.createJob('forbidden-1', owner, { status: succeeded(at(1), at(8)) })
    await t.place.makeReady('unconcerned', { periodSeconds: 3_600 })
    expect(await seenAt()).toEqual(from)
    grant()
    await t.restart()
    await recorded(id, [`start ${job} ${at(1)}`, `success ${job} ${at(8)}`])
    await t.place.ready('forbidden')
    await eventually('the time moves on', async () => ((await seenAt()) ?? 0) > from!)
  })
})
