/**
 * Adds one entry to `stack`, and returns a function that adds stops to this entry. The stops run at the same time,
 * because each may wait for a whole grace period. The stack goes on when all have ended, also where one has failed.
 */
export function stopTogether(stack: AsyncDisposableStack): (stop: () => Promise<unknown>) => void {
  const stops: (() => Promise<unknown>)[] = []
  stack.defer(async () => {
    const settled = await Promise.allSettled(stops.map((stop) => stop()))
    for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason
  })
  return (stop) => void stops.push(stop)
}

/** Of a process. Either may be missing. */
export interface Part {
  readonly start?: (signal?: AbortSignal) => unknown
  readonly stop?: () => Promise<unknown>
}

/** Starts one part after the other. `stack` stops the last stage first, and the parts of a stage together. */
export async function startStages(
  stages: readonly (readonly Part[])[],
  stack: AsyncDisposableStack,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (const stage of stages) {
    const defer = stopTogether(stack)
    for (const { start, stop } of stage) {
      await start?.(signal)
      if (stop !== undefined) defer(stop)
    }
  }
}
