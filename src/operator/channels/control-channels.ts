/** The controller of HeartbeatChannels: the queue of their keys, its workers, and what puts keys into it. */

import { keyOf } from '../../kubernetes/objects.ts'
import type { Priority } from '../../kubernetes/queue.ts'
import { createWorkers } from '../../kubernetes/workers.ts'
import { HEARTBEAT_CHANNELS } from '../names.ts'
import type { Namespaces } from '../namespaces/namespaces.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import type { CheckSettings } from '../reconcile/control-checks.ts'
import { createOrphanSweep } from '../resource/orphans.ts'
import type { HeartbeatChannel } from '../schema/channel.ts'
import type { Controller, Term } from '../term.ts'
import { isOutdated } from './channel-status.ts'
import { createChannelReconcile } from './reconcile-channel.ts'
import type { ChannelWatch } from './watch-channels.ts'

export interface ChannelControllerOptions extends Pick<CheckSettings, 'revival' | 'resyncMs' | 'pollMs' | 'orphanMs'> {
  readonly watch: ChannelWatch
  readonly namespaces: Namespaces
  /** Whether this operator watches the namespace. */
  readonly isWatched: (namespace: string) => boolean
}

export interface ChannelController extends Controller {
  /** Its resource has changed. */
  add(key: string, priority: Priority): void
  /** The annotation of a Namespace has changed. */
  projectsChanged(namespace: string): void
}

/** In metrics and logs. */
const CONTROLLER = 'heartbeat-channels'
const WORKERS = 4
const RESYNC_MS = 600_000
const POLL_MS = 15_000

export function createChannelController(term: Term, options: ChannelControllerOptions): ChannelController {
  const { client, service, cluster, claims, recorder, clock, random, log, metrics } = term
  const { watch, namespaces, isWatched, revival = 'name', resyncMs = RESYNC_MS, pollMs = POLL_MS, orphanMs } = options
  const work = term.createQueue(CONTROLLER)
  const workers = createWorkers({
    queue: work,
    count: WORKERS,
    clock,
    reconcile: createChannelReconcile({
      ...{ client, cache: watch, service, cluster, claims, namespaces, recorder, random, resyncMs },
      now: clock.now,
      isRevivable: revival === 'name',
      onFinalizerForced: () => metrics.forcedFinalizers.inc(),
    }),
    onError: (error, resource) =>
      log.warn({ error, resource }, 'a HeartbeatChannel could not be reconciled; it is tried again'),
    metrics: term.kubernetesMetrics.workers(CONTROLLER, WORKERS),
  })
  const collectOrphans = createOrphanSweep({
    client,
    type: HEARTBEAT_CHANNELS,
    orphanMs,
    now: clock.now,
    retire: (place) => service.retireChannel({ cluster, ...place }),
    onOrphan(place) {
      metrics.orphans.inc()
      log.warn({ resource: place }, 'the resource of a channel was gone without its finalizer; the channel was removed')
    },
  })
  // What is found by looking must not shorten the back-off of a failed key.
  const isChecked = (key: string, object: HeartbeatChannel) =>
    ownershipOf(object, claims).kind !== 'foreign' && work.failures(key) === 0
  const enqueueAll = () => {
    for (const key of watch.keys()) work.add(key, 'background')
  }

  /** How deliveries go, channels that are gone from the database, and channels whose resource is gone. */
  async function poll(stopping: AbortSignal): Promise<void> {
    if (watch.takeRecovery()) enqueueAll()
    const found = await service.findChannelDeliveries(cluster)
    const missing = []
    for (const deliveries of found) {
      const key = keyOf(deliveries)
      const object = watch.get(key)
      if (object !== undefined) {
        if (isChecked(key, object) && isOutdated(object, deliveries, service.now())) work.add(key, 'background')
      } else if (isWatched(deliveries.namespace) && watch.isListed(deliveries.namespace)) missing.push(deliveries)
    }
    const known = new Set(found.map(keyOf))
    for (const key of watch.keys()) {
      const object = watch.get(key)!
      if (object.status?.channelId !== undefined && !known.has(key) && isChecked(key, object))
        work.add(key, 'background')
    }
    await collectOrphans(missing, stopping)
  }

  const parts: { stop(): Promise<void> }[] = []
  return {
    name: 'channels',
    add: work.add,
    projectsChanged(namespace) {
      for (const key of watch.keys()) if (key.startsWith(`${namespace}/`)) work.add(key, 'live')
    },
    start() {
      parts.push(term.startLoop('poll_channels', pollMs, poll))
      workers.start()
      // The last leader may have left work undone.
      enqueueAll()
    },
    async stop(drainMs) {
      work.stop()
      await Promise.all([workers.stop(drainMs), ...parts.map((part) => part.stop())])
    },
  }
}
