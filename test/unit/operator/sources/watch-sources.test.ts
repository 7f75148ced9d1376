/** The caches of CronJobs, Jobs and pods, on the fake API server: what is kept, indexed and forbidden. */

import { describe, expect, it } from 'vitest'
import { createClient } from '../../../../src/kubernetes/client.ts'
import { RESTORE_RIGHTS } from '../../../../src/operator/names.ts'
import { cronJob } from '../../../../src/operator/sources/kinds/cron-job.ts'
import { createSourceWatch, type SourceWatch } from '../../../../src/operator/sources/watch-sources.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'
import { type FakeCluster, startFakeCluster } from '../../../support/fake-cluster.ts'
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts'
import { listen } from '../../../support/operator.ts'
import { eventually } from '../../../support/until.ts'

const CRONJOBS = { group: 'batch', plural: 'cronjobs' }
const JOBS = { group: 'batch', plural: 'jobs' }
const PODS = { group: '', plural: 'pods' }

interface Stage extends AsyncDisposable {
  readonly cluster: FakeCluster
  readonly clock: ManualClock
  readonly watch: SourceWatch
  readonly said: string[]
  /** Returns its uid. */
  cronJob(name: string, namespace?: string): string
  job(name: string, owner: string, status?: object, namespace?: string): string
  pod(name: string, job: string, phase?: string, labels?: Record<string, string>, namespace?: string): string
  /** What a kubelet writes of its container. */
  container(pod: string, container: object): void
  podsOf(job: string): ReturnType<SourceWatch['podsOf']>
  /** Gives the Job other fields. */
  changeJob(name: string, fields: object): void
  /** Waits until all is listed. */
  start(): Promise<void>
}

