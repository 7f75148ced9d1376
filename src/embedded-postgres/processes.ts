/** Facts about other processes (from /proc on Linux, from ps elsewhere), and a way to run a program to its end. */

import { execFile, type SpawnOptions, spawn } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { errorCode } from '../runtime/error-code.ts'

const isLinux = process.platform === 'linux'

/**
 * A text that differs for a later process with the same pid: the start time and, on Linux, the id of the boot. Null when there
 * is no such process, or only a zombie.
 */
export async function identifyProcess(pid: number): Promise<string | null> {
  if (!isLinux) return (await askPs(pid, 'lstart')) || null
  const [line, boot] = await Promise.all([readProc(`${pid}/stat`), readProc('sys/kernel/random/boot_id')])
  // The second field is the program's name in brackets, which may hold spaces and brackets.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  return ['', 'Z', 'X'].includes(fields[0]!) ? null : `${boot.trim()}/${fields[19]}`
}

/**
 * Whether `pid` is the live postmaster of this cluster folder. A pid from an old file can belong to another program by now,
 * which must not get a signal.
 */
export async function isPostmasterOf(pid: number, clusterDir: string): Promise<boolean> {
  if (!isLinux) return (await askPs(pid, 'command')).includes(`/postgres -D ${clusterDir} -p `)
  const command = (await readProc(`${pid}/cmdline`)).split('\0')
  if (basename(command[0]!) !== 'postgres') return false
  // The server's working folder is its cluster, also after a move. Root without CAP_SYS_PTRACE cannot read it: then -D decides.
  const folder =
    (await identifyFolder(`/proc/${pid}/cwd`)) ?? (await identifyFolder(command[command.indexOf('-D') + 1] ?? ''))
  return folder !== null && folder === (await identifyFolder(clusterDir))
}

/** Null for a folder that cannot be read. */
async function identifyFolder(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null)
  return found && `${found.dev}/${found.ino}`
}

/** Empty when the process is gone. */
async function readProc(file: string): Promise<string> {
  try {
    return await readFile(`/proc/${file}`, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ESRCH') return ''
    throw error
  }
}

async function askPs(pid: number, column: string): Promise<string> {
  const asked = promisify(execFile)('ps', ['-o', `${column}=`, '-p', String(pid)], { env: PROGRAM_ENV })
  return asked.then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
}

/**
 * The whole environment of the programs. Ours holds secrets that PostgreSQL does not need, and settings (LC_*, PG*) that would
 * change what it does and prints.
 */
export const PROGRAM_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
}

/** Runs a program in a session of its own, which the terminal's Ctrl-C does not reach. `output` is of stdout and stderr. */
export function runProgram(
  file: string,
  args: readonly string[],
  { input = '', ...options }: SpawnOptions & { input?: string } = {},
): Promise<{ ok: boolean; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env: PROGRAM_ENV, cwd: '/', detached: true, ...options, stdio: 'pipe' })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream!.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    child.once('error', reject)
    child.once('close', (code) => resolve({ ok: code === 0, output }))
    // The program may end without reading.
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
  })
}
