/**
 * Changes of checks without a change of their resources: pings, deadlines, calls of the API, lost resources. Flips arrive by
 * NOTIFY. A poll finds the rest: flips missed by a broken connection, checks that became late (which is never written), the
 * rounded time of the last ping, and checks whose resource is gone.
 */

import { type DeclaredState, listStates, type Resource } from '../checks/declare/find-declared.ts'
import { retireCheck } from '../checks/declare/retire-check.ts'
import { shownStatus } from '../domain/check.ts'
import type { KubernetesClient } from '../kubernetes/client.ts'
import { keyOf } from '../kubernetes/objects.ts'
import type { Context } from '../store/context.ts'
import type { HeartbeatCheck } from './heartbeat-check.ts'
import { resourceExists } from './resource-exists.ts'
import { LAST_PING_STEP_MS } from './status.ts'

export interface FollowerOptions {
  readonly context: Context
  readonly client: KubernetesClient
  readonly cluster: string
  readonly cache: { get(key: string): HeartbeatCheck | undefined; keys(): Iterable<string>; hasSynced(): boolean }
  readonly isWatched: (namespace: string) => boolean
  readonly enqueue: (key: string) => unknown
  /** This process's clock. */
  readonly now: () => number
  readonly orphanMs?: number
  readonly onOrphan: (resource: Resource) => void
}

export interface Follower {
  /** Compares all checks of the cluster with their resources once. */
  poll(signal?: AbortSignal): Promise<void>
}

/**
 * A deleted resource retires its check by its finalizer. A resource that is gone without it, and that ensure-finalizer.ts does not
 * know of, was lost: its finalizer was removed by force, or etcd was emptied. Then it is likely to be applied again soon, and its
 * job still pings, so its check is kept for so long.
 */
const ORPHAN_MS = 600_000

export function createFollower(options: FollowerOptions): Follower {
  const { context, client, cluster, cache, isWatched, enqueue, now, orphanMs = ORPHAN_MS, onOrphan } = options
  const missingSince = new Map<string, number>()

  async function poll(signal?: AbortSignal): Promise<void> {
    const states = await listStates(context, cluster)
    const databaseNow = context.clock.now()
    const missing: DeclaredState[] = []
    const found = new Set<string>()
    for (const state of states) {
      if (!isWatched(state.namespace)) continue
      const key = keyOf(state)
      const object = cache.get(key)
      found.add(key)
      if (object === undefined) missing.push(state)
      else if (isOutdated(object, state, databaseNow)) enqueue(key)
    }
    // The check was removed by SQL, or by an older backup: the pings of its job are rejected until it is created again.
    for (const key of cache.keys()) if (!found.has(key) && hadCheck(cache.get(key))) enqueue(key)
    await collectOrphans(missing, signal)
  }

  /** Never based on a partial list, and never on the cache alone. */
  async function collectOrphans(missing: readonly DeclaredState[], signal: AbortSignal | undefined): Promise<void> {
    if (!cache.hasSynced()) return missingSince.clear()
    const keys = new Set(missing.map(keyOf))
    for (const key of missingSince.keys()) if (!keys.has(key)) missingSince.delete(key)
    for (const { namespace, name } of missing) {
      const key = keyOf({ namespace, name })
      const since = missingSince.get(key) ?? now()
      missingSince.set(key, since)
      if (now() - since < orphanMs || signal?.aborted) continue
      if ((await resourceExists(client, { namespace, name })) !== 'no') {
        // An existing one will arrive in the cache. With an unknown kind the time starts again when the kind is back.
        missingSince.delete(key)
        continue
      }
      await retireCheck(context, { cluster, namespace, name }, 'Delete')
      missingSince.delete(key)
      onOrphan({ cluster, namespace, name })
    }
  }

  return { poll }
}

/** Not for a resource that is being deleted: that is about to lose its check. */
function hadCheck(object: HeartbeatCheck | undefined): boolean {
  return object?.status?.checkId !== undefined && object.metadata.deletionTimestamp === undefined
}

function isOutdated({ status }: HeartbeatCheck, state: DeclaredState, now: number): boolean {
  if (status?.state !== shownStatus(state, now)) return true
  const { lastTransitionTime, lastPingTime } = status
  if (lastTransitionTime === undefined || Date.parse(lastTransitionTime) !== Math.floor(state.since)) return true
  if (state.lastPingAt === null) return lastPingTime !== undefined
  return lastPingTime === undefined || Math.abs(state.lastPingAt - Date.parse(lastPingTime)) >= LAST_PING_STEP_MS
}
