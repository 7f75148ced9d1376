/** The recorder of runs on caches and a database that are held in the hand. */

import type { FollowedCheck } from '../../../../src/checks/find-checks.ts'
import type { JobOutcome, JobReport } from '../../../../src/checks/jobs/job-report.ts'
import type { OnFailed } from '../../../../src/checks/jobs/record-jobs.ts'
import { splitKey } from '../../../../src/kubernetes/objects.ts'
import { createQueue } from '../../../../src/kubernetes/queue.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import type { TrimmedPod } from '../../../../src/operator/reasons/trim-pod.ts'
import {
  createRunRecorder,
  type RunRecorder,
  type RunRecorderOptions,
} from '../../../../src/operator/runs/record-runs.ts'
import type { Service } from '../../../../src/operator/service.ts'
import { cronJob } from '../../../../src/operator/sources/kinds/cron-job.ts'
import type { Source, SourceRun } from '../../../../src/operator/sources/source-kind.ts'
import type {
  GoneRun,
  PodListener,
  RunListener,
  SourceListener,
  SourceWatch,
} from '../../../../src/operator/sources/watch-sources.ts'
import { createLoop } from '../../../../src/runtime/loop.ts'
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts'
import { listen } from '../../../support/operator.ts'

export interface Recording extends AsyncDisposable {
  readonly clock: ManualClock
  readonly runs: RunRecorder
  readonly said: string[]
  /** `backup j1 start+success`: what was stored, in that order. */
  readonly stored: string[]
  readonly reports: JobReport[]
  /** Sizes of the groups. */
  readonly groups: number[]
  readonly abandoned: string[]
  readonly outcomes: string[]
  readonly sources: FakeSources
  /** A HeartbeatCheck that follows the source of a name, and its check. */
  check(name: string, source?: string, check?: Partial<FollowedCheck> | null, spec?: object): void
  /** Each call of the database rejects while it is set, or each that asks what is recorded. */
  fail(error: Error | null, what?: 'all' | 'findRecorded'): void
  /** Reports whose outcome is `failed`. */
  reject(isRejected: (report: JobReport) => boolean): void
  /** Reports whose outcome is `held`. */
  lock(isLocked: (report: JobReport) => boolean): void
  /** What becomes of the runs of a check that are to be closed; may throw. */
  abandon(decide: (name: string) => 'closed' | 'held'): void
  /** What the database calls wait for. */
  hold(): () => void
  /** Confirms the caches, and waits until all is recorded, but for the checks of these names. */
  drained(): Promise<string[]>
  /** Groups that waited for no row that another transaction holds. */
  readonly hasty: number[]
}

export interface FakeSources extends SourceWatch {
  source(name: string, more?: Partial<Source>): void
  /** Deletes it, and creates it with another uid. */
  recreate(name: string): void
  dropSource(name: string): void
  /** Creates or changes. */
  run(name: string, source: string, status?: object, isListed?: true): SourceRun
  /** Creates one for a slot; `isManual`: a person creates it. */
  scheduled(name: string, source: string, slotAt: number, status?: object, isManual?: boolean): SourceRun
  /** Into the cache, as at the start, without a call of listeners. */
  hasRun(name: string, source: string, status?: object): SourceRun
  drop(name: string, source: string, isListed?: true): void
  /** The runs that are gone. */
  forget(): void
  pod(pod: Partial<TrimmedPod>, job: string): void
  sync(): void
  confirmed(): void
}

const META = { namespace: 'shop', resourceVersion: '1' }

