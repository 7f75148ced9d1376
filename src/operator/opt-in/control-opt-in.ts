/**
 * The controller that creates HeartbeatChecks for CronJobs and deletes them, as labels and WATCH_CRONJOBS say
 * (docs/use/cronjobs.md). A key is `namespace/name` of a CronJob, and so of its HeartbeatCheck. It reads caches, and
 * whether the namespace may use the project of an annotation; the API server gets one request for each HeartbeatCheck
 * that is to be different.
 */

import { type ApiError, hasStatus, isNamespaceGoing, isNamespaceGone, isRejected } from '../../kubernetes/errors.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import type { Priority } from '../../kubernetes/queue.ts'
import { createWorkers, type ReconcileResult } from '../../kubernetes/workers.ts'
import { after } from '../../runtime/clock.ts'
import { createRate } from '../../runtime/rate.ts'
import { FIELD_MANAGER, HEARTBEAT_CHECKS, type HeartbeatCheck } from '../heartbeat-check.ts'
import type { WatchedCounts } from '../metrics.ts'
import { type NamespaceWatch, watchLabelOf } from '../namespaces/watch-namespaces.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'
import type { Controller, Term } from '../term.ts'
import type { CheckWatch } from '../watch-checks.ts'
import { type CopiedFields, readAnnotations } from './annotations.ts'
import { type Decision, decide } from './decide.ts'
import { CRON_JOB, type OptInSource, plan, type Warning, type Write } from './plan.ts'

export interface OptInOptions {
  readonly sources: Pick<SourceWatch, 'getSource' | 'sources' | 'hasSynced' | 'onSource'>
  readonly checks: Pick<CheckWatch, 'get' | 'followersOf' | 'isListed'>
  /** Null: their labels decide nothing. */
  readonly namespaceWatch: Pick<NamespaceWatch, 'get'> | null
  /**
   * Resolves with the projects that the namespace may use, if this is none of them; else with null. `now`: of after the
   * call.
   */
  readonly findProjectsInstead: (
    namespace: string,
    project: string,
    age: 'cached' | 'now',
  ) => Promise<readonly string[] | null>
  readonly resyncMs?: number
}

export interface OptInController extends Controller {
  /** A HeartbeatCheck was created, deleted, or changed by others. */
  checkChanged(key: string, priority: Priority): void
  /** The label of a Namespace or its projects were changed, or its label is known now. */
  namespaceChanged(namespace: string): void
}

const NAME = 'heartbeat-operator-opt-in'
const WORKERS = 8
/**
 * Creations, changes and deletions: a label on a large Namespace must not load the API server with all at once. A new
 * resource costs an API server 2 ms of processor time, and its reconcile 7 (docs/internals/benchmarks.md).
 */
const WRITES_PER_SECOND = 50
/** Finds what no event reports, as a resource that another installation has given away. Reads caches only. */
const RESYNC_MS = 600_000
/** The cache is behind a write, ours or another's. */
const BEHIND_MS = 1_000
/** How soon a right or a quota that is granted has an effect. */
const REJECTED_MS = 60_000
const LOOK_MS = 1_000
/** A fault that lasts has an Event in each half hour: the API server keeps Events for an hour. */
const REPEAT_MS = 1_800_000
/** After an outage of the API server nothing waits longer than this. */
const BACKOFF = { firstMs: 200, maxMs: 10_000 }

const DONE: ReconcileResult = { kind: 'done' }
const LATER: ReconcileResult = { kind: 'again', afterMs: BEHIND_MS, priority: 'background' }

