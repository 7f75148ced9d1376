/**
 * When a resource gets its finalizer: before there is a check, unless many others wait. Where thousands are applied at once, or
 * the operator comes to a cluster that is full of them, their jobs need the URL first, and of the three writes two make a resource
 * Ready: the finalizer then comes in a second pass, behind all that wait for their first. Until then a resource can go without
 * asking us, and the watch tells; should this process end in between, the sweep of orphans finds the check. What it publishes then goes
 * with it by its owner reference, so nobody else's Secret is written into before.
 */

import { retireCheck } from '../checks/declare/retire-check.ts'
import type { KubernetesClient } from '../kubernetes/client.ts'
import { splitKey } from '../kubernetes/objects.ts'
import type { Context } from '../store/context.ts'
import { addFinalizer, hasFinalizer } from './finalize.ts'
import type { HeartbeatCheck } from './heartbeat-check.ts'
import { lookFor } from './look-for.ts'

export interface HoldOptions {
  readonly client: KubernetesClient
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly context: Context
  readonly cluster: string
  /** Others wait to be reconciled. */
  readonly isBusy: () => boolean
}

export interface Hold {
  /** Sees to the finalizer. Returns the resource as it is then. */
  now(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck>
  /** Like `now` unless it can wait; then it is postponed. To be called before the check is made. */
  nowOrLater(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck>
  /** To a later pass, which is to call `now`. */
  isPostponed(key: string): boolean
  /** Retires the check of a resource that went before it had its finalizer. True when it is gone. */
  letGo(key: string): Promise<boolean>
}

export function createHold({ client, cache, context, cluster, isBusy }: HoldOptions): Hold {
  const postponed = new Set<string>()

  async function now(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck> {
    const held = hasFinalizer(object) ? object : await addFinalizer(client, object)
    // Also where somebody's rule has taken it off again: it is not tried for ever.
    postponed.delete(key)
    if (held !== object) cache.put(held)
    return held
  }

  return {
    now,
    async nowOrLater(key, object) {
      if (hasFinalizer(object) || !isBusy() || !canWait(object)) return now(key, object)
      postponed.add(key)
      return object
    },
    isPostponed: (key) => postponed.has(key),
    async letGo(key) {
      if (!postponed.has(key)) return false
      const place = splitKey(key)
      // Gone from the cache, it may be lost with the cluster's memory or with its kind.
      if ((await lookFor(client, place)) !== 'gone') return false
      await retireCheck(context, { cluster, ...place }, 'Delete')
      postponed.delete(key)
      return true
    },
  }
}

/** Only a first pass can go without, and only one that goes well: a status may be one of trouble. Nor a check that is to outlive its resource. */
function canWait({ status, spec }: HeartbeatCheck): boolean {
  return status === undefined && spec.deletionPolicy !== 'Retain'
}
