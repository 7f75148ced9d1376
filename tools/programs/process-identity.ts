import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/**
 * A text that differs for a later process with the same pid: the start time and, on Linux, the id of the boot. Null when there
 * is no such process, or only a zombie.
 */
export async function identifyProcess(pid: number): Promise<string | null> {
  if (process.platform !== 'linux') return (await askPs(pid)) || null
  const [line, boot] = await Promise.all([readProc(`${pid}/stat`), readProc('sys/kernel/random/boot_id')])
  // The second field is the program's name in brackets, which may hold spaces and brackets.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  return ['', 'Z', 'X'].includes(fields[0]!) ? null : `${boot.trim()}/${fields[19]}`
}

/** Empty when the process is gone. */
async function readProc(file: string): Promise<string> {
  try {
    return await readFile(`/proc/${file}`, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return ''
    throw error
  }
}

async function askPs(pid: number): Promise<string> {
  const env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
  return promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)], { env }).then(
    ({ stdout }) => stdout.trim(),
    () => '',
  )
}
