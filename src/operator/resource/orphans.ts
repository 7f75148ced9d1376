/**
 * What the service has of a resource that is gone. A deleted resource takes it along by its finalizer. A resource that
 * is gone without its finalizer was lost: the finalizer was removed by force, or etcd was emptied. Then the resource is
 * likely to be applied again soon, so it is kept for so long.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { keyOf, type ResourceType } from '../../kubernetes/objects.ts'

const ORPHAN_MS = 600_000

interface Place {
  readonly namespace: string
  readonly name: string
}

export interface OrphanSweepOptions {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly type: ResourceType
  readonly orphanMs?: number | undefined
  /** This process's clock. */
  readonly now: () => number
  readonly retire: (place: Place) => Promise<unknown>
  readonly onOrphan: (place: Place) => void
}

/**
 * Returns a function for each poll, of what has no resource in the cache. Never based on a partial list, and never on
 * the cache alone.
 */
export function createOrphanSweep(options: OrphanSweepOptions) {
  const { client, type, orphanMs = ORPHAN_MS, now, retire, onOrphan } = options
  const missingSince = new Map<string, number>()

  /** False also where it may not be read, or the server does not serve the kind: then its 404 names no object. */
  async function isKnownAsGone(place: Place): Promise<boolean> {
    try {
      await client.get(type, place)
      return false
    } catch (error) {
      if (!hasStatus(error, 403, 404)) throw error
      return error.status === 404 && error.details?.name === place.name
    }
  }

  return async function collectOrphans(missing: readonly Place[], signal: AbortSignal | undefined): Promise<void> {
    const keys = new Set(missing.map(keyOf))
    for (const key of missingSince.keys()) if (!keys.has(key)) missingSince.delete(key)
    for (const { namespace, name } of missing) {
      const place = { namespace, name }
      const key = keyOf(place)
      const since = missingSince.get(key) ?? now()
      missingSince.set(key, since)
      if (now() - since < orphanMs || signal?.aborted) continue
      // An existing one will arrive in the cache. Where that is not known, the time starts again.
      const isGone = await isKnownAsGone(place)
      if (isGone) await retire(place)
      missingSince.delete(key)
      if (isGone) onOrphan(place)
    }
  }
}
