/**
 * Resource versions are decimal numbers of one sequence for each resource, and may be compared, since Kubernetes 1.35 by
 * contract (KEP-5504) and before that in every API server on etcd. Anything else (an aggregated API's) is only ever equal or
 * unknown.
 */

const DECIMAL = /^[1-9][0-9]*$/

/** Below zero when `a` is older than `b`; null when that cannot be told. */
export function compareVersions(a: string, b: string): number | null {
  if (a === b) return 0
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return null
  // Beyond 2^53 numbers lose their last digits; as text, the longer one is the greater.
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : 1
}

/** Is `a` known to be newer than `b`? */
export function isNewer(a: string, b: string): boolean {
  return (compareVersions(a, b) ?? 0) > 0
}