async function open(namespaces: readonly string[] | null = null, areLogsRead = false): Promise<Stage> {
  const stack = new AsyncDisposableStack()
  const cluster = stack.use(await startFakeCluster())
  const client = createClient({ connection: cluster.connection, clock: systemClock })
  stack.defer(() => client.close())
  const clock = createManualClock()
  const { log, said } = listen()
  const metrics = () => ({ restarted() {}, contact() {}, objects() {} })
  const watch = createSourceWatch({
    kind: cronJob,
    client,
    cluster: 'prod',
    namespaces,
    clock,
    random: () => 0.5,
    stallMs: undefined,
    log,
    metrics,
    areLogsRead,
  })
  stack.defer(() => watch.stop())
  const create = (type: { group: string; plural: string }, metadata: object, fields: object) =>
    cluster.server.collection(type).create({ metadata: { namespace: 'shop', ...metadata } as never, ...fields })
      .metadata.uid!
  const ownedBy = (kind: string, uid: string) => [{ apiVersion: 'batch/v1', kind, name: 'x', uid, controller: true }]
  return {
    cluster,
    clock,
    watch,
    said,
    cronJob: (name, namespace = 'shop') => create(CRONJOBS, { name, namespace }, { spec: { schedule: '0 2 * * *' } }),
    job: (name, owner, status = {}, namespace = 'shop') =>
      create(JOBS, { name, namespace, ownerReferences: ownedBy('CronJob', owner) }, { spec: {}, status }),
    pod: (name, job, phase = 'Running', labels = { 'batch.kubernetes.io/job-name': 'x' }, namespace = 'shop') =>
      create(PODS, { name, namespace, labels, ownerReferences: ownedBy('Job', job) }, { spec: {}, status: { phase } }),
    container(name, container) {
      const pods = cluster.server.collection(PODS)
      const containerStatuses = [{ name: 'main', restartCount: 0, ready: false, ...container }]
      const pod = pods.get(`shop/${name}`)
      pods.replace(`shop/${name}`, { ...pod, status: { phase: 'Running', containerStatuses } } as never)
    },
    podsOf: (uid) => watch.podsOf({ namespace: 'shop', uid }),
    changeJob(name, fields) {
      const jobs = cluster.server.collection(JOBS)
      jobs.replace(`shop/${name}`, { ...jobs.get(`shop/${name}`), ...fields } as never)
    },
    async start() {
      watch.start()
      await eventually('all is listed', () => watch.hasSynced())
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const namesOf = (objects: Iterable<{ readonly metadata: { readonly name: string } }>) =>
  [...objects].map(({ metadata }) => metadata.name).sort()

describe('the watch of sources', () => {
  it('finds the runs of a source, and the pods of a run that have not succeeded', async () => {
    await using t = await open()
    const [backup, report] = [t.cronJob('backup'), t.cronJob('report')]
    const run = t.job('backup-1', backup)
    t.job('report-1', report)
    t.job('manual', 'nothing')
    await t.start()
    t.job('backup-2', backup)
    const failed = t.pod('backup-1-a', run, 'Failed')
    t.pod('backup-1-b', run, 'Succeeded')
    t.pod('other', run, 'Running', {})
    await eventually('they are seen', () => namesOf(t.watch.runsOf(backup)).length === 2 && t.podsOf(run).length > 0)
    expect(namesOf(t.watch.sources())).toEqual(['backup', 'report'])
    expect(t.watch.getSource('shop/backup')).toMatchObject({ schedule: '0 2 * * *', metadata: { uid: backup } })
    expect(namesOf(t.watch.runsOf(backup))).toEqual(['backup-1', 'backup-2'])
    expect(t.watch.getRun(backup, run)?.metadata.name).toBe('backup-1')
    expect(t.watch.getRun(report, run)).toBeUndefined()
    expect(t.podsOf(run).map(({ metadata }) => metadata.uid)).toEqual([failed])
    expect([t.watch.missingRight('shop'), t.watch.isListed('shop'), t.said]).toEqual([null, true, []])
  })

  it('takes nothing of another namespace for its own, whatever owner it claims', async () => {
    await using t = await open()
    const heard: (string | null)[] = []
    t.watch.onRun((source, { after }) => after?.metadata.name === 'later' && heard.push(source))
    const backup = t.cronJob('backup')
    const run = t.job('backup-1', backup)
    const early = t.job('early', backup, {}, 'bank')
    t.pod('backup-1-a', run, 'Failed')
    t.pod('foreign', run, 'Failed', undefined, 'bank')
    await t.start()
    const later = t.job('later', backup, {}, 'bank')
    await eventually('it is heard', () => heard.length > 0)
    expect(heard).toEqual([null])
    expect(namesOf(t.watch.runsOf(backup))).toEqual(['backup-1'])
    expect([early, later].map((uid) => t.watch.getRun(backup, uid))).toEqual([undefined, undefined])
    expect(namesOf(t.podsOf(run))).toEqual(['backup-1-a'])
  })

  it('reports changes of runs with the key of their source, and null while that is unknown', async () => {
    await using t = await open()
    const heard: (string | null)[] = []
    t.watch.onRun((source, { before, after }) =>
      heard.push(source, after?.metadata.name ?? `${before!.metadata.name} gone`),
    )
    await t.start()
    const backup = t.cronJob('backup')
    await eventually('the source is seen', () => t.watch.getSource('shop/backup') !== undefined)
    t.job('a', backup)
    t.job('b', t.job('owner', backup))
    t.job('c', backup)
    await eventually('they are seen', () => heard.length === 8)
    t.cluster.server.collection(CRONJOBS).delete('shop/backup')
    await eventually('the source is gone', () => t.watch.getSource('shop/backup') === undefined)
    // The garbage collector deletes the Jobs after the CronJob: they are still of that source.
    await eventually('the runs are gone', () => heard.length === 16)
    const of = (source: string | null) => heard.filter((_, index) => heard[index - 1] === source && index % 2 === 1)
    expect(of('shop/backup')).toEqual(['a', 'owner', 'c', 'a gone', 'c gone', 'owner gone'])
    expect(of(null)).toEqual(['b', 'b gone'])
    expect(namesOf([...t.watch.goneRuns()].map(({ run }) => run))).toEqual(['a', 'c', 'owner'])
  })

  it('keeps what was deleted for five minutes: runs for the next leader, pods for the reason', async () => {
    await using t = await open()
    const backup = t.cronJob('backup')
    const run = t.job('backup-1', backup, { failed: 1 })
    t.pod('backup-1-a', run, 'Failed')
    t.watch.start()
    await eventually('they are seen', () => t.watch.hasSynced() && t.podsOf(run).length === 1)
    t.cluster.server.collection(JOBS).delete('shop/backup-1')
    await eventually('the run is gone', () => [...t.watch.goneRuns()].length === 1)
    await eventually(
      'the pod went with it',
      () => t.cluster.server.collection(PODS).list(() => true, 0, null).items.length === 0,
    )
    expect([...t.watch.goneRuns()]).toMatchObject([{ source: 'shop/backup', isListed: false, run: { failedPods: 1 } }])
    expect(namesOf(t.watch.runsOf(backup))).toEqual([])
    // Longer than the deletion takes to arrive.
    const later = t.job('later', backup)
    t.pod('other', later)
    await eventually('a later pod is seen', () => t.podsOf(later).length === 1)
    await t.clock.advance(299_000)
    expect(t.podsOf(run)).toHaveLength(1)
    await t.clock.advance(2_000)
    expect([...t.watch.goneRuns()]).toEqual([])
    t.cluster.server.collection(PODS).delete('shop/other')
    await eventually('the older pod is forgotten', () => t.podsOf(run).length === 0)
  })

  it('says of a run whether its deletion was watched, or found out by a list', async () => {
    await using t = await open()
    const backup = t.cronJob('backup')
    t.job('watched', backup)
    t.job('listed', backup)
    await t.start()
    const jobs = t.cluster.server.collection(JOBS)
    await eventually('it is watched', () => t.cluster.server.watches.length === 3)
    jobs.delete('shop/watched')
    await eventually('it is gone', () => [...t.watch.goneRuns()].length === 1)
    for (const watch of t.cluster.server.watches) watch.silence()
    jobs.delete('shop/listed')
    t.cluster.server.expire()
    for (const watch of t.cluster.server.watches) watch.reset()
    await eventually('the other one is gone', async () => {
      await t.clock.advance(1_000)
      return [...t.watch.goneRuns()].length === 2
    })
    expect([...t.watch.goneRuns()].map(({ run, isListed }) => [run.metadata.name, isListed])).toEqual([
      ['watched', false],
      ['listed', true],
    ])
  })
})

describe('a run whose Job counts no pod that is ready or has ended', () => {
  const ended = { lastState: { terminated: { exitCode: 8, reason: 'Error' } }, restartCount: 1 }
  const isStarted = (t: Stage, source: string, run: string) => t.watch.getRun(source, run)?.outcome === 'Running'

  it('has started when a container of its pod has failed, and stays so', async () => {
    await using t = await open()
    const backup = t.cronJob('backup')
    const run = t.job('backup-1', backup, { startTime: '2026-01-01T00:00:00Z', active: 1 })
    t.pod('backup-1-a', run, 'Pending')
    await t.start()
    const heard: unknown[] = []
    t.watch.onRun((source, { before, after }) => heard.push([source, before?.outcome, after?.outcome, after?.hasPod]))
    expect(t.watch.getRun(backup, run)?.outcome).toBeNull()
    t.container('backup-1-a', ended)
    await eventually('it has started', () => isStarted(t, backup, run))
    expect(heard).toEqual([['shop/backup', null, 'Running', true]])
    t.cluster.server.collection(PODS).delete('shop/backup-1-a')
    t.changeJob('backup-1', { status: { startTime: '2026-01-01T00:00:00Z', active: 1, ready: 0 } })
    await eventually('the change is heard', () => heard.length === 2)
    expect(heard[1]).toEqual(['shop/backup', 'Running', 'Running', true])
    const conditions = [{ type: 'Failed', status: 'True', lastTransitionTime: '2026-01-01T00:01:00Z' }]
    t.changeJob('backup-1', { status: { startTime: '2026-01-01T00:00:00Z', conditions } })
    await eventually('the end is heard', () => heard.length === 3)
    expect(heard[2]).toEqual(['shop/backup', 'Running', 'Failed', true])
  })

  it('has started when both are listed, whichever comes first', async () => {
    await using t = await open()
    const backup = t.cronJob('backup')
    const run = t.job('backup-1', backup, { active: 1 })
    t.pod('backup-1-a', run)
    t.container('backup-1-a', ended)
    t.watch.start()
    await eventually('it has started', () => isStarted(t, backup, run))
  })

  it('has not started again when it goes on after a suspension, by the pods that this has taken', async () => {
    await using t = await open()
    const backup = t.cronJob('backup')
    const run = t.job('backup-1', backup, { startTime: '2026-01-01T00:00:00Z', active: 1 })
    t.pod('backup-1-a', run)
    t.container('backup-1-a', ended)
    t.watch.start()
    await eventually('it has started', () => isStarted(t, backup, run))
    t.changeJob('backup-1', { spec: { suspend: true }, status: {} })
    t.cluster.server.collection(PODS).delete('shop/backup-1-a')
    await eventually('it is suspended', () => t.watch.getRun(backup, run)?.suspended === true)
    await eventually('the pod is gone', () => t.podsOf(run)[0]?.hasStarted === false)
    expect(t.watch.getRun(backup, run)?.outcome).toBeNull()
    t.changeJob('backup-1', { spec: { suspend: false }, status: { startTime: '2026-01-01T00:10:00Z', active: 1 } })
    await eventually('it goes on', () => t.watch.getRun(backup, run)?.suspended === false)
    expect(t.watch.getRun(backup, run)?.outcome).toBeNull()
    t.pod('backup-1-b', run)
    t.container('backup-1-b', { state: { running: {} } })
    await eventually('it has started again', () => isStarted(t, backup, run))
  })
})

const FORBIDDEN = { status: 403, reason: 'Forbidden', message: 'it is forbidden' }
const { signal } = new AbortController()
/** The next question about each right, and in between those that follow from a change. */
const askAll = async (t: Stage) => {
  for (let n = 0; n < 12; n += 1) await t.watch.rights.ask(signal)
}

it('finds that the right to pods was removed, or is back, while their watch goes on', async () => {
  await using t = await open()
  await t.start()
  await askAll(t)
  expect(t.watch.missingRight('shop')).toBeNull()
  const grant = t.cluster.server.forbid((path) => path === '/api/v1/pods')
  await askAll(t)
  expect(t.watch.missingRight('shop')).toBe('list pods')
  grant()
  await askAll(t)
  expect(t.watch.missingRight('shop')).toBeNull()
})

describe('a right that only reasons need', () => {
  const rightsOf = (t: Stage, namespace = 'shop') => t.watch.missingReasonRights(namespace).map(({ right }) => right)

  it('is named from the first questions on, and stalls nothing', async () => {
    await using t = await open(null, true)
    const grantEvents = t.cluster.server.forbid((path) => path === '/api/v1/events')
    const grantLogs = t.cluster.server.forbid((path) => path.endsWith('/log'))
    await t.watch.rights.ask(signal)
    expect(rightsOf(t)).toEqual(['list events', 'get pods/log'])
    expect(t.watch.missingRight('shop')).toBeNull()
    grantEvents()
    await askAll(t)
    expect(rightsOf(t)).toEqual(['get pods/log'])
    grantLogs()
    await askAll(t)
    expect(rightsOf(t)).toEqual([])
  })

  it('is that of one namespace, and logs are not asked for unless they are read', async () => {
    await using t = await open(['shop', 'bank'])
    t.cluster.server.forbid((path) => path === '/api/v1/namespaces/bank/events')
    await askAll(t)
    expect(rightsOf(t, 'bank')).toEqual(['list events in the namespace bank'])
    expect(rightsOf(t, 'shop')).toEqual([])
    expect(t.cluster.server.requests.filter(({ body }) => body.includes('log'))).toEqual([])
  })
})

it('knows in which areas a run of a source has not ended', async () => {
  await using t = await open(['shop', 'bank', 'cafe'])
  const [backup, ledger] = [t.cronJob('backup'), t.cronJob('ledger', 'bank')]
  t.cronJob('idle', 'cafe')
  t.job('backup-1', backup, { ready: 1 })
  t.job('ledger-1', ledger, {}, 'bank')
  await t.start()
  const busy = () => [...t.watch.busyAreas(() => true)].sort()
  expect(busy()).toEqual(['prod/bank', 'prod/shop'])
  expect([...t.watch.busyAreas((source) => source === 'bank/ledger')]).toEqual(['prod/bank'])
  const jobs = t.cluster.server.collection(JOBS)
  const conditions = [{ type: 'Complete', status: 'True', lastTransitionTime: '2026-01-01T00:01:00Z' }]
  jobs.replace('shop/backup-1', { ...jobs.get('shop/backup-1'), status: { conditions } } as never)
  await eventually('it has ended', () => busy().join() === 'prod/bank')
  const ofBank = jobs.get('bank/ledger-1')
  jobs.replace('bank/ledger-1', { ...ofBank, spec: { suspend: true } } as never)
  await eventually('it is suspended', () => busy().length === 0)
  jobs.replace('bank/ledger-1', { ...jobs.get('bank/ledger-1'), spec: {} } as never)
  await eventually('it goes on', () => busy().length === 1)
  jobs.delete('bank/ledger-1')
  await eventually('it is gone', () => busy().length === 0)
})

it('reports a run that loses its owner as gone, its end unseen, and to its new owner as new', async () => {
  await using t = await open()
  const [backup, report] = [t.cronJob('backup'), t.cronJob('report')]
  const [orphan, adopted] = [t.job('orphan', backup), t.job('adopted', backup)]
  await t.start()
  const seen: unknown[] = []
  t.watch.onRun((source, { before, after, isListed = false }) =>
    seen.push([source, before?.metadata.name, after?.metadata.name, isListed]),
  )
  const disown = (name: string, ownerReferences: readonly object[]) =>
    t.changeJob(name, {
      metadata: { ...t.cluster.server.collection(JOBS).get(`shop/${name}`).metadata, ownerReferences },
    })
  disown('orphan', [])
  disown('adopted', [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'report', uid: report, controller: true }])
  await eventually('both are seen', () => seen.length === 3)
  expect(seen).toEqual([
    ['shop/backup', 'orphan', undefined, true],
    ['shop/backup', 'adopted', undefined, true],
    ['shop/report', undefined, 'adopted', false],
  ])
  expect([...t.watch.goneRuns()].map(({ source, run, isListed }) => [source, run.metadata.uid, isListed])).toEqual([
    ['shop/backup', orphan, true],
  ])
  expect([t.watch.getRun(backup, orphan), [...t.watch.runsOf(backup)]]).toEqual([undefined, []])
  expect(t.watch.getRun(report, adopted)).toBeDefined()
})

describe('a right that is missing', () => {
  it('is named, does not stop other namespaces, and is found within a minute once it is granted', async () => {
    await using t = await open(['shop', 'bank'])
    const backup = t.cronJob('backup')
    // They have started: pods need not be confirmed.
    t.job('backup-1', backup, { ready: 1 })
    const ofBank = t.cronJob('ledger', 'bank')
    t.job('ledger-1', ofBank, { ready: 1 }, 'bank')
    const isJobs = ({ path }: { path: string }) => path === '/apis/batch/v1/namespaces/bank/jobs'
    const grant = t.cluster.server.disturb(isJobs, FORBIDDEN, Number.POSITIVE_INFINITY)
    t.watch.start()
    await eventually('the rest is listed', () => t.watch.hasSynced())
    await askAll(t)
    expect(t.watch.missingRight('bank')).toBe('list jobs.batch in the namespace bank')
    expect([t.watch.missingRight('shop'), t.watch.isListed('shop'), t.watch.isListed('bank')]).toEqual([
      null,
      true,
      false,
    ])
    expect(namesOf(t.watch.runsOf(backup))).toEqual(['backup-1'])
    expect(namesOf(t.watch.sources())).toEqual(['backup', 'ledger'])
    expect([t.watch.areas, t.watch.areaOf('bank')]).toEqual([['prod/shop', 'prod/bank'], 'prod/bank'])
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(['prod/shop'])
    expect([t.watch.confirmedAt('shop'), t.watch.confirmedAt('bank')]).toEqual([t.clock.now(), 0])
    const before = t.cluster.server.requests.length
    expect(await t.watch.confirm(['prod/shop'], signal)).toEqual(['prod/shop'])
    const askedOfBank = t.cluster.server.requests.slice(before).filter(({ path }) => path.includes('/bank/'))
    expect(askedOfBank.filter((request) => !isJobs(request))).toEqual([])
    const attempts = () => t.cluster.server.requests.filter(isJobs).length
    for (let n = 0; n < 10; n += 1) {
      const before = attempts()
      await eventually('it is tried again', async () => {
        await t.clock.advance(5_000)
        return attempts() > before
      })
    }
    expect(t.said).toEqual([
      `the right to list jobs.batch in the namespace bank is missing: ${RESTORE_RIGHTS}; it is tried again`,
    ])
    grant()
    const from = t.clock.now()
    await eventually('it is listed', async () => {
      if (!t.watch.isListed('bank')) await t.clock.advance(5_000)
      return t.watch.isListed('bank')
    })
    expect(t.clock.now() - from).toBeLessThan(60_000)
    await askAll(t)
    expect([t.watch.missingRight('bank'), namesOf(t.watch.runsOf(ofBank))]).toEqual([null, ['ledger-1']])
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(t.watch.areas)
  })

  it('of the whole cluster has no namespace', async () => {
    await using t = await open()
    t.cluster.server.forbid((path) => path === '/api/v1/pods')
    t.watch.start()
    await t.watch.rights.ask(signal)
    await eventually('all is tried', () => t.watch.hasSynced())
    expect([t.watch.missingRight('shop'), t.watch.isListed('shop')]).toEqual(['list pods', true])
    expect([t.watch.areas, t.watch.areaOf('shop')]).toEqual([['prod'], 'prod'])
  })

  it('to read pods is missed by no area without it, nor by one whose runs have started', async () => {
    await using t = await open(['shop', 'bank'])
    const [backup, ofBank] = [t.cronJob('backup'), t.cronJob('ledger', 'bank')]
    const job = t.job('backup-1', backup)
    t.job('ledger-1', ofBank, { ready: 1 }, 'bank')
    await t.start()
    const isPods = ({ path }: { path: string }) => path.endsWith('/pods')
    // A confirmation lists one object; the watch itself may begin only now.
    const isConfirmation = ({ path, query }: { path: string; query: URLSearchParams }) =>
      path.endsWith('/bank/pods') && query.get('limit') === '1'
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(t.watch.areas)
    // Those that it has missed may say that its run has started.
    const fail = { ...FORBIDDEN, status: 500 }
    const recover = t.cluster.server.disturb(isPods, fail, Number.POSITIVE_INFINITY)
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(['prod/bank'])
    expect(t.cluster.server.requests.filter(isConfirmation)).toEqual([])
    t.changeJob('backup-1', { status: { ready: 1 } })
    await eventually('it has started', () => t.watch.getRun(backup, job)?.hasPod)
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(t.watch.areas)
    recover()
    // One that waits again, and pods that may not be read.
    t.job('backup-2', backup)
    await eventually('it is seen', () => namesOf(t.watch.runsOf(backup)).length === 2)
    t.cluster.server.disturb(isPods, FORBIDDEN, Number.POSITIVE_INFINITY)
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(['prod/bank'])
    await askAll(t)
    expect(t.watch.missingRight('shop')).toBe('list pods in the namespace shop')
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(t.watch.areas)
  })

  it('keeps what it concerns from being confirmed, also while its watch goes on', async () => {
    await using t = await open()
    await t.start()
    expect([t.watch.confirmedAt('shop'), await t.watch.confirm(t.watch.areas, signal)]).toEqual([0, ['prod']])
    expect(t.watch.confirmedAt('shop')).toBe(t.clock.now())
    const grant = t.cluster.server.forbid((path) => path.endsWith('/jobs'))
    await t.clock.advance(2_000)
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual([])
    await askAll(t)
    expect(t.watch.missingRight('shop')).toBe('list jobs.batch')
    expect(t.watch.confirmedAt('shop')).toBe(t.clock.now() - 2_000)
    grant()
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(['prod'])
    await askAll(t)
    expect(t.watch.missingRight('shop')).toBeNull()
  })

  it('is known by the rejection alone where the API server refuses reviews, and until it serves the request again', async () => {
    await using t = await open()
    t.cluster.server.forbid((path) => path.endsWith('reviews'))
    await t.start()
    await t.watch.rights.ask(signal)
    expect(t.watch.missingRight('shop')).toBeNull()
    const changes: unknown[] = []
    t.watch.rights.onChange((namespace) => changes.push(namespace))
    const grant = t.cluster.server.forbid((path) => path.endsWith('/jobs'))
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual([])
    expect([t.watch.missingRight('shop'), changes]).toEqual(['list jobs.batch', [undefined]])
    grant()
    expect(await t.watch.confirm(t.watch.areas, signal)).toEqual(['prod'])
    expect([t.watch.missingRight('shop'), changes.length]).toEqual([null, 2])
  })
})
