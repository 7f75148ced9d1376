import { open, readdir, readFile, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode } from '../runtime/error-code.ts'
import { type Account, chooseAccount } from './account.ts'
import type { Binaries } from './binaries.ts'
import type { DataFolder } from './data-folder.ts'
import { writeNewFile } from './data-folder.ts'
import { EmbeddedPostgresError, explainOutput } from './failure.ts'
import { runProgram } from './processes.ts'

/** Everything that a start of the server needs to know. */
export type Cluster = {
  folder: DataFolder
  binaries: Binaries
  account: Account
  settings: Record<string, string>
  note: (line: string) => void
}

/** The superuser; nothing listens but 127.0.0.1 with this and the application's role, both with the generated password. */
export const SUPERUSER = 'postgres'
export const APPLICATION_ROLE = 'heartbeat'
export const DATABASE = 'heartbeat'

/**
 * Our promise is that an acknowledged ping is committed: the first three stay on, whatever somebody wrote into the
 * cluster's own postgresql.conf. (A caller's settings come after these, for throw-away test data.)
 */
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '256MB',
  // Fewer checkpoints mean fewer full page images; replaying 2 GB after a crash takes seconds.
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  log_checkpoints: 'off',
  // Our statements are short; compiling one costs more than it saves.
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
  logging_collector: 'off',
}

type Preparation = Omit<Cluster, 'account'> & { signal: AbortSignal | undefined }

/**
 * Makes the cluster on the first start, or checks the one that is there, and returns with the account that runs it and
 * the password. Nothing of it is running yet.
 */
export async function prepareCluster(start: Preparation): Promise<{ cluster: Cluster; password: string }> {
  const { folder, binaries, note } = start
  const settings = { ...SETTINGS, ...start.settings }
  const kept = await folder.readPassword()
  const version = await readVersion(folder)
  if (version === null) {
    note(`setting up the embedded PostgreSQL ${binaries.majorVersion} in ${folder.name} (first start)`)
    const password = kept ?? (await folder.makePassword())
    return { cluster: await createCluster({ ...start, settings }, password), password }
  }
  if (version !== binaries.majorVersion)
    throw new EmbeddedPostgresError(
      'wrong-version',
      `data folder ${folder.name} holds a PostgreSQL ${version} database, and this is PostgreSQL ${binaries.majorVersion}: ` +
        `move it with pg_dump of PostgreSQL ${version} and DATABASE_URL, or set DATA_DIR to a new folder`,
    )
  const account = await chooseAccount(folder.clusterDir, binaries, folder.name)
  const cluster = { folder, binaries, account, settings, note }
  if (kept !== null) return { cluster, password: kept }
  note(`setting a new password for the embedded PostgreSQL (${folder.name}/postgres-password is missing)`)
  return { cluster, password: await replacePassword(cluster) }
}

/** The major version of the cluster that is there, null when there is none. */
async function readVersion(folder: DataFolder): Promise<string | null> {
  const { clusterDir, name } = folder
  try {
    return (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim()
  } catch (error) {
    if (errorCode(error) === 'EACCES')
      throw new EmbeddedPostgresError(
        'not-ours',
        `the database in data folder ${name} belongs to another account than uid ${process.geteuid?.()}: ` +
          'start as root or as that account, or set DATA_DIR to another folder',
        error,
      )
    if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENOTDIR') throw error
  }
  try {
    const entries = await readdir(clusterDir)
    if (entries.length === 0) await rmdir(clusterDir)
    else throw notACluster(name)
  } catch (error) {
    if (errorCode(error) === 'ENOTDIR') throw notACluster(name)
    if (errorCode(error) !== 'ENOENT') throw error
  }
  return null
}

const notACluster = (name: string) =>
  new EmbeddedPostgresError(
    'not-ours',
    `${name}/postgres is not a PostgreSQL database (it has no PG_VERSION): move it away, or set DATA_DIR to another folder`,
  )

/**
 * Builds the cluster beside its place and renames it in, so that a start that is killed half way leaves nothing that
 * the next one would take for a database.
 */
async function createCluster(start: Preparation, password: string): Promise<Cluster> {
  const { folder, binaries, settings, note, signal } = start
  const staging = await folder.makeStaging()
  try {
    // A copy of the password, for the account to read; it goes with the staging folder.
    const passwordFile = join(staging, 'password')
    await writeNewFile(passwordFile, `${password}\n`)
    const account = await chooseAccount(staging, binaries, folder.name)
    const data = join(staging, 'data')
    const { file, args, ...ids } = account.command(binaries.initdb, [
      ...['-D', data, '-U', SUPERUSER, `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--encoding=UTF8'],
      // The one UTF-8 locale that PostgreSQL carries itself, so that every machine sorts and folds alike.
      ...['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--no-instructions'],
      ...(settings.fsync === 'off' ? ['--no-sync'] : []),
    ])
    const { ok, output } = await runProgram(file, args, { ...ids, env: binaries.env, ...(signal && { signal }) })
    if (!ok) throw explainOutput(output, { dataDir: folder.name, program: 'initdb' })
    await rename(data, folder.clusterDir)
    await syncFolder(dirname(folder.clusterDir))
    return { folder, binaries, account, settings, note }
  } finally {
    await rm(staging, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}

async function syncFolder(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

/** Single-user mode needs no password; the statements go through stdin, and a failing one is not logged. */
async function replacePassword({ folder, binaries, account }: Cluster): Promise<string> {
  const password = await folder.makePassword()
  const { file, args, ...ids } = account.command(binaries.postgres, [
    ...['--single', '-D', folder.clusterDir, '-c', 'log_min_error_statement=panic', 'postgres'],
  ])
  // The application's role is missing when the very first start was cut short: that statement then fails, harmlessly.
  const input = [SUPERUSER, APPLICATION_ROLE].map((role) => `alter role ${role} password '${password}'\n`).join('')
  const { ok, output } = await runProgram(file, args, { ...ids, env: binaries.env, input })
  if (!ok) throw explainOutput(output, { dataDir: folder.name, program: 'setting a new password' })
  return password
}
