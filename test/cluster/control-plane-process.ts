/** One program of the control plane as a process, and the guard that none of them outlives the one that started them. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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
}

/** Starts a program in a session of its own, out of reach of the terminal's Ctrl-C, with stdout and stderr in its log. */
export function startProgram({ name, path, args, home }: ProgramStart): ProgramProcess {
  const logFile = join(home.logs, `${name}.log`)
  const log = openSync(logFile, 'a')
  // HOME: kubectl and Go's libraries look for settings there, and these are none of the person's who runs the tests.
  const env = { PATH: process.env.PATH ?? '', HOME: home.path }
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
  const ended = once(child, 'exit').then(() => {
    hasEnded = true
    rmSync(pidFile, { force: true })
  })
  const signal = (kind: NodeJS.Signals) => {
    if (!hasEnded) process.kill(-pid, kind)
  }
  const kill = () => {
    signal('SIGKILL')
    return ended
  }
  return { name, pid, logFile, hasEnded: () => hasEnded, kill, signal }
}

/** The end of a program's log, for the message about its failure. */
export async function quoteLog(program: ProgramProcess): Promise<string> {
  const lines = (await readFile(program.logFile, 'utf8')).trimEnd().split('\n').slice(-12)
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
 * whose pid file is still there, and removes the folder when it is told to. A program that ended has no pid file, so that
 * its pid, which may be somebody else's by now, is never signalled.
 */
const GUARD = `
cat > /dev/null
for file in "$1"/pids/*; do
  [ -f "$file" ] && kill -KILL -- "-$(cat "$file")"
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
  await rm(join(path, 'pids'), { recursive: true, force: true })
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
