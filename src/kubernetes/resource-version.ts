/**
 * Resource versions are decimal numbers of one sequence for each resource. They may be compared: since Kubernetes 1.35
 * by contract (KEP-5504), before that in every API server on etcd. Any other version (an aggregated API's) is only
 * equal or not comparable.
 */

const DECIMAL = /^[1-9][0-9]*$/

/** Below zero when `a` is older than `b`; null when they cannot be compared. */
export function compareVersions(a: string, b: string): number | null {
  if (a === b) return 0
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return null
  // Beyond 2^53 numbers lose their last digits; as text, the longer one is the greater.
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : 1
}

/** Whether `a` is known to be newer than `b`. */
export function isNewer(a: string, b: string): boolean {
  return (compareVersions(a, b) ?? 0) > 0
}
