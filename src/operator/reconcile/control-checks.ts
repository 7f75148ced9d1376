/** The controller of HeartbeatChecks: the queue of their keys, its workers, and what puts keys into it. */

import type { Revival } from '../../checks/declare/declare-check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import type { Priority } from '../../kubernetes/queue.ts'
import { createWorkers } from '../../kubernetes/workers.ts'
import { listenForNotices } from '../../store/checks/change-notices.ts'
import { findProjectsInstead } from '../../tenancy/namespace-projects.ts'
import { type HeartbeatCheck, LEASE_NAME } from '../heartbeat-check.ts'
import { createNamespaces } from '../namespaces/namespaces.ts'
import type { NamespaceWatch } from '../namespaces/watch-namespaces.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import { createPingTimes } from '../status/ping-times.ts'
import { isMinorRun } from '../status/status.ts'
import type { Controller, Term } from '../term.ts'
import type { CheckWatch } from '../watch-checks.ts'
import { createFollower } from './follow-changes.ts'
import { createSourceFollower, type FollowedSources } from './follow-sources.ts'
import { createReconciler } from './reconcile.ts'
import { createFlipSpacer } from './space-flips.ts'

/** What decides how HeartbeatChecks are reconciled, in any term. */
export interface CheckSettings {
  /** Which resources get a check back. Default: those of the same name. */
  readonly revival?: Revival
  /** The slugs of the projects that each namespace may use; replaces the annotation of the Namespaces. */
  readonly projects?: ReadonlyMap<string, readonly string[]> | null
  /** Whether the annotation of a Namespace names the projects that it may use. Default: true. */
  readonly isProjectAnnotationOn?: boolean
  readonly pingUrl: () => string
  readonly resyncMs?: number
  readonly pollMs?: number
  readonly orphanMs?: number
}

/** Whether the annotation of a Namespace decides about projects. */
export const isAnnotationRead = ({ isProjectAnnotationOn = true, projects = null }: CheckSettings): boolean =>
  isProjectAnnotationOn && projects === null

export interface CheckControllerOptions extends CheckSettings {
  readonly watch: CheckWatch
  /** What HeartbeatChecks may follow. Null: WATCH_CRONJOBS is none. */
  readonly sources: FollowedSources | null
  /** What the runs of its source have reported before is to be recorded for this resource. */
  readonly onFollowed: (key: string) => void
  /** Null: each Namespace is read when it is needed. */
  readonly namespaceWatch: Pick<NamespaceWatch, 'get'> | null
}

export interface CheckController extends Controller {
  /** Its resource has changed. */
  add(key: string, priority: Priority): void
  /** A run of the source that this resource follows is recorded. */
  noteRun(key: string, run: Pick<LastRun, 'outcome'>): void
  /** Resolves with the projects that the namespace may use, if this is none of them; else with null. `now`: of after the call. */
  findProjectsInstead(namespace: string, project: string, age: 'cached' | 'now'): Promise<readonly string[] | null>
  /** The annotation of a Namespace has changed. */
  projectsChanged(namespace: string): void
}

/** Workers mostly wait for the API server, which handles 16 concurrent requests at less cost each than one by one. */
const WORKERS = 16
const RESYNC_MS = 600_000
const POLL_MS = 15_000
/** How often the version in which HeartbeatChecks are stored is looked at. */
/** How often it is looked at whether sources that are awaited are listed. */
const SOURCES_MS = 500
/** How often for each resource whether its source may be read. */
const RIGHTS_MS = 5_000

