/**
 * Rate limit between notices of flips and the queue. The first notice of a resource is queued at once, further ones so
 * that it is reconciled once in `FLIP_STEP_MS`: a client with one ping URL can make a check flip a hundred times in a
 * second, and each reconcile may write a status, a load on the cluster's etcd.
 */

import type { Queue } from '../../kubernetes/queue.ts'

export const FLIP_STEP_MS = 1_000
const MAX_RESOURCES = 4_096

/** Returns a function that takes the key of a resource whose check has flipped. */
export function createFlipSpacer(queue: Pick<Queue, 'add' | 'addAfter'>, now: () => number): (key: string) => void {
  /** When each resource was or will be queued; the latest at the end. */
  const queuedAt = new Map<string, number>()

  return (key) => {
    const at = now()
    const last = queuedAt.get(key) ?? Number.NEGATIVE_INFINITY
    const next = last > at ? last : Math.max(at, last + FLIP_STEP_MS)
    queuedAt.delete(key)
    queuedAt.set(key, next)
    if (queuedAt.size > MAX_RESOURCES) queuedAt.delete(queuedAt.keys().next().value!)
    // Also when one is planned: the queue keeps the earliest delay of a key, and the planned one may have been
    // replaced.
    if (next > at) queue.addAfter(key, next - at, 'live')
    else queue.add(key, 'live')
  }
}
