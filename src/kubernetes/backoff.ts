export interface Steps {
  readonly firstMs: number
  /** No wait is longer than this, jitter included. */
  readonly longestMs: number
}

/**
 * The wait after `failures` failures in a row, the first of them being 0: doubles each time, and is spread over the second
 * half of that, so that many clients of a server that comes back do not all return in the same instant.
 */
export function backoffMs(failures: number, { firstMs, longestMs }: Steps, random: () => number): number {
  const stepMs = Math.min(firstMs * 2 ** failures, longestMs / 2)
  return stepMs * (1 + random())
}
