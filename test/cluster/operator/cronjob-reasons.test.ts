/**
 * The table of causes on a real API server: its controllers make Jobs, pods and Events, the test writes what the kubelet or the scheduler
 * would into the status of pods, and the operator's own watch reads it.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../src/kubernetes/client.ts'
import { createKubernetesMetrics } from '../../../src/kubernetes/metrics.ts'
import { toTime } from '../../../src/kubernetes/objects.ts'
import { explainFailure } from '../../../src/operator/reasons/explain-failure.ts'
import { createMissedExplainer } from '../../../src/operator/runs/explain-missed.ts'
import { cronJob } from '../../../src/operator/sources/kinds/cron-job.ts'
import { createSourceWatch, type SourceWatch } from '../../../src/operator/sources/watch-sources.ts'
import { createMetrics } from '../../../src/roles/metrics.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { FollowedCheck } from '../../../src/store/jobs/followed-checks.ts'
import { cluster } from '../../support/cluster.ts'
import { ABSENCES, type Cause, FAILURES, fill, NODE, WAITS } from '../../support/job-causes.ts'
import { connectionOf } from '../../support/operator.ts'
import { silentLog } from '../../support/silent-log.ts'
import { eventually } from '../../support/until.ts'
import { api, batch, core, endPod, findPod, jobSpec, makeCronJob, makeJob, writePod } from './cron-job-runs.ts'

const stack = new AsyncDisposableStack()
const { signal } = new AbortController()
let namespace: string
let client: ReturnType<typeof createClient>
let sources: SourceWatch

beforeAll(async () => {
  namespace = stack.use(await cluster.makeNamespace()).name
  client = createClient({ connection: await connectionOf(cluster.kubeconfigPath), clock: systemClock })
  stack.defer(client.close)
  const metrics = createKubernetesMetrics(createMetrics().registry)
  sources = createSourceWatch({
    kind: cronJob,
    client,
    cluster: 'default',
    namespaces: null,
    clock: systemClock,
    random: Math.random,
    stallMs: undefined,
    log: silentLog,
    metrics: metrics.reflector,
  })
  sources.start()
  stack.defer(sources.stop)
  await eventually('all is listed', () => sources.hasSynced())
})
afterAll(() => stack.disposeAsync())

async function makeRun(title: string, cause: Cause, prefix: string) {
  const cronJob = await makeCronJob(namespace, `${prefix}-${slug(title)}`)
  const { metadata } = await makeJob(cronJob, jobSpec(cause.job, cause.podSpec))
  const pod = await findPod(namespace, metadata.name)
  const names = { NAMESPACE: namespace, CRONJOB: cronJob.metadata.name, JOB: metadata.name, POD: pod }
  const filled = fill(cause, names)
  await writePod(namespace, pod, filled)
  if (filled.killedStatus !== undefined) await endPod(namespace, pod, filled.killedStatus)
  return { cronJob, filled, findRun: () => [...sources.runsOf(cronJob.metadata.uid)][0] }
}

const slug = (title: string) =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 30)
    .replace(/-$/, '')

describe.concurrent('a Job that failed', () => {
  it.each(FAILURES)('$title', async (cause) => {
    const { filled, findRun } = await makeRun(cause.title, cause, 'fails')
    const run = await eventually('it fails', () => (findRun()?.outcome === 'Failed' ? findRun() : null))
    // The fixtures of the unit test say the same.
    expect(run.condition).toEqual(filled.condition)
    const { says, reason, exitCode = null, body } = filled
    // The pods come by another watch.
    await eventually('it is explained', () => {
      const failure = explainFailure(run, sources.podsOf(run.metadata))
      expect(failure).toMatchObject({ firstLine: says, reason, exitCode })
      if (body !== undefined) expect(failure.body.split('\n').slice(1)).toEqual(body)
      return true
    })
  })
})

/** Explains a check of the CronJob that is due now, by what the caches and the API server have. */
async function explainNow(name: string, slotAt: number, where = namespace, from: SourceWatch = sources) {
  const check: FollowedCheck = {
    key: 1,
    resource: { cluster: 'default', namespace: where, name },
    source: name,
    createdAt: 0,
    status: 'up',
    dueAt: Date.now(),
    graceMs: Date.now() - slotAt,
    openJobRuns: [],
    explainedFor: null,
  }
  const options = { listDue: async () => [check], client, sources: from, clock: systemClock, log: silentLog }
  return (await createMissedExplainer(options).explain(['default'], Date.now(), signal))[0]
}

