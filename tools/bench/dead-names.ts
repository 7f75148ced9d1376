/**
 * A name server that does not respond, as a tenant's zone can have it: for one program, in a mount namespace. Needs root,
 * and a system that reads resolv.conf.
 */

import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Program } from '../../test/support/service-process.ts'

const ADDRESS = '127.0.0.153'
const PORT = 53
const MOUNT = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'

export interface DeadNameServer {
  /** The program, with this name server alone. */
  with(program: Program): Program
  /** How many questions have arrived. */
  questions(): number
  close(): void
}

/** Null where this machine does not allow it. */
export async function startDeadNameServer(folder: string): Promise<DeadNameServer | null> {
  const file = join(folder, 'resolv.conf')
  writeFileSync(file, `nameserver ${ADDRESS}\n`)
  const apply = ({ command, args }: Program): Program => ({
    command: 'unshare',
    args: ['--mount', 'sh', '-c', MOUNT, file, command, ...args],
  })
  const server = createSocket('udp4')
  let questions = 0
  server.on('message', () => {
    questions += 1
  })
  try {
    const { command, args } = apply({ command: 'true', args: [] })
    execFileSync(command, args, { stdio: 'ignore' })
    server.bind(PORT, ADDRESS)
    await once(server, 'listening')
  } catch {
    server.close()
    return null
  }
  return { with: apply, questions: () => questions, close: () => server.close() }
}
