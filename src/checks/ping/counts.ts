/**
 * How many pings each check got from this process since it was last pruned, so that a check that pings often is pruned
 * before the walk through the whole history comes to it (prune-busy.ts). A ping that is tried twice may count twice.
 */

export type PingCounts = ReturnType<typeof createPingCounts>

/** About 50 bytes each. */
const MAX_KEYS = 200_000

export function createPingCounts(limit = MAX_KEYS) {
  const counts = new Map<number, number>()
  return {
    add(key: number): void {
      const count = counts.get(key)
      // All begin again: a check that pings often is soon back.
      if (count === undefined && counts.size >= limit) counts.clear()
      counts.set(key, (count ?? 0) + 1)
    },
    /** The keys of the checks with `least` pings or more. */
    find: (least: number) => [...counts].filter(([, count]) => count >= least).map(([key]) => key),
    /** These checks begin again at zero. */
    reset(keys: readonly number[]): void {
      for (const key of keys) counts.delete(key)
    },
  }
}