describe.concurrent('a Job whose pod waits', () => {
  it.each(WAITS)('$title', async (cause) => {
    const slotAt = Date.now()
    const { cronJob, filled } = await makeRun(cause.title, cause, 'waits')
    await eventually('it is explained', async () => {
      const found = await explainNow(cronJob.metadata.name, slotAt)
      expect(found).toMatchObject({ job: `${cronJob.metadata.name}-1`, detail: filled.says })
      return true
    })
  })
})

describe.concurrent('no Job, or a Job without a pod', () => {
  const causeOf = (title: string) => ABSENCES.find((cause) => cause.title === title)!
  const SLOT_AT = Math.floor(Date.now() / 1_000) * 1_000 - 60_000

  /** Its detail is what the table says; names that only the API server knows are read from it. */
  async function expectCause(title: string, name: string, names: object = {}, where = namespace, from = sources) {
    await eventually(`${title} is explained`, async () => {
      const { detail } = (await explainNow(name, SLOT_AT, where, from))!
      const POD = /pods? "?([a-z0-9-]+)/.exec(detail)?.[1] ?? 'POD'
      const known = { NAMESPACE: where, CRONJOB: name, JOB: `${name}-1`, POD, SLOT: toTime(SLOT_AT), ...names }
      expect(detail).toBe(fill(causeOf(title).says, known))
      return true
    })
  }

  /** The schedule's last slot has just passed, and its controller learns of it now. */
  async function makeDueCronJob(name: string, spec: object) {
    await makeCronJob(namespace, name, spec)
    const path = `${batch('cronjobs', namespace)}/${name}`
    const lastScheduleTime = toTime(Date.now() - 3 * 3_600_000)
    await api('PATCH', `${path}/status`, { status: { lastScheduleTime } })
    await api('PATCH', path, { spec: { suspend: false } })
    return eventually('its controller makes a Job', async () => {
      const { status } = await api('GET', path)
      return (status.active?.[0]?.name as string | undefined) ?? null
    })
  }
  const scheduleOf = (at: number) => `${new Date(at).getUTCMinutes()} ${new Date(at).getUTCHours()} * * *`

  it('quota exceeded', async () => {
    await using place = await cluster.makeNamespace()
    const path = core('resourcequotas', place.name)
    await api('POST', path, { metadata: { name: 'no-pods' }, spec: { hard: { pods: '0' } } })
    await eventually('it counts', async () => (await api('GET', `${path}/no-pods`)).status?.hard?.pods === '0')
    await makeJob(await makeCronJob(place.name, 'quota'))
    await expectCause('quota exceeded', 'quota', {}, place.name)
  })

  it('admission denied', async () => {
    await using place = await cluster.makeNamespace()
    const POLICY = `${place.name}-images`
    const group = '/apis/admissionregistration.k8s.io/v1'
    await api('POST', `${group}/validatingadmissionpolicies`, {
      metadata: { name: POLICY },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
        validations: [{ expression: 'false', message: 'images must come from registry.example.com' }],
      },
    })
    stack.defer(() => api('DELETE', `${group}/validatingadmissionpolicies/${POLICY}`))
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': place.name } }
    await api('POST', `${group}/validatingadmissionpolicybindings`, {
      metadata: { name: POLICY },
      spec: { policyName: POLICY, validationActions: ['Deny'], matchResources: { namespaceSelector } },
    })
    stack.defer(() => api('DELETE', `${group}/validatingadmissionpolicybindings/${POLICY}`))
    const probe = { metadata: { name: 'probe' }, spec: { containers: [{ name: 'x', image: 'x' }] } }
    await eventually('it is enforced', async () => {
      const { status } = await cluster.api('POST', `${core('pods', place.name)}?dryRun=All`, probe)
      return status === 422
    })
    await makeJob(await makeCronJob(place.name, 'denied'))
    await expectCause('admission denied', 'denied', { POLICY }, place.name)
  })

  it('volume that cannot be mounted', async () => {
    const { event } = causeOf('volume that cannot be mounted')
    await makeJob(await makeCronJob(namespace, 'mount'))
    const pod = await findPod(namespace, 'mount-1')
    const { uid } = (await api('GET', `${core('pods', namespace)}/${pod}`)).metadata
    const now = toTime(Date.now())
    await api('POST', core('events', namespace), {
      metadata: { name: `${pod}.1` },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name: pod, uid },
      type: 'Warning',
      ...event,
      source: { component: 'kubelet', host: NODE },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    })
    await expectCause('volume that cannot be mounted', 'mount', { POD: pod })
  })

  it('more than 100 missed times', async () => {
    await makeDueCronJob('missed', { schedule: '* * * * *' })
    // Kubernetes warns, and starts the newest one; before 1.21 it started none.
    await expectCause('more than 100 missed times', 'missed', {}, namespace, { ...sources, runsOf: () => [] })
  })

  it('Job suspended', async () => {
    await makeJob(await makeCronJob(namespace, 'job-suspended'), jobSpec({ suspend: true }))
    await expectCause('Job suspended', 'job-suspended')
  })

  it('CronJob suspended', async () => {
    await makeCronJob(namespace, 'suspended')
    await expectCause('CronJob suspended', 'suspended')
  })

  it('`startingDeadlineSeconds` passed', async () => {
    await makeCronJob(namespace, 'deadline', { suspend: false, startingDeadlineSeconds: 30 })
    await expectCause('`startingDeadlineSeconds` passed', 'deadline')
  })

  it('`concurrencyPolicy: Forbid`, and a Job that has not ended', async () => {
    const schedule = scheduleOf(Date.now() - 60_000)
    const JOB = await makeDueCronJob('forbid', { schedule, concurrencyPolicy: 'Forbid' })
    const pod = await findPod(namespace, JOB)
    const title = '`concurrencyPolicy: Forbid`, and a Job that has not ended'
    const status = { name: 'backup', image: 'x', imageID: '', restartCount: 0 }
    // Between two attempts the pod is neither ready nor failed, and the Job still blocks others.
    const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed container' }
    await writePod(namespace, pod, {
      status: { phase: 'Running', containerStatuses: [{ ...status, ready: false, state: { waiting } }] },
    })
    await eventually('the loop is seen', () => {
      const runs = [...sources.runsOf(sources.getSource(`${namespace}/forbid`)!.metadata.uid)]
      return sources.podsOf(runs[0]!.metadata)[0]?.containers[0]?.waiting?.reason === waiting.reason
    })
    const { detail } = (await explainNow('forbid', Date.now()))!
    const why = `container backup could not start: ${waiting.reason}: ${waiting.message}`
    expect(detail).toBe(`${fill(causeOf(title).says, { JOB })}: ${why}`)
    const containerStatuses = [{ ...status, ready: true, state: { running: {} } }]
    const conditions = [{ type: 'Ready', status: 'True' }]
    await writePod(namespace, pod, { status: { phase: 'Running', containerStatuses, conditions } })
    await expectCause(title, 'forbid', { JOB })
  })

  it('Job deleted before it started', async () => {
    const job = await makeDueCronJob('deleted', { schedule: scheduleOf(SLOT_AT + 60_000) })
    await api('DELETE', `${batch('jobs', namespace)}/${job}?propagationPolicy=Background`)
    await expectCause('Job deleted before it started', 'deleted')
  })

  it('no controller of CronJobs', async () => {
    await makeCronJob(namespace, 'never', { suspend: false })
    await expectCause('no controller of CronJobs', 'never')
  })
})
