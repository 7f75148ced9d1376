/** The controller of HeartbeatChecks: the queue of their keys, its workers, and what puts keys into it. */

import type { Revival } from '../../checks/declare/declare-check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import type { Priority } from '../../kubernetes/queue.ts'
import { type HeartbeatCheck, KIND } from '../heartbeat-check.ts'
import { createNamespaces, type Namespaces } from '../namespaces/namespaces.ts'
import type { NamespaceWatch } from '../namespaces/watch-namespaces.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import { createWork, POLL_MS, RESYNC_MS } from '../resource/work.ts'
import { createStatusTurns, isMinorRun } from '../status/status-turns.ts'
import type { Controller, Term } from '../term.ts'
import type { CheckWatch } from '../watch-checks.ts'
import { createSourceChanges, type ListenedSources } from './on-source-change.ts'
import { createCheckPoll } from './poll-checks.ts'
import { createReconcile } from './reconcile.ts'
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
  readonly sources: ListenedSources | null
  /** What the runs of its source have reported before is to be recorded for this resource. */
  readonly onFollowed: (key: string) => void
  /** Null: each Namespace is read when it is needed. */
  readonly namespaceWatch: Pick<NamespaceWatch, 'get'> | null
}

export interface CheckController extends Controller {
  /** What it knows of the Namespaces. */
  readonly namespaces: Namespaces
  /** Its resource has changed. */
  add(key: string, priority: Priority): void
  /** A run of the source that this resource follows is recorded. */
  noteRun(key: string, run: Pick<LastRun, 'outcome' | 'message'>): void
  /**
   * Resolves with the projects that the namespace may use, if this is none of them; else with null. `now`: of after the
   * call.
   */
  findProjectsInstead(namespace: string, project: string, age: 'cached' | 'now'): Promise<readonly string[] | null>
  /** The annotation of a Namespace has changed. */
  projectsChanged(namespace: string): void
}

/** In metrics and logs; dashboards have it. */
const CONTROLLER = 'heartbeat-operator'
/** Workers mostly wait for the API server, which handles 16 concurrent requests at less cost each than one by one. */
const WORKERS = 16

export function createCheckController(term: Term, options: CheckControllerOptions): CheckController {
  const { client, service, cluster, claims, recorder, clock, random, log, metrics } = term
  const { watch, sources, namespaceWatch, revival, pingUrl } = options
  const { resyncMs = RESYNC_MS, pollMs = POLL_MS } = options
  const turns = createStatusTurns(pollMs)
  const base = { client, cache: watch, service, cluster, claims }
  const isForeign = (object: HeartbeatCheck) => ownershipOf(object, claims).kind === 'foreign'
  const offerTurn = (key: string) => {
    if (!work.isFailing(key) && turns.add(key)) work.add(key, 'background')
  }
  const { followersOf, followers } = watch
  const sourceChanges =
    sources === null
      ? null
      : createSourceChanges({
          sources,
          followersOf,
          followers,
          clock,
          enqueue: (key, priority) => work.add(key, priority),
          offerTurn,
        })
  const projects = createNamespaces(client, clock, {
    projects: options.projects ?? null,
    isAnnotationOn: isAnnotationRead(options),
    revival: revival ?? 'name',
    clusterUid: term.clusterUid,
    watched: (name) => namespaceWatch?.get(name),
    isRightOfEach: term.namespaces !== null,
  })
  const reconcile = createReconcile({
    ...base,
    sources,
    sourceZone: term.cronJobs.timeZone,
    onFollowed: options.onFollowed,
    sourceWaitMs: (object) => sourceChanges?.waitMs(object) ?? 0,
    revival,
    namespaces: projects,
    recorder,
    turns,
    pingUrl,
    now: clock.now,
    random,
    log,
    resyncMs,
    onPublish: (result) => metrics.publishes.inc({ result }),
    onFinalizerForced: () => metrics.forcedFinalizers.inc(),
  })
  const work = createWork(term, { name: CONTROLLER, kind: KIND, workers: WORKERS, watch, reconcile })
  const pollChecks = createCheckPoll({
    service,
    client,
    cluster,
    cache: watch,
    isWatched: watch.isWatched,
    isForeign,
    isFailing: work.isFailing,
    enqueue: (key, priority, afterMs = 0) => work.addAfter(key, afterMs, priority),
    turns,
    sources,
    now: clock.now,
    orphanMs: options.orphanMs,
    onOrphan(resource) {
      metrics.orphans.inc()
      log.warn({ resource }, 'the resource of a check was gone without its finalizer; the check was removed')
    },
  })
  const spaceFlip = createFlipSpacer(work, clock.now)
  const listener = service.listenForFlips({
    onFlip(resource) {
      if (resource.cluster === cluster) spaceFlip(keyOf(resource))
    },
    // The database or the network was away: keys with back-off need not wait longer.
    onConnected: work.addAll,
    onProblem: (error) => log.warn({ error }, 'the connection that listens for flips broke; it is opened again'),
  })

  async function poll(stopping: AbortSignal): Promise<void> {
    // Keys that failed while the API server was unreachable need not wait for their back-off.
    if (watch.takeRecovery()) work.addAll()
    await pollChecks(stopping)
  }

  const parts: { stop(): Promise<void> }[] = []
  return {
    name: 'checks',
    namespaces: projects,
    add: work.add,
    noteRun(key, run) {
      if (isMinorRun(run)) offerTurn(key)
      else if (!work.isFailing(key)) work.add(key, 'live')
    },
    async findProjectsInstead(namespace, wanted, age) {
      const allowed = await projects.allowedProjects(namespace, age)
      return service.findProjectsInstead({ cluster, namespace, allowed, wanted })
    },
    projectsChanged: work.addNamespace,
    start() {
      metrics.countConflicts(() => [...watch.keys()].filter((key) => isForeign(watch.get(key)!)).length)
      parts.push(term.startLoop('poll', pollMs, poll))
      sourceChanges?.start()
      parts.push(listener)
      work.start()
      listener.start()
    },
    async stop(drainMs) {
      sourceChanges?.stop()
      await Promise.all([work.stop(drainMs), ...parts.map((part) => part.stop())])
      metrics.countConflicts(null)
    },
  }
}
