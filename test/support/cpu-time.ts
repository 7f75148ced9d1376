/** For limits of time: on a busy machine, the wall clock also counts what others do meanwhile. */

/** Returns a function that returns the milliseconds of processor time that this process has used since. */
export function startCpuTimer(): () => number {
  const before = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
}
