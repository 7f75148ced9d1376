/** Opens a spool: an append-only log on disk for what cannot be written elsewhere at present. README.md says what it promises. */

import { dirname, join, resolve } from 'node:path'
import { diskFiles, type Files, sync } from './files.ts'
import { HEADER_BYTES } from './format.ts'
import { recover } from './recover.ts'
import { runSpool, type Spool, type SpoolOptions } from './spool.ts'

const DEFAULTS = { segmentBytes: 4 * 2 ** 20, files: diskFiles }
type Given = Omit<SpoolOptions, keyof typeof DEFAULTS> & Partial<SpoolOptions>

/** Rejects with SpoolRejected, which says what is wrong with the folder, or with the error of the file system. */
export async function openSpool(given: Given): Promise<Spool> {
  const options = { ...DEFAULTS, ...given, folder: resolve(given.folder) }
  const { files, folder, segmentBytes, onProblem } = options
  if (segmentBytes <= HEADER_BYTES) throw new RangeError(`segmentBytes must be more than ${HEADER_BYTES}`)
  await makeFolder(files, folder)
  const unlock = await files.lock(join(folder, 'lock'))
  try {
    const spool = runSpool(options, await recover(files, folder, onProblem), unlock)
    // Removes the oldest files without a record. Where that fails the spool is broken, and its records can be read.
    await spool.forget(0).catch(() => {})
    return spool
  } catch (error) {
    unlock()
    throw error
  }
}

async function makeFolder(files: Files, folder: string): Promise<void> {
  const made = await files.mkdir(folder, { recursive: true, mode: 0o700 })
  if (made === undefined) return
  for (let path = folder; path.length >= made.length; path = dirname(path)) await sync(files.syncFolder(dirname(path)))
}
