/**
 * The operator put together: reflectors that always run, so that a standby is warm, and, while this process leads, the queue,
 * its workers, and whoever fills it. On leading everything is looked at, for nobody knows what the last leader left undone; on
 * loss the work stops and the election is entered again.
 */

import { claimCluster } from '../checks/claim-cluster.ts'
import type { Parts } from '../checks/parts.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import { createElector } from '../kubernetes/elector.ts'
import type { KubernetesMetrics } from '../kubernetes/metrics.ts'
import type { KubernetesObject } from '../kubernetes/objects.ts'
import { createQueue, type Queue } from '../kubernetes/queue.ts'
import { createRecorder } from '../kubernetes/recorder.ts'
import { createReflector, type Reflector } from '../kubernetes/reflector.ts'
import { createWorkers } from '../kubernetes/workers.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import { createLoop } from '../runtime/loop.ts'
import type { Metrics } from '../runtime/metrics.ts'
import { listenForFlips } from '../store/flip-notices.ts'
import { createFollower } from './follow-changes.ts'
import { FIELD_MANAGER, HEARTBEAT_CHECKS, type HeartbeatCheck } from './heartbeat-check.ts'
import { createNamespaces } from './namespaces.ts'
import { createReconciler } from './reconcile.ts'

export interface OperatorOptions {
  readonly client: KubernetesClient
  readonly parts: Parts
  /** For the connection that listens. */
  readonly databaseUrl: string
  readonly cluster: string
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly pingUrl: () => string
  /** Where the Lease is. */
  readonly leaseNamespace: string
  /** Of this process, unlike any other's. */
  readonly identity: string
  readonly clock: Clock
  readonly random?: () => number
  readonly log: Log
  readonly kubernetesMetrics: KubernetesMetrics
  readonly metrics: Metrics['operator']
  readonly resyncMs?: number
  readonly pollMs?: number
  readonly orphanMs?: number
}

export interface Operator {
  start(): void
  /** Finishes what is being reconciled, gives the lease back. */
  stop(): Promise<void>
  hasSynced(): boolean
  isLeader(): boolean
}

const WORKERS = 8
const RESYNC_MS = 600_000
const POLL_MS = 15_000
const CLAIM_MS = 10_000
/** Another cluster of our name counts as alive for this long after it was last seen. */
const HOLDER_SECONDS = 30
/** Between the end of a lost lease's renewals and its expiry. */
const DRAIN_MS = 4_000
const LEASE = 'heartbeat-operator'

