/**
 * The composition of the operator: reflectors that always run, so that a standby is warm, and, while this process leads, the
 * queue, its workers, and the sources of its keys. A new leader reconciles everything, because the last one may have left work
 * undone. When the lease is lost, the work stops and the election starts again.
 */

import type { KubernetesClient } from '../kubernetes/client.ts'
import { createElector } from '../kubernetes/elector.ts'
import type { KubernetesMetrics } from '../kubernetes/metrics.ts'
import { createQueue, type Queue } from '../kubernetes/queue.ts'
import { createRecorder } from '../kubernetes/recorder.ts'
import { createWorkers } from '../kubernetes/workers.ts'
import { whenAborted } from '../runtime/abort.ts'
import { backoffMs } from '../runtime/backoff.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import { createLoop } from '../runtime/loop.ts'
import type { Context } from '../store/context.ts'
import { listenForFlips } from '../store/outbox/flip-notices.ts'
import { createFollower } from './follow-changes.ts'
import { FIELD_MANAGER, HEARTBEAT_CHECKS, LEASE_NAME } from './heartbeat-check.ts'
import { limitClient } from './limit-client.ts'
import type { OperatorMetrics } from './metrics.ts'
import { createNamespaces } from './namespaces.ts'
import { createReconciler } from './reconcile.ts'
import { createClusterRegistration } from './register-cluster.ts'
import { createFlipSpacer } from './space-flips.ts'
import { createCheckWatch } from './watch-checks.ts'

export interface OperatorOptions {
  readonly client: KubernetesClient
  readonly context: Context
  /** For the connection that listens for flips. */
  readonly databaseUrl: string
  readonly cluster: string
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  readonly pingUrl: () => string
  /** The namespace of the Lease. */
  readonly leaseNamespace: string
  /** Unique to this process. */
  readonly identity: string
  readonly clock: Clock
  readonly random?: () => number
  readonly log: Log
  readonly kubernetesMetrics: KubernetesMetrics
  readonly metrics: OperatorMetrics
  readonly resyncMs?: number
  readonly pollMs?: number
  readonly orphanMs?: number
  /** A watch that receives nothing for so long is replaced. */
  readonly stallMs?: number
  /** Another cluster with our name counts as alive for this long after its last registration. */
  readonly holderSeconds?: number
}

export interface Operator {
  start(): void
  /** Finishes the reconciles in progress and releases the lease. */
  stop(): Promise<void>
  hasSynced(): boolean
  isLeader(): boolean
}

/** Workers mostly wait for the API server, which handles 16 concurrent requests at less cost each than one by one. */
const WORKERS = 16
const RESYNC_MS = 600_000
const POLL_MS = 15_000
const HOLDER_SECONDS = 30
/** How often the name of the cluster is registered in the time that a registration is valid. */
const REGISTRATIONS = 3
/** The reconciles in progress at a stop may take so long; the lease is kept until then. */
const DRAIN_MS = 4_000
/** A lost lease expires five seconds after the end of its renewals, and a statement in progress may take four. */
const LOST_DRAIN_MS = 500
const REGISTRATION_RETRY = { firstMs: 250, maxMs: 5_000 }

