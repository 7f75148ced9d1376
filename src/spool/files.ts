/** What the spool needs of a file system, so that tests can have one that fails. */

import { mkdir, open, readdir, rename, unlink } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { errorCode } from '../runtime/error-code.ts'
import { SpoolRejected, SyncFailed } from './errors.ts'

export interface File extends AsyncDisposable {
  read(into: Buffer, offset: number, length: number, position: number): Promise<{ bytesRead: number }>
  write(from: Buffer, offset: number, length: number, position: number): Promise<{ bytesWritten: number }>
  truncate(length: number): Promise<void>
  datasync(): Promise<void>
  stat(): Promise<{ size: number }>
  close(): Promise<void>
}

export interface Files {
  mkdir(path: string, options: { recursive: true; mode: number }): Promise<string | undefined>
  /** The names in a folder. */
  readdir(path: string): Promise<string[]>
  open(path: string, flags: 'r' | 'r+' | 'w', mode?: number): Promise<File>
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  /** Makes created, renamed and deleted names of a folder durable. */
  syncFolder(path: string): Promise<void>
  /** Holds a lock until the returned function is called or the process ends; rejects with SpoolRejected when another one holds it. */
  lock(path: string): Promise<() => void>
}

export const diskFiles: Files = { mkdir, readdir, open, rename, unlink, syncFolder, lock }

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  await folder.sync()
}

/**
 * SQLite's lock on an empty database: a lock of the kernel that ends with the process, also between containers that
 * share the volume, and between two spools of one process. Node has no other way to one. A pid file means nothing in
 * another container; a socket cannot be taken over without a race.
 */
async function lock(path: string): Promise<() => void> {
  // With 'wx' an existing file is not opened: closing it would end the lock of another spool of this process.
  await open(path, 'wx', 0o600).then(
    (file) => file.close(),
    (error) => {
      if (errorCode(error) !== 'EEXIST') throw error
    },
  )
  const database = new DatabaseSync(path)
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY)) throw error
    throw new SpoolRejected(`another process uses this folder: ${path} is locked`)
  }
  return () => database.close()
}

const SQLITE_BUSY = 5

/** The disk has no room, or the account has used up its quota. */
export const isDiskFull = (error: unknown) => ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '')

/** What a failed fsync leaves on the disk is unknown, whatever its reason was: its error never counts as a full disk. */
export async function sync(what: Promise<void>): Promise<void> {
  await what.catch((cause) => {
    throw new SyncFailed('fsync failed', { cause })
  })
}

/** Fewer bytes than `length` only at the end of the file. */
export async function readAt(file: File, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length)
  let used = 0
  while (used < length) {
    const { bytesRead } = await file.read(bytes, used, length - used, position + used)
    if (bytesRead === 0) break
    used += bytesRead
  }
  return bytes.subarray(0, used)
}

export async function writeAt(file: File, bytes: Buffer, position: number): Promise<void> {
  for (let used = 0; used < bytes.length; ) {
    used += (await file.write(bytes, used, bytes.length - used, position + used)).bytesWritten
  }
}
