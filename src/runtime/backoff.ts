export interface BackoffSteps {
  readonly firstMs: number
  /** No wait is longer than this, jitter included. */
  readonly maxMs: number
}

/**
 * The wait in milliseconds after `failures` failures in a row, the first of them being 0. It doubles each time. With
 * `random` (0 up to 1) it is spread over its second half, so that many clients of a server that comes back do not
 * return together.
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffSteps, random?: () => number): number {
  const doubledMs = firstMs * 2 ** failures
  return random === undefined ? Math.min(doubledMs, maxMs) : Math.min(doubledMs, maxMs / 2) * (1 + random())
}
