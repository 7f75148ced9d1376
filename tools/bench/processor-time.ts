import { readFileSync } from 'node:fs'

/** The clock ticks of /proc, a second. */
const TICKS = 100

/** Of all processes together, and of their children that have ended. */
export function cpuSeconds(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      // utime, stime, cutime, cstime: see proc(5).
      for (const field of [11, 12, 13, 14]) ticks += Number(fields[field])
    } catch {
      // It has just ended, and is counted with its parent.
    }
  }
  return ticks / TICKS
}
