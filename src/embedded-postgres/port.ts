import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'

/**
 * Below the range from which the system takes the ports of outgoing connections (32768 on Linux, higher elsewhere): while
 * the server is being restarted, no connection, not even one of its own clients trying to reach it, can take its port.
 */
const FIRST_PORT = 15_000
const LAST_PORT = 32_000

/** The port of the cluster's last start while that is free, else a free one of 127.0.0.1. */
export async function choosePort(cluster: string): Promise<number> {
  const last = await readLastPort(cluster)
  if (last !== null && (await isFree(last))) return last
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT)
    if (await isFree(port)) return port
  }
}

/** The server keeps the command line of its last start in postmaster.opts. */
async function readLastPort(cluster: string): Promise<number | null> {
  const command = await readFile(join(cluster, 'postmaster.opts'), 'utf8').catch(() => '')
  const port = Number(command.match(/"-p" "(\d+)"/)?.[1])
  return port > 0 ? port : null
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  try {
    probe.listen({ port, host: '127.0.0.1', exclusive: true })
    await once(probe, 'listening')
    return true
  } catch {
    return false
  } finally {
    await new Promise((resolve) => probe.close(resolve))
  }
}
