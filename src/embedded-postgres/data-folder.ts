/**
 * The data folder holds:
 *   postgres/            the cluster, mode 0700, owned by the account that PostgreSQL runs as
 *   postgres-password    the generated password, 0600, ours
 *   postgres.log         the server's log, 0600, ours
 *   postgres-new-PID/    a first start in progress, or the remains of an interrupted one
 */

import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { errorCode } from '../runtime/error-code.ts'

export interface DataFolder {
  /** As the user gave it, for messages. */
  readonly name: string
  readonly clusterDir: string
  readonly logFile: string
  /** Makes a folder for a first start. */
  makeStaging(): Promise<string>
  /** Null when there is none. */
  readPassword(): Promise<string | null>
  /** Returns a new random password when it is on the disk, or the password of another first start at the same time. */
  makePassword(): Promise<string>
}

const STAGING = 'postgres-new-'

/** Makes the folder where it is missing. Throws errors of the file system. */
export async function openDataFolder(name: string): Promise<DataFolder> {
  const path = resolve(name)
  const passwordFile = join(path, 'postgres-password')
  const readPassword = async () => (await readIfThere(passwordFile))?.trim() || null
  // As root PostgreSQL runs under another account, which has to pass through this folder.
  await mkdir(path, { recursive: true, mode: process.geteuid?.() === 0 ? 0o711 : 0o700 })
  if (!(await stat(path)).isDirectory()) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' })
  for (const entry of await readdir(path))
    if (entry.startsWith(STAGING) && !isOfAnother(Number(entry.slice(STAGING.length))))
      await removeStaging(join(path, entry))
  return {
    name,
    clusterDir: join(path, 'postgres'),
    logFile: join(path, 'postgres.log'),
    readPassword,
    async makeStaging() {
      const staging = join(path, `${STAGING}${process.pid}`)
      await mkdir(staging, { mode: 0o700 })
      return staging
    },
    async makePassword() {
      const draft = `${passwordFile}.${process.pid}`
      const password = randomBytes(24).toString('base64url')
      await rm(draft, { force: true })
      await writeNewFile(draft, `${password}\n`)
      try {
        await link(draft, passwordFile)
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error
      } finally {
        await rm(draft, { force: true })
      }
      return (await readPassword()) ?? password
    },
  }
}

/** Whether another process that lives, perhaps a first start at the same time, has the pid. */
function isOfAnother(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

/** An initdb of a killed start may still be writing, hence the retries; it ends by itself when its folder is gone. */
export function removeStaging(staging: string): Promise<void> {
  return rm(staging, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
}

/** Null when there is no such file. */
export async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

/** Writes a file of mode 0600 that must not exist yet, and waits until it is on the disk. */
export async function writeNewFile(file: string, text: string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(text)
  await handle.sync()
}
