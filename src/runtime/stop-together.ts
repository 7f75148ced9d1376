/**
 * Adds one entry to `stack` and returns a function that adds stops to this entry. All of them run at the same time when the
 * stack is disposed of: for stops that each may wait for a whole grace period.
 */
export function stopTogether(stack: AsyncDisposableStack): (stop: () => Promise<unknown>) => void {
  const stops: (() => Promise<unknown>)[] = []
  stack.defer(async () => {
    await Promise.all(stops.map((stop) => stop()))
  })
  return (stop) => void stops.push(stop)
}
