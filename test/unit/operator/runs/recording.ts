/** The recorder of runs on caches and a database that are held in the hand. */

import type { FollowedCheck } from '../../../../src/checks/find-checks.ts'
import type { JobOutcome, JobReport } from '../../../../src/checks/jobs/job-report.ts'
import type { OnFailed } from '../../../../src/checks/jobs/record-jobs.ts'
import { splitKey } from '../../../../src/kubernetes/objects.ts'
import { createQueue } from '../../../../src/kubernetes/queue.ts'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import type { TrimmedPod } from '../../../../src/operator/reasons/trim-pod.ts'
import { createRunRecorder, type RunRecorderOptions } from '../../../../src/operator/runs/record-runs.ts'
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
import { failed as ended, terminated } from '../../../support/job-causes.ts'
import { makePod, podOf } from '../../../support/job-objects.ts'
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts'
import { listen } from '../../../support/operator.ts'

export type Recording = ReturnType<typeof startRecording>
type FakeSources = ReturnType<typeof createFakeSources>

const META = { namespace: 'shop', resourceVersion: '1' }

function createFakeSources(clock: ManualClock) {
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

  /** Into the cache, as at the start, without a call of listeners. */
  function hasRun(name: string, source: string, status: object = {}, more: object = {}): SourceRun {
    const ownerReferences = [
      { apiVersion: 'batch/v1', kind: 'CronJob', name: source, uid: `uid-${source}`, controller: true },
    ]
    const metadata = { ...META, name, uid: name, creationTimestamp: '2026-01-01T00:00:00Z', ownerReferences, ...more }
    const run = cronJob.trimRun({ metadata, spec: {}, status } as never)
    runs.set(name, run)
    return run
  }

  const watch: SourceWatch = {
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
  }
  const change = (key: string, before: Source | undefined, after: Source | undefined) => {
    for (const listener of sourceListeners) listener(key, { before, after } as Parameters<SourceListener>[1])
  }
  const changeRun = (source: string, before: SourceRun | undefined, after: SourceRun | undefined, isListed?: true) => {
    const seen = { before, after, ...(isListed ? { isListed } : {}) } as Parameters<RunListener>[1]
    for (const listener of runListeners) listener(keyOf(source), seen)
  }
  function source(name: string, more: Partial<Source> = {}): void {
    const before = all.get(`shop/${name}`)
    const after = { ...cronJob.trimSource({ metadata: { ...META, name, uid: `uid-${name}` } }), ...more }
    all.set(`shop/${name}`, after)
    seen.add(name)
    change(`shop/${name}`, before, after)
  }
  function dropSource(name: string): void {
    const before = all.get(`shop/${name}`)!
    all.delete(`shop/${name}`)
    change(`shop/${name}`, before, undefined)
  }

  return {
    ...watch,
    hasRun,
    source,
    dropSource,
    /** Deletes it, and creates it with another uid. */
    recreate(name: string): void {
      dropSource(name)
      source(name, { metadata: { ...META, name, uid: `new-${name}` } })
    },
    /** Creates or changes one. */
    run(name: string, source: string, status?: object, isListed?: true): void {
      changeRun(source, runs.get(name), hasRun(name, source, status), isListed)
    },
    /** Creates one for a slot; `isManual`: a person creates it. */
    scheduled(name: string, source: string, slotAt: number, status?: object, isManual = false): void {
      const annotations = isManual
        ? { 'cronjob.kubernetes.io/instantiate': 'manual' }
        : { 'batch.kubernetes.io/cronjob-scheduled-timestamp': new Date(slotAt).toISOString() }
      const metadata = { creationTimestamp: new Date(clock.now()).toISOString(), annotations }
      changeRun(source, undefined, hasRun(name, source, status, metadata))
    },
    drop(name: string, source: string, isListed?: true): void {
      const before = runs.get(name)!
      runs.delete(name)
      gone.push({ source: `shop/${source}`, run: before, isListed: isListed ?? false, at: clock.now() })
      changeRun(source, before, undefined, isListed)
    },
    /** The runs that are gone. */
    forget(): void {
      gone.length = 0
    },
    pod(pod: Partial<TrimmedPod>, job: string): void {
      pods.set(job, [...(pods.get(job) ?? []), pod as TrimmedPod])
      for (const listener of podListeners) listener(job)
    },
    sync(): void {
      isSynced = !isSynced
    },
    confirmed(): void {
      confirmedAt = clock.now()
    },
  }
}

interface Prepared {
  readonly sources: FakeSources
  /** A HeartbeatCheck that follows the source of a name, and its check. */
  check(name: string, source?: string, check?: Partial<FollowedCheck> | null, spec?: object): void
  /** A source, and a check of its name that follows it. */
  follow(name: string, source?: Partial<Source>): void
  readonly recorded: Set<string>
}

/** Of checks of these names, each of which follows a source of its own. */
export const followed = (...names: readonly string[]) =>
  startRecording(({ follow }) => {
    for (const name of names) follow(name)
  })

export function startRecording(prepare: (t: Prepared) => void, options: Partial<RunRecorderOptions> = {}) {
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
  const database = {
    failure: null as Error | null,
    failing: 'all' as 'all' | 'findRecorded',
    isRejected: (_: JobReport) => false,
    isLocked: (_: JobReport) => false,
    abandon: (_: string): 'closed' | 'held' => 'closed',
    held: Promise.resolve(),
  }

  async function record(report: JobReport, onFailed: OnFailed): Promise<JobOutcome> {
    if (!checks.has(`${report.resource.namespace}/${report.resource.name}`)) return 'unknown'
    if (database.isLocked(report)) return 'held'
    if (database.isRejected(report)) {
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
    await database.held
    const { failure, failing } = database
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
      const outcome = database.abandon(name)
      if (outcome === 'closed') abandoned.push(`${name} ${ids.join()}`)
      return outcome
    },
  }
  const check: Prepared['check'] = (name, source = name, given = {}, more = {}) => {
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
  const follow: Prepared['follow'] = (name, source) => {
    sources.source(name, source)
    check(name)
  }
  prepare({ sources, check, follow, recorded })

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
    /** `backup j1 start+success`: what was stored, in that order. */
    stored,
    reports,
    /** Sizes of the groups. */
    groups,
    abandoned,
    /** Groups that waited for no row that another transaction holds. */
    hasty,
    outcomes,
    sources,
    check,
    /** Each call of the database rejects while it is set, or each that asks what is recorded. */
    fail: (failure: Error | null, failing: 'all' | 'findRecorded' = 'all') =>
      void Object.assign(database, { failure, failing }),
    /** Reports whose outcome is `failed`. */
    reject: (isRejected: (report: JobReport) => boolean) => void Object.assign(database, { isRejected }),
    /** Reports whose outcome is `held`. */
    lock: (isLocked: (report: JobReport) => boolean) => void Object.assign(database, { isLocked }),
    /** What becomes of the runs of a check that are to be closed; may throw. */
    abandon: (abandon: (name: string) => 'closed' | 'held') => void Object.assign(database, { abandon }),
    /** What the database calls wait for. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      database.held = promise
      return resolve
    },
    /** Confirms the caches, and waits until all is recorded, but for the checks of these names. */
    async drained(): Promise<string[]> {
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

/** One that failed; the higher its code, the later. */
export const pod = (name: string, exitCode: number) => {
  const finishedAt = new Date(exitCode * 1_000).toISOString()
  return podOf(makePod({ name, status: ended({ name: 'main', state: terminated(exitCode, 'Error', { finishedAt }) }) }))
}