export function createOperator(options: OperatorOptions): Operator {
  const { client, parts, cluster, namespaces, clock, log, metrics, kubernetesMetrics, leaseNamespace, identity } = options
  const { random = Math.random, resyncMs = RESYNC_MS, pollMs = POLL_MS } = options
  let queue: Queue | undefined

  const reflectors = (namespaces ?? [undefined]).map((namespace) =>
    createReflector<HeartbeatCheck>({
      client,
      type: HEARTBEAT_CHECKS,
      ...(namespace === undefined ? {} : { namespace }),
      clock,
      random,
      trim,
      onChange(key, { before, after }) {
        if (before === undefined || after === undefined || isRelevant(before, after)) queue?.add(key, 'live')
      },
      onProblem: (error, kind) => log.warn({ error, kind, namespace }, explainProblem(error)),
      metrics: kubernetesMetrics.reflector(HEARTBEAT_CHECKS.plural),
    }),
  )
  const cache = joinCaches(reflectors, namespaces)
  const recorder = createRecorder({
    client,
    clock,
    controller: FIELD_MANAGER,
    instance: identity,
    onProblem: (error) => log.warn({ error }, 'an Event could not be written'),
    metrics: kubernetesMetrics.recorder,
  })
  const reconciler = createReconciler({
    client,
    cache,
    parts,
    cluster,
    namespaces: createNamespaces(client, clock),
    recorder,
    pingUrl: options.pingUrl,
    now: clock.now,
    random,
    resyncMs,
    onPublish: (result) => metrics.publishes.inc({ result }),
    onFinalizerForced: () => metrics.forcedFinalizers.inc(),
  })

  const elector = createElector({
    client,
    namespace: leaseNamespace,
    name: LEASE,
    identity,
    clock,
    random,
    onLeading: lead,
    onChange: (isLeader) => log.info({ identity }, isLeader ? 'leading' : 'not leading'),
    onProblem: (error) => log.warn({ error }, 'the election has trouble with the API server; it goes on trying'),
    metrics: kubernetesMetrics.elector(LEASE),
  })

  /** One term: until the lease is lost, or this process stops. */
  async function lead(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (await claim(signal)) await workUntilDisplaced(signal)
      else await clock.sleep(CLAIM_MS, signal)
    }
  }

  async function workUntilDisplaced(term: AbortSignal): Promise<void> {
    const displaced = new AbortController()
    const signal = AbortSignal.any([term, displaced.signal])
    const work = createQueue({ name: LEASE, clock, metrics: kubernetesMetrics.queue(LEASE) })
    const workers = createWorkers({
      name: LEASE,
      queue: work,
      count: WORKERS,
      clock,
      reconcile: reconciler.reconcile,
      onError: (error, resource) => log.warn({ error, resource }, 'a HeartbeatCheck could not be reconciled; it is tried again'),
      metrics: kubernetesMetrics.workers(LEASE, WORKERS),
    })
    const follower = createFollower({
      parts,
      client,
      cluster,
      cache,
      isWatched: (namespace) => namespaces === null || namespaces.includes(namespace),
      enqueue: (key) => work.add(key, 'live'),
      now: clock.now,
      ...(options.orphanMs === undefined ? {} : { orphanMs: options.orphanMs }),
      onOrphan(resource) {
        metrics.orphans.inc()
        log.warn({ resource }, 'the resource of a check was gone without its finalizer; the check was removed')
      },
    })
    const loopOf = (name: string, everyMs: number, run: (stopping: AbortSignal) => Promise<void>) =>
      createLoop({
        name,
        everyMs,
        clock,
        async run(stopping) {
          await run(stopping)
          return 'done'
        },
        onError: (error) => log.warn({ error, loop: name }, 'background work failed; it is tried again'),
      })
    const loops = [
      loopOf('poll', pollMs, follower.poll),
      loopOf('claim', CLAIM_MS, async () => {
        if (!(await claim(signal))) displaced.abort()
      }),
    ]
    const enqueueAll = () => {
      for (const key of cache.keys()) work.add(key, 'background')
    }
    const listener = listenForFlips({
      url: options.databaseUrl,
      clock,
      cluster,
      onFlip: ({ namespace, name }) => work.add(`${namespace}/${name}`, 'live'),
      // The database was away, or we were: whatever waits to be tried again need not wait longer.
      onConnected: enqueueAll,
      onProblem: (error) => log.warn({ error }, 'the connection that hears of flips broke; it is opened again'),
    })
    queue = work
    workers.start()
    enqueueAll()
    listener.start()
    for (const loop of loops) loop.start()
    await aborted(signal)
    queue = undefined
    work.stop()
    await Promise.all([workers.stop(DRAIN_MS), listener.stop(), ...loops.map((loop) => loop.stop())])
  }

  /** False while another live cluster has our name: two of them would take each other's checks for their own. */
  async function claim(signal: AbortSignal): Promise<boolean> {
    try {
      const uid = await readClusterUid()
      if (uid === null) return true
      const claimed = await claimCluster(parts, { cluster, uid, holderSeconds: HOLDER_SECONDS })
      metrics.clusterNameTaken.set(claimed.kind === 'taken' ? 1 : 0)
      if (claimed.kind === 'held') return true
      log.error(
        { cluster, otherUid: claimed.uid, seenSecondsAgo: claimed.seenSecondsAgo },
        'another live cluster reconciles under this name: give one of them another CLUSTER_NAME; nothing is reconciled here until then',
      )
      return false
    } catch (error) {
      if (signal.aborted) return false
      log.warn({ error }, 'the cluster could not be identified; it is tried again')
      // Trouble is no reason to drop work in progress; before any work it is one to wait.
      return queue !== undefined
    }
  }

  /** Null without the right to read it, which a controller of single namespaces need not have. */
  async function readClusterUid(): Promise<string | null> {
    try {
      const type = { group: '', version: 'v1', plural: 'namespaces' }
      return (await client.get<KubernetesObject>(type, { name: 'kube-system' })).metadata.uid
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return null
      throw error
    }
  }

  return {
    start() {
      for (const reflector of reflectors) reflector.start()
      recorder.start()
      elector.start()
    },
    async stop() {
      await elector.stop()
      await Promise.all(reflectors.map((reflector) => reflector.stop()))
      await recorder.stop()
    },
    hasSynced: cache.hasSynced,
    isLeader: elector.isLeader,
  }
}

/** As one, by the namespace of the key. */
function joinCaches(reflectors: readonly Reflector<HeartbeatCheck>[], namespaces: readonly string[] | null) {
  const of = (key: string) => (namespaces === null ? reflectors[0] : reflectors[namespaces.indexOf(key.split('/')[0]!)])
  return {
    get: (key: string) => of(key)?.get(key),
    put: (object: HeartbeatCheck) => of(`${object.metadata.namespace}/`)?.put(object),
    hasSynced: () => reflectors.every((reflector) => reflector.hasSynced()),
    *keys() {
      for (const reflector of reflectors) yield* reflector.keys()
    },
  }
}

/** Our own writes of the status are no reason to look again. */
function isRelevant({ metadata: before }: HeartbeatCheck, { metadata: after }: HeartbeatCheck): boolean {
  return (
    before.generation !== after.generation ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    JSON.stringify(before.annotations) !== JSON.stringify(after.annotations) ||
    JSON.stringify(before.finalizers) !== JSON.stringify(after.finalizers)
  )
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Half of an object is who wrote which field of it. */
function trim(object: HeartbeatCheck): HeartbeatCheck {
  const { managedFields: _, annotations, ...metadata } = object.metadata
  if (annotations === undefined) return { ...object, metadata }
  const { [LAST_APPLIED]: _applied, ...kept } = annotations
  return { ...object, metadata: { ...metadata, annotations: kept } }
}

function explainProblem(error: unknown): string {
  if (error instanceof ApiError && error.status === 404)
    return 'the cluster does not know HeartbeatChecks: apply manifests/crd.yaml; it is looked for again'
  if (error instanceof ApiError && error.status === 403)
    return 'the right to list and watch HeartbeatChecks is missing: apply manifests/rbac.yaml; it is tried again'
  return 'the watch of HeartbeatChecks was interrupted; it is taken up again'
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
