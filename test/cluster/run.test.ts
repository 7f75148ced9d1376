/** `npm run cluster`, as a person runs it. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { cluster } from '../support/cluster.ts'
import { eventually } from '../support/until.ts'

const RUN = fileURLToPath(new URL('../../tools/cluster/run.ts', import.meta.url))
/** A busy machine takes longer than usual to start a control plane. */
const READY_MS = 60_000
const TWO_STARTS = { timeout: 3 * READY_MS }

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-run-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Starts it in a checkout of its own, so to say. It does not outlive the test: its own guard sees to the rest. */
function startRun(...args: string[]) {
  const child = spawn(process.execPath, [RUN, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said.stderr += text
  })
  const ended = once(child, 'close').then(([status]) => status as number)
  const ready = () => eventually('ready', () => /^ready (https:\S+)$/m.exec(said.stdout)?.[1], READY_MS)
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal)
    return ended
  }
  return { said, ready, ended, end, [Symbol.asyncDispose]: async () => void (await end('SIGKILL')) }
}

it('serves until Ctrl-C, refuses a second one, and leaves nothing behind', TWO_STARTS, async () => {
  await using first = startRun()
  await first.ready()
  const [, kubeconfigPath = ''] = /^ {2}export KUBECONFIG=(\S+)$/m.exec(first.said.stdout) ?? []
  expect(kubeconfigPath).toBe(join(folder, '.cluster', 'kubeconfig'))
  expect((await stat(kubeconfigPath)).mode & 0o777).toBe(0o600)
  expect(await cluster.kubectlWith({ kubeconfigPath }, 'get', 'namespaces', '-o', 'name')).toContain('default')
  expect(first.said.stdout).not.toContain(await readToken(kubeconfigPath))

  await using second = startRun()
  expect(await second.ended).toBe(1)
  expect(second.said.stderr).toMatch(
    /^a cluster of this checkout runs already \(process \d+\): export KUBECONFIG=\S+\n$/,
  )

  expect(await first.end('SIGINT')).toBe(0)
  expect(first.said.stderr).toBe('')
  expect(existsSync(join(folder, '.cluster'))).toBe(false)
})

it('keeps objects with --keep, also over a kill -9', TWO_STARTS, async () => {
  const kubeconfigPath = join(folder, '.cluster', 'kubeconfig')
  const kubectl = (...args: string[]) => cluster.kubectlWith({ kubeconfigPath }, ...args)
  await using first = startRun('--keep')
  await first.ready()
  await kubectl('create', 'configmap', 'kept')
  await first.end('SIGKILL')
  await using second = startRun('--keep')
  await second.ready()
  expect(await kubectl('get', 'configmaps', '-o', 'name')).toContain('configmap/kept')
  expect(await second.end('SIGTERM')).toBe(0)
  expect(existsSync(kubeconfigPath)).toBe(false)
})

it('ends at once when it is stopped while it starts', async () => {
  await using run = startRun()
  await eventually('it has begun', () => existsSync(join(folder, '.cluster', 'lock')))
  expect(await run.end('SIGTERM')).toBe(0)
  expect(existsSync(join(folder, '.cluster'))).toBe(false)
})

it('explains its one option', async () => {
  await using run = startRun('--forever')
  expect(await run.ended).toBe(1)
  expect(run.said.stderr).toContain('usage: npm run cluster [-- --keep]')
})

async function readToken(kubeconfigPath: string): Promise<string> {
  const token = /token: (\S+)/.exec(await readFile(kubeconfigPath, 'utf8'))?.[1]
  if (token === undefined) throw new Error('the kubeconfig holds no token')
  return token
}
