/** How much memory pods have, as the kernel counts it for their cgroups. */

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** In bytes. */
export interface PodMemory {
  /** What the kernel cannot simply drop, by which a pod is held to its limit and evicted: all but files that lie idle. */
  readonly workingSet: number
  /** Of it, what belongs to the processes alone. */
  readonly anonymous: number
}

/** Version 1 has a tree for memory, version 2 one for everything. */
const TREES = ['/sys/fs/cgroup/memory/heartbeat-node', '/sys/fs/cgroup/heartbeat-node']

/** Of a pod of the node, by its uid, sandbox included. */
export async function readPodMemory(uid: string): Promise<PodMemory> {
  for (const tree of TREES) {
    const folder = await findFolder(tree, `pod${uid}`)
    if (folder === null) continue
    const usage = Number((await readOneOf(folder, ['memory.usage_in_bytes', 'memory.current'])).trim())
    const lines = (await readFile(join(folder, 'memory.stat'), 'utf8')).split('\n')
    const count = (...names: string[]) => {
      const line = names.flatMap((name) => lines.filter((line) => line.startsWith(`${name} `)))[0]
      return Number(line?.split(' ')[1])
    }
    const idle = count('total_inactive_file', 'inactive_file')
    return { workingSet: usage - idle, anonymous: count('total_rss', 'anon') }
  }
  throw new Error(`no cgroup of pod ${uid} in ${TREES.join(' or ')}`)
}

async function findFolder(tree: string, name: string): Promise<string | null> {
  const entries = await readdir(tree, { withFileTypes: true }).catch(() => [])
  for (const entry of entries.filter((entry) => entry.isDirectory())) {
    if (entry.name === name) return join(tree, name)
    const found = entry.name.startsWith('pod') ? null : await findFolder(join(tree, entry.name), name)
    if (found !== null) return found
  }
  return null
}

async function readOneOf(folder: string, names: readonly string[]): Promise<string> {
  for (const name of names) {
    const text = await readFile(join(folder, name), 'utf8').catch(() => null)
    if (text !== null) return text
  }
  throw new Error(`${folder} has none of ${names.join(', ')}`)
}
