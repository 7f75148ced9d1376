/**
 * What is recorded of real Jobs: their controllers make and delete them, the test writes what the kubelet would into the status of pods.
 * The rules in detail: test/operator/recorded-runs.test.ts.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toTime } from '../../../src/kubernetes/objects.ts'
import { cluster } from '../../support/cluster.ts'
import { follow, LABELLED } from '../../support/cron-jobs.ts'
import { type JobPing, readJobPings } from '../../support/job-pings.ts'
import { type Scene, startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { type Workplace, workIn } from '../../support/workplace.ts'
import { api, batch, findPod, jobSpec, makeCronJob, writePod } from './cron-job-runs.ts'
import { installNamespacedRights, reach } from './stage.ts'

const stack = new AsyncDisposableStack()
let scene: Scene
let place: Workplace

beforeAll(async () => {
  const { name } = stack.use(await cluster.makeNamespace())
  const connection = await reach(cluster, await installNamespacedRights(name))
  const settings = { resyncMs: 3_600_000, cronJobs: LABELLED, namespaces: [name] }
  scene = stack.use(await startScene(connection, settings, name))
  place = workIn(connection, name)
})
afterAll(() => stack.disposeAsync())

const kubectl = (...args: string[]) => cluster.kubectl('-n', place.name, ...args)

interface Followed {
  readonly name: string
  /** Of the check. */
  readonly id: string
}

/** A CronJob that starts nothing by itself, and a HeartbeatCheck that follows it. */
async function makeFollowed(name: string, spec: object = {}, ofJobs: object = {}): Promise<Followed> {
  const jobTemplate = { spec: jobSpec({ backoffLimit: 2, ...ofJobs }) }
  await makeCronJob(place.name, name, { suspend: false, jobTemplate, ...spec })
  const { status } = await place.makeReady(name, follow(name))
  return { name, id: status!.checkId! }
}

/** As a person does. Resolves with the uid of the Job. */
async function startJob(job: string, { name }: Followed): Promise<string> {
  await kubectl('create', 'job', job, `--from=cronjob/${name}`)
  return (await api('GET', `${batch('jobs', place.name)}/${job}`)).metadata.uid
}

const podOf = (job: string, except?: readonly string[]) => findPod(place.name, job, except)
const writeStatus = (pod: string, status: object) => writePod(place.name, pod, { status })
const run = (pod: string) =>
  writeStatus(pod, {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [container({ running: {} }, true)],
  })
