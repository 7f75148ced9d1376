/** The real program, as the first one of a pod has to behave. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { afterEach, expect, it, vi } from 'vitest'
import { findTool } from '../cluster/programs/tools.ts'

let running: ChildProcess
afterEach(() => running.kill('SIGKILL'))

/** As a process that has a child already; resolves with the child's pid. */
async function startPause(): Promise<number> {
  const path = await findTool('pause')
  running = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec "$0"', path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(running.stdout!, 'data')) as [Buffer]
  return Number(line.toString())
}

it('collects a child that has ended', async () => {
  const child = await startPause()
  expect(existsSync(`/proc/${child}`)).toBe(true)
  await vi.waitUntil(() => !existsSync(`/proc/${child}`), { timeout: 10_000 })
  expect(running.exitCode).toBeNull()
})

it.each(['SIGTERM', 'SIGINT'] as const)('ends well on %s, though not before', async (signal) => {
  const child = await startPause()
  // By then it is the shell no longer.
  await vi.waitUntil(() => !existsSync(`/proc/${child}`), { timeout: 10_000 })
  running.kill(signal)
  expect(await once(running, 'exit')).toEqual([0, null])
})
