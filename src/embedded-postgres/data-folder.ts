/**
 * The data folder holds:
 *   postgres/            the cluster, mode 0700, owned by the account that PostgreSQL runs as
 *   postgres-password    the generated password, 0600, ours
 *   postgres.log         the server's log, 0600, ours
 *   postgres.lock        which process uses the folder: its pid and identity
 *   postgres-lib/        links to shared libraries, only where they cannot be made in the package
 *   postgres-new-XXXX/   a first start in progress, or the remains of an interrupted one
 */

import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { systemClock } from '../runtime/clock.ts'
import { errorCode } from '../runtime/error-code.ts'
import { EmbeddedPostgresError } from './failure.ts'
import { identifyProcess } from './processes.ts'

export interface DataFolder {
  /** As the user gave it, for messages. */
  readonly name: string
  readonly clusterDir: string
  readonly logFile: string
  readonly linksDir: string
  /** Makes a folder for a first start. */
  makeStaging(): Promise<string>
  /** Null when there is none. */
  readPassword(): Promise<string | null>
  /** Makes a new random password, and returns it when it is on the disk. */
  makePassword(): Promise<string>
  /** False when the folder was removed, or is used by another process since. */
  isStillOurs(): Promise<boolean>
  /** Removes the lock. */
  release(): Promise<void>
}

/** Makes the folder where it is missing, and takes its lock. Throws EmbeddedPostgresError `in-use`, and errors of the file system. */
export async function openDataFolder(name: string): Promise<DataFolder> {
  const path = resolve(name)
  const passwordFile = join(path, 'postgres-password')
  // As root PostgreSQL runs under another account, which has to pass through this folder.
  await mkdir(path, { recursive: true, mode: process.geteuid?.() === 0 ? 0o711 : 0o700 })
  if (!(await stat(path)).isDirectory()) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' })
  const lock = await lockFolder(path, name)
  for (const entry of await readdir(path)) if (entry.startsWith('postgres-new-')) await removeStaging(join(path, entry))
  return {
    name,
    clusterDir: join(path, 'postgres'),
    logFile: join(path, 'postgres.log'),
    linksDir: join(path, 'postgres-lib'),
    async makeStaging() {
      const staging = join(path, `postgres-new-${randomBytes(4).toString('hex')}`)
      await mkdir(staging, { mode: 0o700 })
      return staging
    },
    readPassword: async () => (await readIfThere(passwordFile))?.trim() || null,
    async makePassword() {
      const password = randomBytes(24).toString('base64url')
      await rm(`${passwordFile}.new`, { force: true })
      await writeNewFile(`${passwordFile}.new`, `${password}\n`)
      await rename(`${passwordFile}.new`, passwordFile)
      return password
    },
    ...lock,
  }
}

/** An initdb of a killed start may still be writing, hence the retries; it ends by itself when its folder is gone. */
export function removeStaging(staging: string): Promise<void> {
  return rm(staging, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
}

/**
 * Lets one process of ours use a folder. The file names it by pid and identity, so the lock of a killed process is recognised
 * even when another process has the same pid now. (Two machines, or two containers with separate pids, are not detected.)
 */
async function lockFolder(path: string, name: string): Promise<Pick<DataFolder, 'isStillOurs' | 'release'>> {
  const file = join(path, 'postgres.lock')
  const ours = `${process.pid} ${await identifyProcess(process.pid)}\n`
  const isStillOurs = async () => (await readHolder(file)) === ours
  for (;;) {
    try {
      await writeNewFile(file, ours)
      return { isStillOurs, release: async () => void ((await isStillOurs()) && (await rm(file, { force: true }))) }
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
    const held = await readHolder(file)
    if (held === null) continue
    const [pid = '', ...identity] = held.trim().split(' ')
    if (pid !== '' && (await identifyProcess(Number(pid))) === identity.join(' '))
      throw new EmbeddedPostgresError(
        'in-use',
        `data folder ${name} is in use by process ${pid}: stop it, or set DATA_DIR to another folder`,
      )
    await removeStaleLock(file, held)
  }
}

/** Null when the file is gone. A holder writes its name right after it has made the file, so an empty file is read again. */
async function readHolder(file: string): Promise<string | null> {
  for (let tries = 0; ; tries += 1) {
    const held = await readIfThere(file)
    if (held === null || held.endsWith('\n') || tries === 20) return held
    await systemClock.sleep(10)
  }
}

/** When two starts find the same stale lock, the slower one must not remove the lock of the faster one. */
async function removeStaleLock(file: string, held: string): Promise<void> {
  const aside = `${file}.${process.pid}`
  try {
    await rename(file, aside)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw error
  }
  const taken = await readFile(aside, 'utf8')
  await rm(aside, { force: true })
  if (taken !== held) await writeNewFile(file, taken).catch(() => {})
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
