/** A limit of memory that the kernel holds, as a container has it. Needs root and a tree of cgroups that can be written to. */

import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'

/** Of version 1 and of version 2: the folder, and the file with the limit. */
const TREES = [
  ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
  ['/sys/fs/cgroup', 'memory.max'],
] as const

export interface MemoryGroup {
  /** After its processes have ended. */
  remove(): void
}

/** Null where this machine allows no such limit. */
export function limitMemory(pid: number, bytes: number): MemoryGroup | null {
  for (const [tree, file] of TREES) {
    const folder = `${tree}/heartbeat-bench-${pid}`
    try {
      mkdirSync(folder)
    } catch {
      continue
    }
    const remove = () => rmdirSync(folder)
    try {
      writeFileSync(`${folder}/${file}`, String(bytes))
      writeFileSync(`${folder}/cgroup.procs`, String(pid))
      if (Number(readFileSync(`${folder}/${file}`, 'utf8')) === bytes) return { remove }
    } catch {
      // No controller, or no right: the next tree.
    }
    remove()
  }
  return null
}
