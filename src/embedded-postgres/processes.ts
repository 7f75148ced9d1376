import { execFile, type SpawnOptions, spawn } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { errorCode } from '../runtime/error-code.ts'

/** Facts about other processes (from /proc on Linux, from ps elsewhere), and a way to run a short-lived program. */

const run = promisify(execFile)
const isLinux = process.platform === 'linux'

/**
 * A text that tells the process `pid` from every other one, also from a later one with the same pid: its start time and,
 * on Linux, the boot. Null when there is no such process; a zombie is none.
 */
export async function identifyProcess(pid: number): Promise<string | null> {
  if (!isLinux) {
    const started = await askPs(pid, 'lstart')
    return started === '' ? null : started
  }
  try {
    const [line, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ])
    // The second field is the program's name in brackets and may itself hold spaces and brackets.
    const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
    const state = fields[0]
    const startTicks = fields[19]
    return state === 'Z' || state === 'X' ? null : `${boot.trim()}/${startTicks}`
  } catch (error) {
    if (isGone(error)) return null
    throw error
  }
}

/**
 * Is `pid` the live postmaster of this cluster folder? A pid from an old file may by now belong to a stranger, which must
 * never be signalled.
 */
export async function isPostmasterOf(pid: number, cluster: string): Promise<boolean> {
  if ((await identifyProcess(pid)) === null) return false
  if (!isLinux) return (await askPs(pid, 'command')).includes(`/postgres -D ${cluster} -p `)
  const command = await readCommand(pid)
  if (basename(command[0] ?? '') !== 'postgres') return false
  try {
    // The server's working folder is its cluster, also after the folder was moved.
    return await isSameFolder(`/proc/${pid}/cwd`, cluster)
  } catch (error) {
    // Root without CAP_SYS_PTRACE (containers) may not look: the command line has to do.
    if (errorCode(error) !== 'EACCES' && errorCode(error) !== 'EPERM') throw error
  }
  return isSameFolder(command[command.indexOf('-D') + 1] ?? '', cluster)
}

async function readCommand(pid: number): Promise<string[]> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0')
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

async function isSameFolder(one: string, other: string): Promise<boolean> {
  try {
    const [a, b] = await Promise.all([stat(one), stat(other)])
    return a.dev === b.dev && a.ino === b.ino
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

async function askPs(pid: number, column: string): Promise<string> {
  try {
    return (await run('ps', ['-o', `${column}=`, '-p', String(pid)], { env: PROGRAM_ENV })).stdout.trim()
  } catch {
    return ''
  }
}

const isGone = (error: unknown) => errorCode(error) === 'ENOENT' || errorCode(error) === 'ESRCH'

/**
 * The whole environment of what we start: our own holds secrets that PostgreSQL has no need of, and settings (LC_*, PG*)
 * that would change what it does and prints.
 */
export const PROGRAM_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
}

export type ProgramResult = { ok: boolean; output: string }

/** Runs a program to its end, in a session of its own so that the terminal's Ctrl-C does not reach it; `input` goes to its stdin. */
export function runProgram(
  file: string,
  args: string[],
  options: SpawnOptions & { input?: string } = {},
): Promise<ProgramResult> {
  const { input, ...rest } = options
  return new Promise((resolveRun, reject) => {
    const child = spawn(file, args, { env: PROGRAM_ENV, cwd: '/', detached: true, ...rest, stdio: 'pipe' })
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.once('error', reject)
    child.once('close', (code) => resolveRun({ ok: code === 0, output }))
    child.stdin?.on('error', () => {}) // it may end without reading
    child.stdin?.end(input ?? '')
  })
}
