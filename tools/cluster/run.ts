/**
 * `npm run cluster`: a Kubernetes control plane for a person who has none at hand, in the foreground, with our CRD. Writes
 * `.cluster/kubeconfig`. Ctrl-C or SIGTERM ends everything with status 0; the objects are thrown away, unless it was
 * started with `-- --keep`, which keeps them in `.cluster/data` for the next time.
 */

import { once } from 'node:events'
import { existsSync, rmSync } from 'node:fs'
import { access, mkdir, rm, rmdir } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findPrograms } from '../programs/find.ts'
import { takeLock } from '../programs/lock.ts'
import { ProgramsError } from '../programs/programs.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { writeKubeconfig } from './control-plane-access.ts'

const CRDS = fileURLToPath(new URL('../../crds', import.meta.url))
const folder = resolve('.cluster')
const lockFile = join(folder, 'lock')
const dataFolder = join(folder, 'data')
const kubeconfig = join(folder, 'kubeconfig')

const print = (text: string) => void process.stdout.write(`${text}\n`)

/** Says why, on one line where one is enough, and ends with status 1. */
function fail(message: string): void {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}

function readArguments(): { keep: boolean } | null {
  try {
    return { keep: parseArgs({ options: { keep: { type: 'boolean' } } }).values.keep === true }
  } catch {
    return null
  }
}

async function main(): Promise<void> {
  const args = readArguments()
  if (args === null) return fail('usage: npm run cluster [-- --keep]   (--keep: keep its objects for the next time)')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // First, because a signal may come as soon as the lock is seen.
  const stop = stopOnSignals()
  const lock = await takeLock(lockFile)
  if ('holder' in lock)
    return fail(
      `a cluster of this checkout runs already (process ${lock.holder}): export KUBECONFIG=${quote(kubeconfig)}`,
    )
  try {
    if (!stop.signal.aborted) await serve(args.keep, stop)
  } finally {
    await rm(kubeconfig, { force: true })
    await lock.release()
    await rmdir(folder).catch(() => {}) // it holds what was kept
  }
}

function stopOnSignals(): AbortController {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  return stop
}

async function serve(keep: boolean, stop: AbortController): Promise<void> {
  // In the middle of a build or a start there is no waiting: what was started ends with this process.
  const endAtOnce = () => {
    for (const file of [kubeconfig, lockFile]) rmSync(file, { force: true })
    if (!existsSync(dataFolder)) rmSync(folder, { recursive: true, force: true })
    process.exit()
  }
  stop.signal.addEventListener('abort', endAtOnce)
  const programs = await findPrograms()
  const plane = await startControlPlane({
    programs,
    crds: existsSync(CRDS) ? [CRDS] : [],
    ...(keep ? { dataFolder } : {}),
    onLost(message) {
      fail(message)
      stop.abort()
    },
  })
  stop.signal.removeEventListener('abort', endAtOnce)
  try {
    await writeKubeconfig(plane, { credential: { token: plane.adminToken }, path: kubeconfig })
    await introduce(plane, keep)
    if (!stop.signal.aborted) await once(stop.signal, 'abort')
  } finally {
    await plane.stop()
  }
}

async function introduce({ version, kubectlPath, server }: ControlPlane, keep: boolean): Promise<void> {
  print(`Kubernetes ${version} on this machine, without nodes: jobs make pods, and no pod runs. For another terminal:`)
  print('')
  print(`  export KUBECONFIG=${quote(kubeconfig)}`)
  if (!(await isOnPath('kubectl'))) print(`  export PATH=${quote(resolve(kubectlPath, '..'))}:$PATH   # for kubectl`)
  print('')
  print(`Ctrl-C ends it; its objects are ${keep ? 'kept for the next time' : 'thrown away'}.`)
  print(`ready ${server}`)
}

async function isOnPath(name: string): Promise<boolean> {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const found = await Promise.allSettled(folders.map((one) => access(join(one, name))))
  return found.some(({ status }) => status === 'fulfilled')
}

/** For the shell that the line is pasted into. */
const quote = (path: string) => (/^[\w./~+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`)

try {
  await main()
} catch (error) {
  fail(error instanceof ProgramsError ? error.message : `the cluster did not start: ${error}`)
}
