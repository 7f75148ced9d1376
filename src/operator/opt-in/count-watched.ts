/** How many CronJobs have a HeartbeatCheck that follows them, of the operator or of others, and how many have none. */

import { keyOf } from '../../kubernetes/objects.ts'
import type { OptInSource } from './plan.ts'

export interface WatchedCounts {
  readonly watched: number
  /** Are to have a HeartbeatCheck, and cannot. */
  readonly rejected: number
  /** Need none. */
  readonly unwatched: number
}

/**
 * @param followersOf the HeartbeatChecks that follow the CronJob of this key
 * @param rejected keys of CronJobs whose HeartbeatCheck cannot be created
 */
export function countWatched(
  sources: Iterable<OptInSource>,
  followersOf: (key: string) => Iterable<string>,
  rejected: ReadonlySet<string>,
): WatchedCounts {
  const counts = { watched: 0, rejected: 0, unwatched: 0 }
  for (const { metadata } of sources) {
    const key = keyOf(metadata)
    if (hasAny(followersOf(key))) counts.watched += 1
    else counts[rejected.has(key) ? 'rejected' : 'unwatched'] += 1
  }
  return counts
}

function hasAny(items: Iterable<unknown>): boolean {
  for (const _ of items) return true
  return false
}
