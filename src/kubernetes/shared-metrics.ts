/** One label for several reflectors of one resource, one for each watched namespace. */

import type { ReflectorMetrics } from './reflector.ts'

/**
 * Returns metrics for each of `count` reflectors. The resource has the oldest contact of them all, so that a stalled one is not
 * hidden by the others, and the sum of their objects.
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
