/** One program of the control plane as a process, and the guard that none of them outlives the one that started them. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const EARLIER_GUARD_MS = 5000

export interface ProgramProcess {
  readonly name: string
  readonly pid: number
  readonly logFile: string
  hasEnded(): boolean
  /** kill -9 to its process group; resolves when it is gone. */
  kill(): Promise<void>
  signal(name: NodeJS.Signals): void
}

export interface ProgramStart {
  readonly name: string
  readonly path: string
  readonly args: readonly string[]
  readonly home: ProgramHome
  /** More of the environment than PATH and HOME. */
  readonly environment?: Readonly<Record<string, string>>
  /** It ended without being killed by us. */
  readonly onLost: (program: ProgramProcess) => void
}

/** Starts a program in a session of its own, out of reach of the terminal's Ctrl-C, with stdout and stderr in its log. */
export function startProgram({ name, path, args, home, environment, onLost }: ProgramStart): ProgramProcess {
  const logFile = join(home.logs, `${name}.log`)
  const log = openSync(logFile, 'a')
  // HOME: kubectl and Go's libraries look for settings there, and these are none of the person's who runs the tests.
  // Throw-away servers on a machine that tests keep busy: less garbage collection for some more memory.
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, GOGC: '200', ...environment }
  const child = spawn(path, args, { cwd: home.path, env, detached: true, stdio: ['ignore', log, log] })
  closeSync(log)
  const pid = child.pid
  if (pid === undefined) {
    child.once('error', () => {}) // what follows says it
    throw new Error(`${path} cannot be started`)
  }
  const pidFile = join(home.path, 'pids', name)
  writeFileSync(pidFile, String(pid))
  let hasEnded = false
  let isKilled = false
  const ended = once(child, 'exit').then(() => {
    hasEnded = true
    rmSync(pidFile, { force: true })
    if (!isKilled) onLost(program)
  })
  const signal = (kind: NodeJS.Signals) => {
    try {
      if (!hasEnded) process.kill(-pid, kind)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it ended a moment ago
    }
  }
  const kill = () => {
    isKilled = true
    signal('SIGKILL')
    return ended
  }
  const program: ProgramProcess = { name, pid, logFile, hasEnded: () => hasEnded, kill, signal }
  return program
}

/** The end of a program's log, for the message about its failure. */
export async function quoteLog(program: ProgramProcess): Promise<string> {
  const text = await readFile(program.logFile, 'utf8').catch(() => '') // gone with the folder of a stopped control plane
  const lines = text.trimEnd().split('\n').slice(-12)
  return `the end of ${program.logFile}:\n${lines.map((line) => line.slice(0, 400)).join('\n')}`
}

/** The folder of one control plane. */
export interface ProgramHome {
  readonly path: string
  readonly logs: string
  /** Kills what still runs and, when it is a temporary folder, removes it. */
  close(): Promise<void>
}

/**
 * Waits until its input ends, by `close` or because the starting process has died (Ctrl-C, kill -9): kills every program
 * whose pid file is still there, and removes the folder on request. A program that ended has no pid file, so that
 * its pid, which may belong to another process by now, is never signalled. (`kill -KILL -- -pid` is an error to dash.)
 */
const GUARD = `
cat > /dev/null
for file in "$1"/pids/*; do
  [ -f "$file" ] && kill -s KILL -- "-$(cat "$file")"
done
rm -rf "$1/pids"
[ "$2" = keep ] && exit 0
for try in 1 2 3 4 5; do rm -rf "$1" && exit 0; sleep 1; done
exit 1
`

/** `folder`: one that is kept, made when it is not there; default: a temporary one. `logs` default: inside. */
export async function openHome(options: { folder?: string; logs?: string } = {}): Promise<ProgramHome> {
  const path = options.folder ?? (await mkdtemp(join(tmpdir(), 'heartbeat-cluster-')))
  const logs = options.logs ?? join(path, 'logs')
  await waitForEarlierGuard(join(path, 'pids'))
  for (const folder of [path, logs, join(path, 'keys'), join(path, 'pids')])
    await mkdir(folder, { recursive: true, mode: 0o700 })
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', path, options.folder === undefined ? 'remove' : 'keep'], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const input = guard.stdin as typeof guard.stdin & { unref?: () => void }
  guard.unref()
  input.unref?.()
  input.on('error', () => {})
  const ended = once(guard, 'exit')
  const close = async () => {
    guard.ref()
    input.end()
    const [status] = await ended
    if (status !== 0) throw new Error(`${path} cannot be removed`)
  }
  return { path, logs, close }
}

/** A folder that is kept may have been left a moment ago by a killed process, whose guard still needs the pid files. */
async function waitForEarlierGuard(pids: string): Promise<void> {
  const limit = performance.now() + EARLIER_GUARD_MS
  while (existsSync(pids) && performance.now() < limit) await sleep(20)
  await rm(pids, { recursive: true, force: true }) // the machine went down, and all processes with it
}
