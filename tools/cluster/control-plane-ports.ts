import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below the ports that Linux and macOS give to outgoing connections, so that none of those can take a port between our
 * look and the server's start, or while the server is down for a restart.
 */
const FIRST = 20_000
const COUNT = 10_000

const given = new Set<number>()

/** A free loopback port, which this process returns only once. */
export async function pickPort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
