import { type SpawnOptions, spawn } from 'node:child_process'

/**
 * The whole environment of the programs. Ours holds secrets that PostgreSQL does not need, and settings (LC_*, PG*)
 * that would change what it does and prints.
 */
export const PROGRAM_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
}

/**
 * Runs a program in a session of its own, which the terminal's Ctrl-C does not reach. `output` is of stdout and stderr.
 */
export function runProgram(
  file: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<{ ok: boolean; output: string }> {
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    const child = spawn(file, args, { env: PROGRAM_ENV, cwd: '/', detached: true, ...options, stdio: [...stdio] })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream!.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    child.once('error', reject)
    child.once('close', (code) => resolve({ ok: code === 0, output }))
  })
}

/** False for a process that is gone, and for one that this account may not signal. 0 is no signal, and only asks. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0 = 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}
