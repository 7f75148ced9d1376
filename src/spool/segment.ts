/** One file of the spool: made and read. Its records have no index in memory. */

import { join } from 'node:path'
import { type File, type Files, readAt, sync, writeAt } from './files.ts'
import { decodeRecord, encodeHeader, type Fault, HEADER_BYTES, type Header, RECORD_HEADER_BYTES } from './format.ts'

/** A file and the records in it that can be read: the positions from `first` up to, but not with, `next`. */
export interface Segment {
  readonly path: string
  readonly first: number
  next: number
  /** Also those behind a damaged record. */
  bytes: number
  /** Whether the file has bytes behind `next` that cannot be read: it is renamed, not deleted. */
  isDamaged: boolean
}

/** Names sort by position. With sixteen digits that are not led by 0 a position would not be a safe integer. */
const NAME = /^0\d{15}\.segment$/
export const positionOfName = (name: string) => (NAME.test(name) ? Number(name.slice(0, 16)) : null)

/** One that is not on the disk yet. */
export const planSegment = (folder: string, first: number): Segment => ({
  path: join(folder, `${String(first).padStart(16, '0')}.segment`),
  first,
  next: first,
  bytes: 0,
  isDamaged: false,
})

/** Durable when it resolves. The header is whole before the file has its name. */
export async function createSegment(files: Files, folder: string, header: Header) {
  const segment = { ...planSegment(folder, header.first), bytes: HEADER_BYTES }
  const file = await files.open(`${segment.path}.new`, 'w', 0o600)
  try {
    await writeAt(file, encodeHeader(header), 0)
    await sync(file.datasync())
    await files.rename(`${segment.path}.new`, segment.path)
    await sync(files.syncFolder(folder))
  } catch (error) {
    await file.close().catch(() => {})
    await files.unlink(`${segment.path}.new`).catch(() => {})
    throw error
  }
  return { segment, file }
}

export interface Positioned {
  readonly position: number
  readonly record: Buffer
}

/** Where a record begins. */
export interface Place {
  readonly offset: number
  readonly position: number
}

const PIECE_BYTES = 65_536

/**
 * Gives `take` the records from a place on, in the first `size` bytes of a file, until it returns false. Resolves with
 * the place behind the last record that was taken, and with what is wrong there.
 */
export async function readRecords(
  file: File,
  { offset, position }: Place,
  size: number,
  take: (record: Positioned) => boolean,
): Promise<Place & { readonly fault: Fault | null }> {
  for (let wanted = PIECE_BYTES; ; ) {
    const bytes = await readAt(file, offset, Math.min(wanted, size - offset))
    const isRest = bytes.length < wanted
    let at = 0
    for (; at < bytes.length; position += 1) {
      const record = decodeRecord(bytes, at, position)
      if (record === 'cut off' && !isRest) break
      if (typeof record === 'string') return { offset: offset + at, position, fault: record }
      if (!take({ position, record })) return { offset: offset + at, position, fault: null }
      at += RECORD_HEADER_BYTES + record.length
    }
    offset += at
    if (isRest) return { offset, position, fault: null }
    // A record that is longer than a piece.
    wanted = at === 0 ? wanted * 2 : PIECE_BYTES
  }
}