export function createOptInController(term: Term, options: OptInOptions): OptInController {
  const { client, clock, log, claims, cronJobs, metrics } = term
  const { sources, checks, namespaceWatch, resyncMs = RESYNC_MS } = options
  const queue = term.createQueue(NAME, BACKOFF)
  const rate = createRate(clock, WRITES_PER_SECOND)
  /** Keys of CronJobs that are to have a HeartbeatCheck, and cannot. */
  const rejected = new Set<string>()
  /** Namespaces whose CronJobs are looked at next, together: a cluster may have as many Namespaces as CronJobs. */
  const changed = new Set<string>()
  /** Namespaces whose CronJobs wait until the HeartbeatChecks there are listed, perhaps for ever. */
  const unlisted = new Set<string>()
  const stopListening = sources.onSource((key, change) => {
    // Thousands come with the first list.
    if (isRelevant(change)) queue.add(key, sources.hasSynced() ? 'live' : 'background')
  })
  const workers = createWorkers({
    queue,
    count: WORKERS,
    clock,
    reconcile,
    onError: (error, cronJob) =>
      log.warn({ error, cronJob }, 'the HeartbeatCheck of a CronJob could not be written; it is tried again'),
    metrics: term.kubernetesMetrics.workers(NAME, WORKERS),
  })

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const source = sources.getSource(key)
    if (source === undefined) {
      rejected.delete(key)
      return DONE
    }
    if (!checks.isListed(source.metadata.namespace)) {
      unlisted.add(source.metadata.namespace)
      return DONE
    }
    const decision = decideOn(source)
    const object = checks.get(key)
    const read = readAnnotations(source.metadata.annotations)
    const projectsInstead = decision.isWatched === true ? await findInstead(source, object, read.fields) : null
    const facts = { source, object, decision, claims, projectsInstead }
    const { action, warnings: found } = plan(facts, read)
    if (action.kind === 'none' || action.kind === 'wait') {
      warn(key, source, found)
      return action.kind === 'none' ? DONE : LATER
    }
    await rate.take(signal)
    signal.throwIfAborted()
    const isOutdated =
      sources.getSource(key) !== source ||
      checks.get(key) !== facts.object ||
      decideOn(source).isWatched !== decision.isWatched
    if (isOutdated) return { kind: 'again', afterMs: 0 }
    try {
      await act(action, source, signal)
      log.debug({ cronJob: key, because: decision.because }, `${action.kind}d the HeartbeatCheck of a CronJob`)
      warn(key, source, found)
      return DONE
    } catch (error) {
      if (isNamespaceGoing(error) || isNamespaceGone(error)) return DONE
      // Another write came first: of a person, of the leader before, of the garbage collector.
      if (hasStatus(error, 409)) return LATER
      if (action.kind !== 'create' && hasStatus(error, 404)) return DONE
      if (!isRejected(error)) throw error
      warn(key, source, [...found, describeRejection(action, error)])
      return { kind: 'stalled', retryMs: REJECTED_MS }
    }
  }

  function warn(key: string, { metadata }: OptInSource, found: readonly Warning[]): void {
    const { namespace, name, uid, resourceVersion } = metadata
    const regarding = { ...CRON_JOB, namespace, name, uid, resourceVersion }
    const halfHour = Math.floor(clock.now() / REPEAT_MS)
    for (const { reason, note } of found)
      term.recorder.record(regarding, {
        type: 'Warning',
        reason,
        note,
        action: 'Watch',
        id: `${reason} ${note} ${halfHour}`,
      })
    if (found.some(({ reason }) => reason === 'NameTaken' || reason === 'NotCreated')) rejected.add(key)
    else rejected.delete(key)
  }

  /** For a new HeartbeatCheck as it is now: its project stays. */
  async function findInstead(
    { metadata: { namespace } }: OptInSource,
    object: HeartbeatCheck | undefined,
    { project }: CopiedFields,
  ): Promise<readonly string[] | null> {
    if (project === undefined || project === object?.spec.project) return null
    const found = await options.findProjectsInstead(namespace, project, 'cached')
    return found === null || object !== undefined ? found : options.findProjectsInstead(namespace, project, 'now')
  }

  function decideOn({ metadata: { namespace, labels } }: OptInSource): Decision {
    const found = namespaceWatch?.get(namespace)
    // With `none` there are no sources, and no such controller.
    const watch = cronJobs.watch === 'all' ? 'all' : 'labelled'
    return decide(watch, labels, found === undefined ? undefined : watchLabelOf(found))
  }

  async function act(action: Write, { metadata }: OptInSource, signal: AbortSignal): Promise<void> {
    const place = { namespace: metadata.namespace, name: metadata.name }
    const writing = { fieldManager: FIELD_MANAGER, signal }
    if (action.kind === 'create') await client.create(HEARTBEAT_CHECKS, action.object, writing)
    if (action.kind === 'update') await client.mergePatch(HEARTBEAT_CHECKS, place, action.patch, writing)
    if (action.kind === 'delete') {
      const { uid, resourceVersion } = action
      await client.delete(HEARTBEAT_CHECKS, place, { uid, resourceVersion, signal })
    }
  }

  function namespaceChanged(namespace: string): void {
    if (changed.size === 0) after(clock, 0, lookAtChanged)
    changed.add(namespace)
  }

  function lookAtChanged(): void {
    for (const { metadata } of sources.sources())
      if (changed.has(metadata.namespace)) queue.add(keyOf(metadata), 'background')
    changed.clear()
  }

  /** What is found by looking must not shorten the back-off of a failed key. */
  function enqueue(key: string, priority: Priority): void {
    if (queue.failures(key) === 0) queue.add(key, priority)
  }

  function enqueueAll(): void {
    for (const { metadata } of sources.sources()) enqueue(keyOf(metadata), 'background')
  }

  async function look(): Promise<void> {
    for (const namespace of unlisted) {
      if (!checks.isListed(namespace)) continue
      unlisted.delete(namespace)
      namespaceChanged(namespace)
    }
  }

  function countWatched(): WatchedCounts {
    const counts = { true: 0, false: 0, rejected: 0 }
    for (const { metadata } of sources.sources()) {
      const key = keyOf(metadata)
      const [follower] = checks.followersOf(key)
      counts[follower !== undefined ? 'true' : rejected.has(key) ? 'rejected' : 'false'] += 1
    }
    return counts
  }

  const loops: { stop(): Promise<void> }[] = []
  return {
    name: 'opt-in',
    checkChanged(key, priority) {
      if (sources.getSource(key) !== undefined) enqueue(key, priority)
    },
    namespaceChanged,
    start() {
      metrics.countCronJobs(countWatched)
      // Its first run is now: labels may have changed while no process led.
      const resync = async () => enqueueAll()
      loops.push(term.startLoop('look-at-cronjobs', LOOK_MS, look), term.startLoop('opt-in', resyncMs, resync))
      workers.start()
    },
    async stop(drainMs) {
      stopListening()
      queue.stop()
      await Promise.all([workers.stop(drainMs), ...loops.map((loop) => loop.stop())])
      metrics.countCronJobs(null)
    },
  }
}

/** A CronJob also changes when it starts a Job, and when a Job ends. */
function isRelevant(change: Readonly<Record<'before' | 'after', OptInSource | undefined>>): boolean {
  const [before, after] = [change.before?.metadata, change.after?.metadata]
  return (
    before === undefined ||
    after === undefined ||
    before.uid !== after.uid ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    JSON.stringify([before.labels, before.annotations]) !== JSON.stringify([after.labels, after.annotations])
  )
}

const REJECTED = { create: 'NotCreated', update: 'NotUpdated', delete: 'NotDeleted' } as const

function describeRejection({ kind }: Write, { message }: ApiError): Warning {
  const note = `the API server does not let the operator ${kind} the HeartbeatCheck of this CronJob: ${message}; it is tried again each minute`
  return { reason: REJECTED[kind], note }
}