function createFakeSources(clock: ManualClock): FakeSources {
  const all = new Map<string, Source>()
  const runs = new Map<string, SourceRun>()
  const gone: GoneRun[] = []
  const pods = new Map<string, TrimmedPod[]>()
  const runListeners = new Set<RunListener>()
  const sourceListeners = new Set<SourceListener>()
  const podListeners = new Set<PodListener>()
  let isSynced = true
  let confirmedAt = 0
  const listen = <L>(listeners: Set<L>, listener: L) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  // The key of one that is deleted stays known while it has runs.
  const seen = new Set<string>()
  const keyOf = (source: string) => (seen.has(source) ? `shop/${source}` : null)

  function hasRun(name: string, source: string, status: object = {}, more: object = {}): SourceRun {
    const ownerReferences = [
      { apiVersion: 'batch/v1', kind: 'CronJob', name: source, uid: `uid-${source}`, controller: true },
    ]
    const metadata = { ...META, name, uid: name, creationTimestamp: '2026-01-01T00:00:00Z', ownerReferences, ...more }
    const run = cronJob.trimRun({ metadata, spec: {}, status } as never)
    runs.set(name, run)
    return run
  }

  return {
    kind: cronJob,
    areas: ['default'],
    areaOf: () => 'default',
    start() {},
    stop: () => Promise.resolve(),
    hasSynced: () => isSynced,
    isListed: () => isSynced,
    getSource: (key) => all.get(key),
    sources: () => all.values(),
    runsOf: (uid) => [...runs.values()].filter(({ sourceUid }) => sourceUid === uid),
    getRun: (uid, id) => (runs.get(id)?.sourceUid === uid ? runs.get(id) : undefined),
    goneRuns: () => gone,
    podsOf: ({ uid }) => pods.get(uid) ?? [],
    missingRight: () => null,
    missingReasonRights: () => [],
    rights: { everyMs: 1_000, ask: async () => {}, onChange: () => () => {} },
    busyAreas: () => new Set(),
    confirm: async () => ['default'],
    confirmedAt: (namespace) => (namespace === META.namespace ? confirmedAt : 0),
    onSource: (listener) => listen(sourceListeners, listener),
    onRun: (listener) => listen(runListeners, listener),
    onPod: (listener) => listen(podListeners, listener),
    source(name, more = {}) {
      const before = all.get(`shop/${name}`)
      const after = { ...cronJob.trimSource({ metadata: { ...META, name, uid: `uid-${name}` } }), ...more }
      all.set(`shop/${name}`, after)
      seen.add(name)
      for (const listener of sourceListeners) listener(`shop/${name}`, { before, after })
    },
    dropSource(name) {
      const before = all.get(`shop/${name}`)!
      all.delete(`shop/${name}`)
      for (const listener of sourceListeners) listener(`shop/${name}`, { before, after: undefined })
    },
    recreate(name) {
      this.dropSource(name)
      this.source(name, { metadata: { ...META, name, uid: `new-${name}` } })
    },
    hasRun,
    run(name, source, status, isListed) {
      const before = runs.get(name)
      const after = hasRun(name, source, status)
      const change = { before, after, ...(isListed ? { isListed } : {}) }
      for (const listener of runListeners) listener(keyOf(source), change)
      return after
    },
    scheduled(name, source, slotAt, status, isManual = false) {
      const annotations = isManual
        ? { 'cronjob.kubernetes.io/instantiate': 'manual' }
        : { 'batch.kubernetes.io/cronjob-scheduled-timestamp': new Date(slotAt).toISOString() }
      const after = hasRun(name, source, status, {
        creationTimestamp: new Date(clock.now()).toISOString(),
        annotations,
      })
      for (const listener of runListeners) listener(keyOf(source), { before: undefined, after })
      return after
    },
    drop(name, source, isListed) {
      const before = runs.get(name)!
      runs.delete(name)
      gone.push({ source: `shop/${source}`, run: before, isListed: isListed ?? false, at: clock.now() })
      const change = { before, after: undefined, ...(isListed ? { isListed } : {}) }
      for (const listener of runListeners) listener(keyOf(source), change)
    },
    forget() {
      gone.length = 0
    },
    pod(pod, job) {
      pods.set(job, [...(pods.get(job) ?? []), pod as TrimmedPod])
      for (const listener of podListeners) listener(job)
    },
    sync() {
      isSynced = !isSynced
    },
    confirmed() {
      confirmedAt = clock.now()
    },
  }
}

