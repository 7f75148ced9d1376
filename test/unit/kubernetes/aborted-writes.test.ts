/** In a process of its own: Node's HTTP/2 may never return from the abort of a request whose body was not sent yet, and takes all memory. */

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const PROGRAM = fileURLToPath(new URL('./aborted-writes.ts', import.meta.url))
/** It takes two seconds on a quiet machine. */
const LIMIT = { timeout: 60_000, killSignal: 'SIGKILL' } as const

it('writes may be aborted at any moment: the process goes on', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM], LIMIT)
  expect(Number(/^(\d+) writes were aborted$/m.exec(stdout)?.[1])).toBeGreaterThan(100)
})
