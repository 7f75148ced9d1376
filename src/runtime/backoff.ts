export interface BackoffSteps {
  readonly firstMs: number
  /** No wait is longer than this, jitter included. */
  readonly maxMs: number
}

/**
 * The wait after `failures` failures in a row, the first of them being 0: it doubles each time. `random` (0 up to 1)
 * spreads it over its second half, so that many clients do not return together.
 */
export function backoffMs(failures: number, { firstMs, maxMs }: BackoffSteps, random?: () => number): number {
  const doubledMs = firstMs * 2 ** failures
  return random === undefined ? Math.min(doubledMs, maxMs) : Math.min(doubledMs, maxMs / 2) * (1 + random())
}