export function startRecording(
  prepare: (t: Pick<Recording, 'sources' | 'check'> & { readonly recorded: Set<string> }) => void = () => {},
  options: Partial<RunRecorderOptions> = {},
): Recording {
  const clock = createManualClock(Date.UTC(2026, 0, 2))
  const sources = createFakeSources(clock)
  const { log, said } = listen()
  const objects = new Map<string, HeartbeatCheck>()
  const checks = new Map<string, FollowedCheck>()
  const recorded = new Set<string>()
  const stored: string[] = []
  const reports: JobReport[] = []
  const groups: number[] = []
  const hasty: number[] = []
  const abandoned: string[] = []
  const outcomes: string[] = []
  let failure: Error | null = null
  let failing: 'all' | 'findRecorded' = 'all'
  let isRejected: (report: JobReport) => boolean = () => false
  let isLocked: (report: JobReport) => boolean = () => false
  let onAbandon: (name: string) => 'closed' | 'held' = () => 'closed'
  let held: Promise<void> = Promise.resolve()

  async function record(report: JobReport, onFailed: OnFailed): Promise<JobOutcome> {
    if (!checks.has(`${report.resource.namespace}/${report.resource.name}`)) return 'unknown'
    if (isLocked(report)) return 'held'
    if (isRejected(report)) {
      onFailed(report, new Error('rejected'))
      return 'failed'
    }
    reports.push(report)
    const key = (type: string) => `${report.resource.name} ${report.runId ?? report.entries[0]!.at}:${type}`
    const fresh = report.entries.filter(({ type }) => !recorded.has(key(type)))
    for (const { type } of fresh) recorded.add(key(type))
    if (fresh.length === 0) return 'repeated'
    stored.push(`${report.resource.name} ${report.job} ${fresh.map(({ type }) => type).join('+')}`)
    return 'recorded'
  }

  async function answer(call?: 'findRecorded'): Promise<void> {
    await held
    if (failure !== null && (failing === 'all' || failing === call)) throw failure
  }

  const service: Pick<Service, 'now' | 'recordJobs' | 'findRecorded' | 'listFollowed' | 'abandonRuns'> = {
    now: clock.now,
    async recordJobs(given, onFailed, wait) {
      await answer()
      groups.push(given.length)
      if (wait === 'skip locked') hasty.push(groups.length)
      return Promise.all(given.map((report) => record(report, onFailed)))
    },
    async findRecorded(known) {
      await answer('findRecorded')
      const types = ['start', 'success', 'fail', 'log'] as const
      return known.map(({ resource: { name }, runId }) =>
        checks.has(`shop/${name}`) ? new Set(types.filter((type) => recorded.has(`${name} ${runId}:${type}`))) : null,
      )
    },
    async listFollowed(_, after) {
      await answer()
      return [...checks.values()].filter(({ key }) => key > after).slice(0, 2)
    },
    async abandonRuns({ name }, ids) {
      await answer()
      const outcome = onAbandon(name)
      if (outcome === 'closed') abandoned.push(`${name} ${ids.join()}`)
      return outcome
    },
  }
  const check: Recording['check'] = (name, source = name, given = {}, more = {}) => {
    const creationTimestamp = new Date(given?.createdAt ?? 0).toISOString()
    const metadata = { namespace: 'shop', name, uid: name, resourceVersion: '1', creationTimestamp }
    const spec = { sourceRef: { kind: 'CronJob', name: source } as const, ...more }
    objects.set(`shop/${name}`, { metadata, spec } as HeartbeatCheck)
    if (given === null) return
    const key = checks.get(`shop/${name}`)?.key ?? checks.size + 1
    const resource = { cluster: 'default', namespace: 'shop', name }
    const nothing = {
      status: 'new',
      dueAt: null,
      openJobRuns: [],
      explainedFor: null,
      createdAt: 0,
      graceMs: 300_000,
    } as const
    checks.set(`shop/${name}`, { key, resource, source, ...nothing, ...given })
  }
  prepare({ sources, check, recorded })

  const runs = createRunRecorder(
    {
      service: service as Service,
      createQueue: (_, backoff) => createQueue({ clock, ...(backoff === undefined ? {} : { backoff }) }),
      cluster: 'default',
      clock,
      log,
      startLoop: (_, everyMs, run) => {
        const loop = createLoop({
          everyMs,
          clock,
          run: async (signal) => run(signal).then(() => 'done'),
          onError: () => {},
        })
        loop.start()
        return loop
      },
    },
    {
      sources,
      checks: {
        get: (key) => objects.get(key),
        followersOf: (source) =>
          [...objects].filter(([, { spec }]) => `shop/${spec.sourceRef?.name}` === source).map(([key]) => key),
        hasTried: () => true,
        followers: () => objects.keys(),
      },
      logs: null,
      onOutcome: (outcome) => outcomes.push(outcome),
      ...options,
    },
  )
  runs.start()
  return {
    clock,
    runs,
    said,
    stored,
    reports,
    groups,
    abandoned,
    hasty,
    outcomes,
    sources,
    check,
    fail(error, what = 'all') {
      failure = error
      failing = what
    },
    reject(rejected) {
      isRejected = rejected
    },
    lock(locked) {
      isLocked = locked
    },
    abandon(decide) {
      onAbandon = decide
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
    async drained() {
      sources.confirmed()
      return (await runs.whenRecorded()).map((key) => splitKey(key).name)
    },
    [Symbol.asyncDispose]: () => runs.stop(0),
  }
}

export const RUNNING = { startTime: '2026-01-01T02:00:00Z', ready: 1 }
const condition = (type: string, at: string) => ({
  type,
  status: 'True',
  reason: 'Why',
  message: 'words',
  lastTransitionTime: at,
})

export const succeeded = (end = '2026-01-01T02:05:00Z') => ({
  startTime: '2026-01-01T02:00:00Z',
  completionTime: end,
  succeeded: 1,
  conditions: [condition('Complete', end)],
})
export const failed = (end = '2026-01-01T02:05:00Z', pods = 0) => ({
  startTime: '2026-01-01T02:00:00Z',
  failed: pods,
  conditions: [condition('Failed', end)],
})

export const pod = (name: string, exitCode: number) => ({
  metadata: { namespace: 'shop', name, uid: name, resourceVersion: '1' },
  phase: 'Failed',
  node: null,
  index: null,
  createdAt: exitCode,
  deletedAt: null,
  status: null,
  disruption: null,
  unscheduled: null,
  containers: [
    {
      name: 'main',
      isInit: false,
      isSidecar: false,
      isRestarted: false,
      endedAt: null,
      failedBefore: null,
      restarts: 0,
      waiting: null,
      failed: { reason: 'Error', message: null, exitCode, signal: null, finishedAt: exitCode },
    },
  ],
})
