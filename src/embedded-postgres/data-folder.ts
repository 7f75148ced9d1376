/**
 * The data folder holds:
 *   postgres/            the cluster, mode 0700, owned by the account that PostgreSQL runs as
 *   postgres-password    the generated password, 0600, ours
 *   postgres.log         the server's log, 0600, ours
 *   postgres-new-PID/    a first start in progress, or the remains of an interrupted one
 */

import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { sendSignal } from './run-program.ts'

export interface DataFolder {
  /** As the user gave it, for messages. */
  readonly name: string
  readonly clusterDir: string
  readonly passwordFile: string
  readonly logFile: string
  /** Of a first start by this process. */
  readonly staging: string
}

const STAGING = 'postgres-new-'

/** Makes the folder where it is missing. Throws errors of the file system. */
export async function openDataFolder(name: string): Promise<DataFolder> {
  const path = resolve(name)
  // As root PostgreSQL runs under another account, which has to pass through this folder.
  await mkdir(path, { recursive: true, mode: process.geteuid?.() === 0 ? 0o711 : 0o700 })
  if (!(await stat(path)).isDirectory()) throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' })
  for (const entry of await readdir(path)) {
    const pid = Number(entry.slice(STAGING.length))
    // Another process may be in its first start at the same time.
    if (entry.startsWith(STAGING) && (pid === process.pid || !sendSignal(pid))) await removeStaging(join(path, entry))
  }
  const clusterDir = join(path, 'postgres')
  const files = { passwordFile: join(path, 'postgres-password'), logFile: join(path, 'postgres.log') }
  return { name, clusterDir, ...files, staging: join(path, `${STAGING}${process.pid}`) }
}

/** An initdb of a killed start may still be writing, hence the retries; it ends by itself when its folder is gone. */
export function removeStaging(staging: string): Promise<void> {
  return rm(staging, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
}
