/** Counts the TCP connections of a process from outside, without a proxy, which would take processor time from what is measured. Linux. */

import { readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

export interface SocketCount {
  /** Resolves with the connections that were seen since the start. Throws when there were none: then it looked in the wrong place. */
  stop(): Promise<number>
}

const STEP_MS = 100
const ESTABLISHED = '01'

/** Of the process, to a port of this machine. One that lives for less than a step may be missed. */
export function countSockets(pid: number, port: number): SocketCount {
  const inodes = new Set<string>()
  const ending = new AbortController()
  const looking = (async () => {
    while (!ending.signal.aborted) {
      // Once the process has ended there is nothing more to see.
      const open = new Set(await listOpen(pid).catch(() => []))
      for (const inode of await listConnected(port)) if (open.has(inode)) inodes.add(inode)
      await sleep(STEP_MS, undefined, { signal: ending.signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      ending.abort()
      await looking
      if (inodes.size === 0) throw new Error(`no connection of process ${pid} to port ${port} was seen`)
      return inodes.size
    },
  }
}

async function listOpen(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`
  const links = await Promise.all((await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => '')))
  return links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? [])
}

/** Columns: sl, local_address, rem_address, st, queues, timer, retransmits, uid, timeout, inode (proc(5)). */
async function listConnected(port: number): Promise<string[]> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const tables = await Promise.all(['tcp', 'tcp6'].map((table) => readFile(`/proc/net/${table}`, 'utf8')))
  return tables
    .flatMap((table) => table.split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , remote, state]) => remote?.endsWith(suffix) && state === ESTABLISHED)
    .map((columns) => columns[9]!)
}