export function createOperator(options: OperatorOptions): Operator {
  const { client, context, cluster, namespaces, clock, log, metrics, kubernetesMetrics, identity, stallMs } = options
  const { random = Math.random, resyncMs = RESYNC_MS, pollMs = POLL_MS, holderSeconds = HOLDER_SECONDS } = options
  const registrationMs = (holderSeconds * 1_000) / REGISTRATIONS
  let queue: Queue | undefined

  const watchMetrics = kubernetesMetrics.reflector(HEARTBEAT_CHECKS.plural)
  const onChange = (key: string) => queue?.add(key, 'live')
  const watch = createCheckWatch({ client, namespaces, clock, random, stallMs, log, metrics: watchMetrics, onChange })
  const recorder = createRecorder({
    client,
    clock,
    controller: FIELD_MANAGER,
    instance: identity,
    onProblem: (error) => log.warn({ error }, 'an Event could not be written'),
    onDropped: kubernetesMetrics.recorder.dropped,
    isBusy,
  })

  const onTaken = (isTaken: boolean) => metrics.clusterNameTaken.set(isTaken ? 1 : 0)
  const registration = createClusterRegistration({ client, context, cluster, holderSeconds, log, onTaken })
  const elector = createElector({
    client,
    namespace: options.leaseNamespace,
    name: LEASE_NAME,
    identity,
    clock,
    random,
    onLeading: lead,
    onChange: (isLeader) => log.info({ identity }, isLeader ? 'leading' : 'not leading'),
    onProblem: (error) => log.warn({ error }, 'the election has trouble with the API server; it goes on trying'),
    metrics: kubernetesMetrics.elector(LEASE_NAME),
  })

  /** More resources wait than are reconciled. */
  function isBusy(): boolean {
    return (queue?.length() ?? 0) > WORKERS
  }

  /** One term: until the lease is lost, or this process stops. */
  async function lead(term: AbortSignal): Promise<void> {
    let failures = 0
    while (!term.aborted) {
      const registered = await registration.renew(term)
      if (registered === 'held') await workUntilDisplaced(term)
      failures = registered === 'unknown' ? failures + 1 : 0
      if (registered === 'taken') await clock.sleep(registrationMs, term)
      if (registered === 'unknown') await clock.sleep(backoffMs(failures - 1, REGISTRATION_RETRY, random), term)
    }
    metrics.clusterNameTaken.set(0)
  }

  /** Every term has parts of its own: the state of an earlier term may be outdated. */
  async function workUntilDisplaced(term: AbortSignal): Promise<void> {
    const displaced = new AbortController()
    const signal = AbortSignal.any([term, displaced.signal])
    const cut = new AbortController()
    const limited = limitClient(client, cut.signal)
    const work = createQueue({ name: LEASE_NAME, clock, random, metrics: kubernetesMetrics.queue(LEASE_NAME) })
    const reconciler = createReconciler({
      client: limited,
      cache: watch,
      context,
      cluster,
      namespaces: createNamespaces(limited, clock),
      recorder,
      pingUrl: options.pingUrl,
      now: clock.now,
      random,
      resyncMs,
      isBusy,
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
      metrics: kubernetesMetrics.workers(LEASE_NAME, WORKERS),
    })
    const follower = createFollower({
      context,
      client: limited,
      cluster,
      cache: watch,
      isWatched: watch.isWatched,
      // A poll must not shorten the back-off of a failed key.
      enqueue: (key) => work.failures(key) === 0 && work.add(key, 'live'),
      now: clock.now,
      ...(options.orphanMs === undefined ? {} : { orphanMs: options.orphanMs }),
      onOrphan(resource) {
        metrics.orphans.inc()
        log.warn({ resource }, 'the resource of a check was gone without its finalizer; the check was removed')
      },
    })
    const enqueueAll = () => {
      for (const key of watch.keys()) work.add(key, 'background')
    }
    const loops = [
      startLoop('poll', pollMs, async (stopping) => {
        // Keys that failed while the API server was unreachable need not wait for their back-off.
        if (watch.takeRecovery()) enqueueAll()
        await follower.poll(stopping)
      }),
      startLoop('claim', registrationMs, async () => {
        // A failed registration does not stop the work: only another cluster with the name does.
        if ((await registration.renew(signal)) === 'taken') displaced.abort()
      }),
    ]
    const spaceFlip = createFlipSpacer(work, clock.now)
    const listener = listenForFlips({
      url: options.databaseUrl,
      clock,
      cluster,
      onFlip: ({ namespace, name }) => spaceFlip(`${namespace}/${name}`),
      // The database or the network was away: keys with back-off need not wait longer.
      onConnected: enqueueAll,
      onProblem: (error) => log.warn({ error }, 'the connection that hears of flips broke; it is opened again'),
    })
    queue = work
    workers.start()
    enqueueAll()
    listener.start()
    await whenAborted(signal)
    queue = undefined
    work.stop()
    const drained = new AbortController()
    const drainMs = elector.isLeader() ? DRAIN_MS : LOST_DRAIN_MS
    void clock.sleep(drainMs, drained.signal).then(() => cut.abort(new Error('the term as leader has ended')))
    // All together, not one after the other: the lease may expire soon.
    await Promise.all([workers.stop(drainMs), listener.stop(), ...loops.map((loop) => loop.stop())])
    drained.abort()
  }

  function startLoop(name: string, everyMs: number, run: (stopping: AbortSignal) => Promise<void>) {
    const loop = createLoop({
      everyMs,
      clock,
      async run(stopping) {
        await run(stopping)
        return 'done'
      },
      onError: (error) => log.warn({ error, loop: name }, 'background work failed; it is tried again'),
    })
    loop.start()
    return loop
  }

  const started = new AsyncDisposableStack()
  return {
    start() {
      for (const part of [recorder, watch, elector]) {
        started.defer(part.stop)
        part.start()
      }
    },
    stop: () => started.disposeAsync(),
    hasSynced: watch.hasSynced,
    isLeader: elector.isLeader,
  }
}
