/** The controller of a kind of resources that only declare something of the service. */

import { keyOf } from '../../kubernetes/objects.ts'
import type { Priority } from '../../kubernetes/queue.ts'
import type { Namespaces } from '../namespaces/namespaces.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import type { CheckSettings } from '../reconcile/control-checks.ts'
import type { Controller, Term } from '../term.ts'
import { createDeclareReconcile } from './declare.ts'
import type { DeclaredKind } from './declared-kind.ts'
import { createOrphanSweep } from './orphans.ts'
import type { Resource } from './resource.ts'
import type { ResourceWatch } from './watch.ts'
import { createWork, POLL_MS, RESYNC_MS } from './work.ts'

export interface DeclaredControllerOptions<T extends Resource>
  extends Pick<CheckSettings, 'resyncMs' | 'pollMs' | 'orphanMs'> {
  readonly watch: ResourceWatch<T>
  readonly namespaces: Namespaces
  /** Whether this operator watches the namespace. */
  readonly isWatched: (namespace: string) => boolean
}

export interface DeclaredController extends Controller {
  /** Its resource has changed. */
  add(key: string, priority: Priority): void
  /** The annotation of a Namespace has changed. */
  projectsChanged(namespace: string): void
}

const WORKERS = 4

export function createDeclaredController<T extends Resource, Facts>(
  term: Term,
  of: DeclaredKind<T, Facts>,
  { watch, namespaces, isWatched, resyncMs = RESYNC_MS, pollMs = POLL_MS, orphanMs }: DeclaredControllerOptions<T>,
): DeclaredController {
  const { client, cluster, claims, clock, log, metrics } = term
  const reconcile = createDeclareReconcile(term, of, { cache: watch, namespaces, resyncMs })
  const work = createWork(term, { name: of.controller, kind: of.kind, workers: WORKERS, watch, reconcile })
  const collectOrphans = createOrphanSweep({
    client,
    type: of.type,
    orphanMs,
    now: clock.now,
    retire: (place) => of.retire({ cluster, ...place }),
    onOrphan(place) {
      metrics.orphans.inc()
      log.warn(
        { resource: place },
        `the resource of a ${of.what} was gone without its finalizer; the ${of.what} was removed`,
      )
    },
  })
  const offer = (key: string, object: T) => {
    if (ownershipOf(object, claims).kind !== 'foreign' && !work.isFailing(key)) work.add(key, 'background')
  }

  /** What has changed in the service, what is gone from there, and what is there without a resource. */
  async function poll(stopping: AbortSignal): Promise<void> {
    if (watch.takeRecovery()) work.addAll()
    const found = await of.list()
    const missing = []
    for (const one of found) {
      const key = keyOf(one)
      const object = watch.get(key)
      if (object === undefined) {
        if (isWatched(one.namespace) && watch.isListed(one.namespace)) missing.push(one)
      } else if (!one.isShown(object)) offer(key, object)
    }
    const known = new Set(found.map(keyOf))
    for (const key of watch.keys()) {
      const object = watch.get(key)!
      if (object.status !== undefined && of.idOf(object.status) !== undefined && !known.has(key)) offer(key, object)
    }
    await collectOrphans(missing, stopping)
  }

  const parts: { stop(): Promise<void> }[] = []
  return {
    name: `${of.what}s`,
    add: work.add,
    projectsChanged: work.addNamespace,
    start() {
      parts.push(term.startLoop(`poll_${of.what}s`, pollMs, poll))
      work.start()
    },
    async stop(drainMs) {
      await Promise.all([work.stop(drainMs), ...parts.map((part) => part.stop())])
    },
  }
}
