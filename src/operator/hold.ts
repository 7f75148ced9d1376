/**
 * When a resource gets its finalizer: before there is a check, unless many others wait. Where thousands are applied at once, or
 * the operator comes to a cluster that is full of them, their jobs need the URL first, and of the three writes two make a resource
 * Ready: the finalizer then comes in a second pass, behind all that wait for their first. Until then a resource can go without
 * asking us, and the watch tells; should this process end in between, the sweep of orphans finds the check.
 */

import type { Parts } from '../checks/parts.ts'
import { retireCheck } from '../checks/retire-check.ts'
import type { KubernetesClient } from '../kubernetes/client.ts'
import { splitKey } from '../kubernetes/objects.ts'
import { addFinalizer, hasFinalizer } from './finalize.ts'
import type { HeartbeatCheck } from './heartbeat-check.ts'
import { lookFor } from './look-for.ts'

export interface HoldOptions {
  readonly client: KubernetesClient
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly parts: Parts
  readonly cluster: string
  /** Others wait to be reconciled. */
  readonly isBusy: () => boolean
}

export interface Hold {
  /** Sees to the finalizer. Returns the resource as it is then. */
  now(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck>
  /** Like `now` unless it can wait; then a later pass is to do it. To be called before the check is made. */
  nowOrLater(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck>
  /** Retires the check of a resource that went before it had its finalizer. True when it is gone. */
  letGo(key: string): Promise<boolean>
}

export function createHold({ client, cache, parts, cluster, isBusy }: HoldOptions): Hold {
  const withoutFinalizer = new Set<string>()

  async function now(key: string, object: HeartbeatCheck): Promise<HeartbeatCheck> {
    if (hasFinalizer(object)) return object
    const held = await addFinalizer(client, object)
    cache.put(held)
    withoutFinalizer.delete(key)
    return held
  }

  return {
    now,
    async nowOrLater(key, object) {
      if (hasFinalizer(object) || !isBusy() || !canWait(object)) return now(key, object)
      withoutFinalizer.add(key)
      return object
    },
    async letGo(key) {
      if (!withoutFinalizer.has(key)) return false
      const place = splitKey(key)
      // Gone from the cache, it may be lost with the cluster's memory or with its kind.
      const answer = await lookFor(client, place)
      if (answer === 'gone') await retireCheck(parts, { cluster, ...place }, 'Delete')
      if (answer !== 'found') withoutFinalizer.delete(key)
      return answer === 'gone'
    },
  }
}

/** Only a first pass can go without, and only one that goes well: a status may be one of trouble. Nor a check that is to outlive its resource. */
function canWait({ status, spec }: HeartbeatCheck): boolean {
  return status === undefined && spec.deletionPolicy !== 'Retain'
}
