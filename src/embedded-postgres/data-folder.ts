import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { systemClock } from '../runtime/clock.ts'
import { errorCode } from '../runtime/error-code.ts'
import { EmbeddedPostgresError, explainFolderError } from './failure.ts'
import { identifyProcess } from './processes.ts'

/**
 * What lies in the data folder:
 *   postgres/            the cluster, mode 0700, owned by the account that PostgreSQL runs as
 *   postgres-password    the generated password, 0600, ours
 *   postgres.log         what the server says, 0600, ours
 *   postgres.lock        who uses the folder: pid and identity of our process
 *   postgres-lib/        links to shared libraries, only where they cannot be made in the package
 *   postgres-new-XXXX/   a first start in progress, or what an interrupted one left behind
 */
export type DataFolder = {
  /** As it was given, for messages. */
  name: string
  clusterDir: string
  logFile: string
  linksDir: string
  makeStaging(): Promise<string>
  readPassword(): Promise<string | null>
  /** Keeps a new random password, on the disk before it returns it. */
  makePassword(): Promise<string>
  /** False when somebody removed the folder under us, or made it anew for another process. */
  isStillOurs(): Promise<boolean>
  release(): Promise<void>
}

/** Makes the folder where it is missing and takes its lock; throws EmbeddedPostgresError when that cannot be done. */
export async function openDataFolder(name: string): Promise<DataFolder> {
  const path = resolve(name)
  const passwordFile = join(path, 'postgres-password')
  try {
    await makeFolder(path)
    const lock = await lockFolder(path, name)
    await removeStagings(path)
    return {
      name,
      clusterDir: join(path, 'postgres'),
      logFile: join(path, 'postgres.log'),
      linksDir: join(path, 'postgres-lib'),
      makeStaging: () => makeStaging(path),
      readPassword: () => readPassword(passwordFile),
      makePassword: () => makePassword(passwordFile),
      ...lock,
    }
  } catch (error) {
    throw explainFolderError(error, name)
  }
}

async function makeFolder(path: string): Promise<void> {
  // As root PostgreSQL runs under another account, which has to pass through; nothing in the folder opens to it by that.
  await mkdir(path, { recursive: true, mode: process.geteuid?.() === 0 ? 0o711 : 0o700 })
  if (!(await stat(path)).isDirectory()) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' })
}

/**
 * One process of ours per folder. The file names its holder by pid and start time, so what a killed process left is told
 * from a live holder even when the pid was given to somebody else since. (Two machines, or two containers with separate
 * pids, that share a folder are not seen.)
 */
async function lockFolder(path: string, name: string): Promise<Pick<DataFolder, 'isStillOurs' | 'release'>> {
  const file = join(path, 'postgres.lock')
  const mine = `${process.pid} ${await identifyProcess(process.pid)}\n`
  for (;;) {
    try {
      await writeNewFile(file, mine)
      const isStillOurs = async () => (await readHolder(file)) === mine
      return {
        isStillOurs,
        release: async () => {
          if (await isStillOurs()) await rm(file, { force: true })
        },
      }
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

/** Null when the file has gone. A holder writes its name right after making the file, so an empty one is given a moment. */
async function readHolder(file: string): Promise<string | null> {
  for (let tries = 0; ; tries += 1) {
    try {
      const held = await readFile(file, 'utf8')
      if (held.endsWith('\n') || tries === 20) return held
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return null
      throw error
    }
    await systemClock.sleep(10)
  }
}

/** Of two starts that found the same stale lock, the slower must not remove what the faster has put in its place. */
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

async function removeStagings(path: string): Promise<void> {
  const left = (await readdir(path)).filter((entry) => entry.startsWith('postgres-new-'))
  // An initdb of a killed start may still be writing, hence the retries; it ends by itself when its folder is gone.
  await Promise.all(
    left.map((entry) => rm(join(path, entry), { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })),
  )
}

async function makeStaging(path: string): Promise<string> {
  const staging = join(path, `postgres-new-${randomBytes(4).toString('hex')}`)
  await mkdir(staging, { mode: 0o700 })
  return staging
}

async function readPassword(file: string): Promise<string | null> {
  try {
    return (await readFile(file, 'utf8')).trim() || null
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

async function makePassword(file: string): Promise<string> {
  const password = randomBytes(24).toString('base64url')
  await rm(`${file}.new`, { force: true })
  await writeNewFile(`${file}.new`, `${password}\n`)
  await rename(`${file}.new`, file)
  return password
}

/** Writes a file of mode 0600 that must not exist yet, and waits until it is on the disk. */
export async function writeNewFile(file: string, text: string): Promise<void> {
  await using handle = await open(file, 'wx', 0o600)
  await handle.writeFile(text)
  await handle.sync()
}
