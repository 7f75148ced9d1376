/**
 * When a resource gets its finalizer. Normally before its check is created. While many resources wait (thousands applied at once,
 * or a first start in a full cluster) the jobs need their URLs first, and two of the three writes make a resource Ready: the
 * finalizer is then written by a second reconcile, behind all resources that wait for their first.
 *
 * Until then a resource can be deleted without us. The watch reports that, and retireIfGone() retires the check; if this process
 * ends in between, the collection of orphans does (operator/reconcile/follow-changes.ts). The Secret or ConfigMap goes with its resource by the owner
 * reference, so the finalizer is never postponed past a write into an object that others own.
 */

import { retireCheck } from '../../checks/declare/retire-check.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Context } from '../../store/context.ts'
import type { HeartbeatCheck } from '../heartbeat-check.ts'
import { addFinalizer, hasFinalizer } from './finalize.ts'
import { resourceExists } from './resource-exists.ts'

export interface FinalizerOptions {
  readonly client: KubernetesClient
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly context: Context
  readonly cluster: string
  /** Whether other resources wait to be reconciled. */
  readonly isBusy: () => boolean
}

export interface Finalizers {
  /** Adds the finalizer unless it is there. Resolves with the resource as it is then. */
  ensure(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck>
  /** Like `ensure`, or postpones it. Call it before the check is created. */
  ensureOrPostpone(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck>
  /** Whether a later reconcile must call `ensure`. */
  isPostponed(key: string): boolean
  /** Retires the check of a resource that was deleted before it had its finalizer. Resolves with false when it may still exist. */
  retireIfGone(key: string): Promise<boolean>
}

export function createFinalizers({ client, cache, context, cluster, isBusy }: FinalizerOptions): Finalizers {
  const postponed = new Set<string>()

  async function ensure(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck> {
    const held = hasFinalizer(object) ? object : await addFinalizer(client, object)
    // Also when an admission rule has removed it again: it is not retried for ever.
    postponed.delete(key)
    if (held !== object) cache.put(held)
    return held
  }

  return {
    ensure,
    async ensureOrPostpone(key, object) {
      if (hasFinalizer(object) || !isBusy() || !canWait(object)) return ensure(key, object)
      postponed.add(key)
      return object
    },
    isPostponed: (key) => postponed.has(key),
    async retireIfGone(key) {
      if (!postponed.has(key)) return false
      const location = splitKey(key)
      // Missing in the cache alone proves nothing: etcd may have been emptied, or the CustomResourceDefinition deleted.
      if ((await resourceExists(client, location)) !== 'no') return false
      await retireCheck(context, { cluster, ...location }, 'Delete')
      postponed.delete(key)
      return true
    },
  }
}

/** Only the first reconcile, without a status that reports a problem, and only a check that goes with its resource. */
function canWait({ status, spec }: HeartbeatCheck): boolean {
  return status === undefined && spec.deletionPolicy !== 'Retain'
}