const end = (pod: string, exitCode: number, agoMs = 0) => {
  const finishedAt = new Date(Date.now() - agoMs).toISOString()
  const state = { terminated: { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', finishedAt } }
  return writeStatus(pod, {
    phase: exitCode === 0 ? 'Succeeded' : 'Failed',
    containerStatuses: [container(state, false)],
  })
}
const container = (state: object, ready: boolean) => ({
  name: 'backup',
  image: 'example.com/backup:1',
  imageID: '',
  restartCount: 0,
  ready,
  state,
})

const pingsOf = ({ id }: Followed) => readJobPings(scene, id)
const secondOf = ({ at }: JobPing) => Math.trunc(at / 1_000)
const check = async ({ id }: Followed) => (await scene.app.call('GET', `/checks/${id}`)).body

async function recorded(of: Followed, expected: readonly string[]): Promise<readonly JobPing[]> {
  return eventually(`recorded of ${of.name}: ${expected.join(', ')}`, async () => {
    const pings = await pingsOf(of)
    // Of the same second, a start comes before an end.
    expect(pings.map(({ type, runId }) => `${type} ${runId}`).toSorted()).toEqual(expected.toSorted())
    return pings
  })
}

describe('a Job', () => {
  it('starts when its pod runs, and succeeds at its completion with the second pod', async () => {
    const of = await makeFollowed('works')
    const uid = await startJob('works-1', of)
    const pods = [await podOf('works-1')]
    await run(pods[0]!)
    await recorded(of, [`start ${uid}`])
    // The Job has not failed: its controller makes another pod ten seconds after the end of the first one.
    await end(pods[0]!, 1, 10_000)
    pods.push(await podOf('works-1', pods))
    await run(pods[1]!)
    await end(pods[1]!, 0)
    const [start, success] = await recorded(of, [`start ${uid}`, `success ${uid}`])
    const { status } = await api('GET', `${batch('jobs', place.name)}/works-1`)
    expect(start!.at).toBe(Date.parse(status.startTime))
    expect(secondOf(success!)).toBe(Date.parse(status.completionTime) / 1_000)
    expect(success!.duration).toBe(Date.parse(status.completionTime) - Date.parse(status.startTime))
    expect((await check(of)).status).toBe('up')
  })

  it('that is deleted at its end with its pods, by a TTL of 0, has its outcome and its reason', async () => {
    const limits = { successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0 }
    const of = await makeFollowed('vanishes', limits, { ttlSecondsAfterFinished: 0, backoffLimit: 0 })
    const uid = await startJob('vanishes-1', of)
    const pod = await podOf('vanishes-1')
    await run(pod)
    await end(pod, 3)
    const [, fail] = await recorded(of, [`start ${uid}`, `fail ${uid}`])
    expect(fail!.exitCode).toBe(3)
    const object = await place.inState('vanishes', 'down')
    expect(object.status?.lastRun).toMatchObject({
      outcome: 'Failed',
      message: 'container backup failed (exit code 3)',
    })
    await eventually(
      'it is gone',
      async () => (await cluster.api('GET', `${batch('jobs', place.name)}/vanishes-1`)).status === 404,
    )
    const second = await startJob('vanishes-2', of)
    const next = await podOf('vanishes-2')
    await run(next)
    await end(next, 0)
    await recorded(of, [`start ${uid}`, `fail ${uid}`, `start ${second}`, `success ${second}`])
    expect((await check(of)).status).toBe('up')
  })

  it.each([
    ['by a name alone', 'dashboard', { annotations: { 'cronjob.kubernetes.io/instantiate': 'manual' } }],
    ['as an owner that does not control it', 'k9s', {}],
  ])('that a tool made from its CronJob, which it names %s, counts', async (_, name, more) => {
    const of = await makeFollowed(name)
    const { metadata, spec } = await api('GET', `${batch('cronjobs', place.name)}/${name}`)
    const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name, uid: metadata.uid, blockOwnerDeletion: true }
    const ownerReferences = 'annotations' in more ? [] : [owner]
    const job = await api('POST', batch('jobs', place.name), {
      metadata: { name: `${name}-manual-x7k`, ownerReferences, ...more },
      spec: { ...spec.jobTemplate.spec, backoffLimit: 0 },
    })
    const pod = await podOf(job.metadata.name)
    await run(pod)
    await end(pod, 3)
    await recorded(of, [`start ${job.metadata.uid}`, `fail ${job.metadata.uid}`])
    await place.inState(name, 'down')
  })

  it('that is deleted before it ended is a log', async () => {
    const of = await makeFollowed('cut')
    const uid = await startJob('cut-1', of)
    await run(await podOf('cut-1'))
    await recorded(of, [`start ${uid}`])
    await kubectl('delete', 'job', 'cut-1', '--wait=false')
    await recorded(of, [`start ${uid}`, `log ${uid}`])
    expect(await check(of)).toMatchObject({ running: 0, status: 'new' })
  })

  it('whose container fails again and again has started, though no pod is ready', async () => {
    const template = jobSpec({}, { restartPolicy: 'OnFailure' }).template
    const of = await makeFollowed('loop', {}, { template })
    const uid = await startJob('loop-1', of)
    const pod = await podOf('loop-1')
    const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container' }
    const lastState = { terminated: { exitCode: 8, reason: 'Error', finishedAt: new Date().toISOString() } }
    const containerStatuses = [{ ...container({ waiting }, false), restartCount: 1, lastState }]
    await writeStatus(pod, { phase: 'Running', containerStatuses })
    await recorded(of, [`start ${uid}`])
    expect((await api('GET', `${batch('jobs', place.name)}/loop-1`)).status).toMatchObject({ ready: 0 })
  })

  it('that its CronJob replaces at the next slot takes the check down', async () => {
    const of = await makeFollowed('hang', { concurrencyPolicy: 'Replace' })
    const path = `${batch('cronjobs', place.name)}/hang`
    await api('PATCH', `${path}/status`, { status: { lastScheduleTime: toTime(Date.now() - 3_600_000) } })
    /** Makes a Job for a slot that has passed. */
    const startSlot = async (minutesAgo: number, before?: string) => {
      const slot = new Date(Date.now() - minutesAgo * 60_000)
      await api('PATCH', path, { spec: { schedule: `${slot.getUTCMinutes()} ${slot.getUTCHours()} * * *` } })
      // With a new schedule alone its controller would wait for the next slot.
      await api('PATCH', path, { metadata: { annotations: { minutesAgo: `${minutesAgo}` } } })
      return eventually('its controller makes a Job', async () => {
        const name: string | undefined = (await api('GET', path)).status.active?.[0]?.name
        return name === before ? undefined : name
      })
    }
    const first = await startSlot(10)
    await run(await podOf(first))
    const { uid } = (await api('GET', `${batch('jobs', place.name)}/${first}`)).metadata
    await recorded(of, [`start ${uid}`])
    const second = await startSlot(1, first)
    await recorded(of, [`start ${uid}`, `log ${uid}`])
    await place.inState('hang', 'down')
    const { flips } = (await scene.app.call('GET', `/checks/${of.id}/flips`)).body
    expect(flips[0]).toMatchObject({
      reason: 'overran',
      detail: `Job ${first} had not ended when Job ${second} replaced it`,
    })
  })

  it('that ended in a downtime is recorded after it; of one that is gone, what the CronJob says', async () => {
    const kept = await makeFollowed('kept')
    const limits = { successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 0 }
    const gone = await makeFollowed('gone', limits, { ttlSecondsAfterFinished: 0 })
    const [first, second] = [await startJob('kept-1', kept), await startJob('gone-1', gone)]
    const pods = [await podOf('kept-1'), await podOf('gone-1')]
    await Promise.all(pods.map(run))
    await recorded(kept, [`start ${first}`])
    await recorded(gone, [`start ${second}`])
    await scene.operator().stop()
    await Promise.all(pods.map((pod) => end(pod, 0)))
    await eventually(
      'one is gone',
      async () => (await cluster.api('GET', `${batch('jobs', place.name)}/gone-1`)).status === 404,
    )
    const successAt = await eventually(
      'the CronJob says so',
      async () => (await api('GET', `${batch('cronjobs', place.name)}/gone`)).status.lastSuccessfulTime,
    )
    await eventually(
      'the other one is complete',
      async () => (await api('GET', `${batch('jobs', place.name)}/kept-1`)).status.succeeded,
    )
    await scene.restart()
    await recorded(kept, [`start ${first}`, `success ${first}`])
    const [, success] = await recorded(gone, [`start ${second}`, 'success null'])
    expect(secondOf(success!)).toBe(Date.parse(successAt) / 1_000)
    await eventually('its run is closed', async () => !(await check(gone)).running)
  })
})

describe('the right to read Jobs', () => {
  it('that is removed stalls what needs it, and stops nothing else; what happened meanwhile is recorded when it is back', async () => {
    const of = await makeFollowed('blind')
    const uid = await startJob('blind-1', of)
    const pod = await podOf('blind-1')
    await run(pod)
    await recorded(of, [`start ${uid}`])
    await kubectl('delete', 'rolebinding', 'heartbeat-operator-cronjobs')
    expect(await place.stalled('blind', 'SourceForbidden')).toMatch(/list (jobs|cronjobs)\.batch/)
    await place.makeReady('unconcerned', { periodSeconds: 3_600 })
    const seenAt = async () =>
      ((await scene.sql('select seen_at as at from seen_areas')).rows as { at: number | null }[])[0]?.at ?? 0
    // A round that began before may still be saved.
    const goneAt = Date.now()
    await end(pod, 0)
    await eventually(
      'it is complete',
      async () => (await api('GET', `${batch('jobs', place.name)}/blind-1`)).status.succeeded,
    )
    expect(await seenAt()).toBeLessThan(goneAt)
    await installNamespacedRights(place.name)
    await recorded(of, [`start ${uid}`, `success ${uid}`])
    await place.ready('blind', 60_000)
    await eventually('all is seen again', async () => (await seenAt()) > goneAt)
  }, 90_000)
})
