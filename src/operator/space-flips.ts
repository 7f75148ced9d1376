/**
 * Notices of flips on their way into the queue. The first of a resource is passed on at once, further ones so that it is looked
 * at once in `FLIP_STEP_MS`: whoever knows one ping URL can make a check flip a hundred times in a second, and each look may
 * write a status, which is etcd's and everybody's.
 */

import type { Queue } from '../kubernetes/queue.ts'

export const FLIP_STEP_MS = 1_000
const MOST_REMEMBERED = 4_096

/** The function it makes takes the key of a resource whose check has flipped. */
export function createFlipSpacer(queue: Pick<Queue, 'add' | 'addAfter'>, now: () => number): (key: string) => void {
  /** When each was, or is to be, looked at; the latest at the end. */
  const looks = new Map<string, number>()

  return (key) => {
    const at = now()
    const last = looks.get(key) ?? Number.NEGATIVE_INFINITY
    const next = last > at ? last : Math.max(at, last + FLIP_STEP_MS)
    looks.delete(key)
    looks.set(key, next)
    if (looks.size > MOST_REMEMBERED) looks.delete(looks.keys().next().value!)
    // Also when one is planned already: of several delays of a key the queue keeps the earliest, which may have been another's.
    if (next > at) queue.addAfter(key, next - at, 'live')
    else queue.add(key, 'live')
  }
}
