/** Opens a spool: an append-only log on disk for what cannot be written elsewhere at present. README.md says what it promises. */

import { dirname, join, resolve } from 'node:path'
import { diskFiles, type Files, sync } from './files.ts'
import { HEADER_BYTES } from './format.ts'
import { type Problem, recover } from './recover.ts'
import { runSpool, type Spool } from './spool.ts'

export interface SpoolOptions {
  /** Made if it is missing. One process at a time uses it. */
  readonly folder: string
  /** All files together. */
  readonly maxBytes: number
  /** One file, and so the most that one append may have. */
  readonly segmentBytes?: number
  readonly onProblem: (problem: Problem) => void
  readonly files?: Files
}

const SEGMENT_BYTES = 4 * 2 ** 20

/** Rejects with SpoolRejected, which says what is wrong with the folder, or with the error of the file system. */
export async function openSpool({ files = diskFiles, ...options }: SpoolOptions): Promise<Spool> {
  const { maxBytes, segmentBytes = SEGMENT_BYTES, onProblem } = options
  if (segmentBytes <= HEADER_BYTES) throw new RangeError(`segmentBytes must be more than ${HEADER_BYTES}`)
  const folder = resolve(options.folder)
  await makeFolder(files, folder)
  const unlock = await files.lock(join(folder, 'lock'))
  try {
    const recovered = await recover(files, folder, onProblem)
    return runSpool({ files, folder, maxBytes, segmentBytes, onProblem, unlock }, recovered)
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