export function createCheckController(term: Term, options: CheckControllerOptions): CheckController {
  const { client, context, cluster, claims, recorder, clock, random, log, metrics } = term
  const { watch, sources, namespaceWatch, revival, pingUrl } = options
  const { resyncMs = RESYNC_MS, pollMs = POLL_MS } = options
  const work = term.createQueue(LEASE_NAME)

  // What is found by looking must not shorten the back-off of a failed key.
  const enqueue = (key: string, priority: Priority = 'live') => {
    const isHealthy = work.failures(key) === 0
    if (isHealthy) work.add(key, priority)
    return isHealthy
  }
  const enqueueAll = () => {
    for (const key of watch.keys()) work.add(key, 'background')
  }

  const pingTimes = createPingTimes({ clock, enqueue: (key) => enqueue(key, 'background') })
  const base = { client, cache: watch, context, cluster, claims }
  const isForeign = (object: HeartbeatCheck) => ownershipOf(object, claims).kind === 'foreign'
  const offerTurn = (key: string) => pingTimes.add({ key, shownAt: null })
  const sourceFollower =
    sources === null
      ? null
      : createSourceFollower({
          sources,
          followersOf: watch.followersOf,
          followers: watch.followers,
          isOwnedBy: (key, uid) =>
            watch.get(key)?.metadata.ownerReferences?.some((owner) => owner.uid === uid) ?? false,
          now: clock.now,
          sync(key, priority) {
            reconciler.callForSync(key)
            work.add(key, priority)
          },
          offerTurn,
        })
  const projects = createNamespaces(client, clock, {
    projects: options.projects ?? null,
    isAnnotationOn: isAnnotationRead(options),
    revival: revival ?? 'name',
    clusterUid: term.clusterUid,
    watched: (name) => namespaceWatch?.get(name),
  })
  const reconciler = createReconciler({
    ...base,
    sources,
    sourceZone: term.cronJobs.timeZone,
    onFollowed: options.onFollowed,
    onSourceAwaited: (key) => sourceFollower?.wait(key),
    revival,
    namespaces: projects,
    recorder,
    pingTimes,
    pingUrl,
    now: clock.now,
    random,
    log,
    resyncMs,
    onPublish: (result) => metrics.publishes.inc({ result }),
    onFinalizerForced: () => metrics.forcedFinalizers.inc(),
  })
  const workers = createWorkers({
    name: LEASE_NAME,
    queue: work,
    count: WORKERS,
    clock,
    reconcile: reconciler.reconcile,
    onError: (error, resource) =>
      log.warn({ error, resource }, 'a HeartbeatCheck could not be reconciled; it is tried again'),
    metrics: term.kubernetesMetrics.workers(LEASE_NAME, WORKERS),
  })
  const follower = createFollower({
    context,
    client,
    cluster,
    cache: watch,
    isWatched: watch.isWatched,
    pingTimes,
    sources,
    enqueue,
    isForeign,
    now: clock.now,
    ...(options.orphanMs === undefined ? {} : { orphanMs: options.orphanMs }),
    onOrphan(resource) {
      metrics.orphans.inc()
      log.warn({ resource }, 'the resource of a check was gone without its finalizer; the check was removed')
    },
  })
  const spaceFlip = createFlipSpacer(work, clock.now)
  const listener = listenForNotices({
    url: term.databaseUrl,
    name: 'flips',
    clock,
    onNotice({ resource }) {
      if (resource?.cluster === cluster) spaceFlip(`${resource.namespace}/${resource.name}`)
    },
    // The database or the network was away: keys with back-off need not wait longer.
    onConnected: enqueueAll,
    onProblem: (error) => log.warn({ error }, 'the connection that listens for flips broke; it is opened again'),
  })

  /** Whether their checks move, and which are allowed now. */
  function projectsChanged(namespace: string): void {
    for (const key of watch.keys()) {
      if (!key.startsWith(`${namespace}/`)) continue
      reconciler.callForSync(key)
      work.add(key, 'live')
    }
  }

  async function poll(stopping: AbortSignal): Promise<void> {
    // Keys that failed while the API server was unreachable need not wait for their back-off.
    if (watch.takeRecovery()) enqueueAll()
    await follower.poll(stopping)
  }

  const parts: { stop(): Promise<void> }[] = [pingTimes]
  return {
    name: 'checks',
    add: work.add,
    noteRun: (key, run) => void (isMinorRun(run) ? offerTurn(key) : enqueue(key)),
    async findProjectsInstead(namespace, wanted, age) {
      const allowed = await projects.allowedProjects(namespace, age)
      return findProjectsInstead(context, { cluster, namespace, allowed, wanted })
    },
    projectsChanged,
    start() {
      metrics.countConflicts(() => [...watch.keys()].filter((key) => isForeign(watch.get(key)!)).length)
      parts.push(term.startLoop('poll', pollMs, poll))
      if (sourceFollower !== null) {
        parts.push(term.startLoop('sources', SOURCES_MS, async () => sourceFollower.look()))
        parts.push(term.startLoop('rights', RIGHTS_MS, async () => sourceFollower.lookAtRights()))
        sourceFollower.start()
      }
      parts.push(listener)
      workers.start()
      // The last leader may have left work undone.
      enqueueAll()
      listener.start()
    },
    async stop(drainMs) {
      sourceFollower?.stop()
      work.stop()
      await Promise.all([workers.stop(drainMs), ...parts.map((part) => part.stop())])
      metrics.countConflicts(null)
    },
  }
}
