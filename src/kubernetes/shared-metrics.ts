/** Several reflectors of one resource, as with single namespaces, under its one label. */

import type { ReflectorMetrics } from './reflector.ts'

/**
 * One for each of `count` reflectors. What is told of the resource is the longest silence of them all, so that one that has
 * stalled is not hidden by another one that has not, and the sum of their objects.
 */
export function shareMetrics(metrics: ReflectorMetrics, count: number): readonly ReflectorMetrics[] {
  const contacts = new Array<number>(count).fill(0)
  const objects = new Array<number>(count).fill(0)
  return contacts.map((_, index) => ({
    restarted: metrics.restarted,
    contact(atMs) {
      contacts[index] = atMs
      metrics.contact(Math.min(...contacts))
    },
    objects(held) {
      objects[index] = held
      metrics.objects(objects.reduce((sum, one) => sum + one))
    },
  }))
}
