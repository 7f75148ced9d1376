/**
 * The operator put together: reflectors that always run, so that a standby is warm, and, while this process leads, the queue,
 * its workers, and whoever fills it. On leading everything is looked at, for nobody knows what the last leader left undone; on
 * loss the work stops and the election is entered again.
 */

import type { KubernetesClient } from '../kubernetes/client.ts'
import { createElector } from '../kubernetes/elector.ts'
import type { KubernetesMetrics } from '../kubernetes/metrics.ts'
import { createQueue, type Queue } from '../kubernetes/queue.ts'
import { createRecorder } from '../kubernetes/recorder.ts'
import { createWorkers } from '../kubernetes/workers.ts'
import { backoffMs } from '../runtime/backoff.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import { createLoop } from '../runtime/loop.ts'
import type { Context } from '../store/context.ts'
import { listenForFlips } from '../store/outbox/flip-notices.ts'
import { createNameClaim } from './claim-name.ts'
import { createFollower } from './follow-changes.ts'
import { FIELD_MANAGER, HEARTBEAT_CHECKS, LEASE_NAME } from './heartbeat-check.ts'
import { limitClient } from './limit-client.ts'
import type { OperatorMetrics } from './metrics.ts'
import { createNamespaces } from './namespaces.ts'
import { createReconciler } from './reconcile.ts'
import { createFlipSpacer } from './space-flips.ts'
import { createCheckWatch } from './watch-checks.ts'

export interface OperatorOptions {
  readonly client: KubernetesClient
  readonly context: Context
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
  readonly metrics: OperatorMetrics
  readonly resyncMs?: number
  readonly pollMs?: number
  readonly orphanMs?: number
  /** A watch that is silent for so long is given up. */
  readonly stallMs?: number
  /** Another cluster of our name counts as alive for this long after it was last seen. */
  readonly holderSeconds?: number
}

export interface Operator {
  start(): void
  /** Finishes what is being reconciled, gives the lease back. */
  stop(): Promise<void>
  hasSynced(): boolean
  isLeader(): boolean
}

/** They wait for the API server, which takes much at once with less trouble than one by one. */
const WORKERS = 16
const RESYNC_MS = 600_000
const POLL_MS = 15_000
const HOLDER_SECONDS = 30
/** In each time that a claim to the name holds. */
const CLAIMS = 3
/** What is being reconciled when this process stops may take so long; the lease is kept until then. */
const DRAIN_MS = 4_000
/** When the lease is lost, five seconds lie between the end of its renewals and its lapse, and a statement may take four. */
const LOST_DRAIN_MS = 500
const CLAIM_RETRY = { firstMs: 250, maxMs: 5_000 }

export function createOperator(options: OperatorOptions): Operator {
  const { client, context, cluster, clock, log, metrics, kubernetesMetrics, identity } = options
  const { random = Math.random, resyncMs = RESYNC_MS, pollMs = POLL_MS, holderSeconds = HOLDER_SECONDS } = options
  const claimMs = (holderSeconds * 1_000) / CLAIMS
  let queue: Queue | undefined

  const watch = createCheckWatch({
    client,
    namespaces: options.namespaces,
    clock,
    random,
    stallMs: options.stallMs,
    log,
    metrics: kubernetesMetrics.reflector(HEARTBEAT_CHECKS.plural),
    onChange: (key) => queue?.add(key, 'live'),
  })
  const recorder = createRecorder({
    client,
    clock,
    controller: FIELD_MANAGER,
    instance: identity,
    onProblem: (error) => log.warn({ error }, 'an Event could not be written'),
    onDropped: kubernetesMetrics.recorder.dropped,
    isBusy,
  })

  const nameClaim = createNameClaim({
    client,
    context,
    cluster,
    holderSeconds,
    log,
    onTaken: (isTaken) => metrics.clusterNameTaken.set(isTaken ? 1 : 0),
  })
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

  /** More wait than are worked on. */
  function isBusy(): boolean {
    return (queue?.length() ?? 0) > WORKERS
  }

  /** One term: until the lease is lost, or this process stops. */
  async function lead(term: AbortSignal): Promise<void> {
    let failures = 0
    while (!term.aborted) {
      const claimed = await nameClaim.renew(term)
      if (claimed === 'held') await workUntilDisplaced(term)
      failures = claimed === 'unknown' ? failures + 1 : 0
      if (claimed === 'taken') await clock.sleep(claimMs, term)
      if (claimed === 'unknown') await clock.sleep(backoffMs(failures - 1, CLAIM_RETRY, random), term)
    }
    metrics.clusterNameTaken.set(0)
  }

  /** With its own cache: what an earlier term knew may have changed. */
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
      // What failed has its back-off; a poll must not shorten it.
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
        // What failed while the API server was away need not wait for the end of its back-off.
        if (watch.takeRecovery()) enqueueAll()
        await follower.poll(stopping)
      }),
      startLoop('claim', claimMs, async () => {
        // Trouble with the question is no reason to drop work in progress.
        if ((await nameClaim.renew(signal)) === 'taken') displaced.abort()
      }),
    ]
    const spaceFlip = createFlipSpacer(work, clock.now)
    const listener = listenForFlips({
      url: options.databaseUrl,
      clock,
      cluster,
      onFlip: ({ namespace, name }) => spaceFlip(`${namespace}/${name}`),
      // The database was away, or we were: whatever waits to be tried again need not wait longer.
      onConnected: enqueueAll,
      onProblem: (error) => log.warn({ error }, 'the connection that hears of flips broke; it is opened again'),
    })
    queue = work
    workers.start()
    enqueueAll()
    listener.start()
    await aborted(signal)
    queue = undefined
    work.stop()
    const drained = new AbortController()
    const drainMs = elector.isLeader() ? DRAIN_MS : LOST_DRAIN_MS
    const ended = [workers.stop(drainMs), listener.stop(), ...loops.map((loop) => loop.stop())]
    void clock.sleep(drainMs, drained.signal).then(() => cut.abort(new Error('the term as leader has ended')))
    await Promise.all(ended)
    drained.abort()
  }

  function startLoop(name: string, everyMs: number, run: (stopping: AbortSignal) => Promise<void>) {
    const loop = createLoop({
      name,
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

  return {
    start() {
      watch.start()
      recorder.start()
      elector.start()
    },
    async stop() {
      await elector.stop()
      await watch.stop()
      await recorder.stop()
    },
    hasSynced: watch.hasSynced,
    isLeader: elector.isLeader,
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
