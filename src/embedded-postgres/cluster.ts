/** The database cluster on the disk: made on the first start, checked on each later one. */

import { randomBytes } from 'node:crypto'
import { mkdir, open, rename, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode } from '../runtime/error-code.ts'
import { makeOnce, readIfThere } from '../runtime/lasting-file.ts'
import { type Account, chooseAccount } from './account.ts'
import type { Binaries } from './binaries.ts'
import { type DataFolder, removeStaging } from './data-folder.ts'
import { EmbeddedPostgresError, explainOutput } from './failure.ts'
import { runProgram } from './run-program.ts'

/** Everything that a start of the server needs to know. */
export interface Cluster {
  readonly folder: DataFolder
  readonly binaries: Binaries
  readonly account: Account
  readonly password: string
  readonly settings: Readonly<Record<string, string>>
}

/** The superuser and the application's role have the same generated password. */
export const SUPERUSER = 'postgres'
export const APPLICATION_ROLE = 'heartbeat'
export const DATABASE = 'heartbeat'

/** They win over the cluster's postgresql.conf. The first three keep the promise that an acknowledged ping is committed. */
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_buffers: '256MB',
  // Fewer checkpoints mean fewer full page images. Replaying 2 GB after a crash takes seconds.
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  log_checkpoints: 'off',
  // Our statements are short: compiling one costs more than it saves.
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
  logging_collector: 'off',
}

interface Preparation extends Pick<Cluster, 'folder' | 'binaries' | 'settings'> {
  readonly note: (line: string) => void
  readonly signal: AbortSignal | undefined
}

/** Makes the cluster on the first start, or checks the existing one. Starts no server. Throws EmbeddedPostgresError. */
export async function prepareCluster(start: Preparation): Promise<Cluster> {
  const { folder, binaries } = start
  const { name } = folder
  const settings = { ...SETTINGS, ...start.settings }
  let password = (await readIfThere(folder.passwordFile))?.trim() || null
  const version = await readVersion(folder)
  if (version === null) {
    start.note(`setting up the embedded PostgreSQL ${binaries.majorVersion} in ${name} (first start)`)
    password ??= (await makeOnce(folder.passwordFile, `${randomBytes(24).toString('base64url')}\n`)).trim()
    await createCluster({ ...start, settings }, password)
  } else if (version !== binaries.majorVersion)
    throw new EmbeddedPostgresError(
      'wrong-version',
      `data folder ${name} holds a PostgreSQL ${version} database, and this is PostgreSQL ${binaries.majorVersion}: ` +
        `move it with pg_dump of PostgreSQL ${version} and DATABASE_URL, or set DATA_DIR to a new folder`,
    )
  if (password === null)
    throw new EmbeddedPostgresError(
      'not-ours',
      `${name}/postgres-password is missing, the password of the database beside it: ` +
        'restore that file, or set DATA_DIR to another folder',
    )
  return { folder, binaries, account: await chooseAccount(folder.clusterDir), password, settings }
}

/** The major version of the existing cluster; null when there is none, or an empty folder in its place. */
async function readVersion({ clusterDir, name }: DataFolder): Promise<string | null> {
  try {
    const version = await readIfThere(join(clusterDir, 'PG_VERSION'))
    if (version !== null) return version.trim()
    await rmdir(clusterDir)
    return null
  } catch (error) {
    const code = errorCode(error) ?? ''
    if (code === 'ENOENT') return null
    if (code === 'EACCES')
      throw new EmbeddedPostgresError(
        'not-ours',
        `the database in data folder ${name} belongs to another account than uid ${process.geteuid?.()}: ` +
          'start as root or as that account, or set DATA_DIR to another folder',
        error,
      )
    if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(code)) throw error
    throw new EmbeddedPostgresError(
      'not-ours',
      `${name}/postgres is not a PostgreSQL database (it has no PG_VERSION): move it away, or set DATA_DIR to another folder`,
    )
  }
}

/**
 * Makes the cluster in a staging folder and renames it into its place, so that a start that is killed half way leaves
 * no cluster. Of two first starts at the same time the faster one makes the cluster.
 */
async function createCluster({ folder, binaries, settings, signal }: Preparation, password: string): Promise<void> {
  const { staging } = folder
  await mkdir(staging, { mode: 0o700 })
  try {
    // A copy of the password that the account can read.
    const passwordFile = join(staging, 'password')
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600 })
    const account = await chooseAccount(staging)
    const data = join(staging, 'data')
    const args = [
      ...['-D', data, '-U', SUPERUSER, `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--encoding=UTF8'],
      // PostgreSQL brings this locale itself, so that every machine sorts and folds alike.
      ...['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--no-instructions'],
      ...(settings.fsync === 'off' ? ['--no-sync'] : []),
    ]
    const { ok, output } = await runProgram(binaries.initdb, args, { ...account, ...(signal && { signal }) })
    if (!ok) throw explainOutput(output, { dataDir: folder.name, program: 'initdb' })
    await rename(data, folder.clusterDir).catch((error) => {
      if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error
    })
    await using parent = await open(dirname(folder.clusterDir), 'r')
    await parent.sync()
  } finally {
    await removeStaging(staging)
  }
}
