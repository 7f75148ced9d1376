/** One file of the spool: made, and read in pieces of a bounded size. Its records have no index in memory. */

import { join } from 'node:path'
import { type File, type Files, readAt, sync, writeAt } from './files.ts'
import { decodeRecord, encodeHeader, HEADER_BYTES, type Header } from './format.ts'

/** A file and the records in it: the positions from `first` up to, but not with, `next`, in its first `bytes` bytes. */
export interface Segment {
  readonly path: string
  readonly first: number
  next: number
  bytes: number
}

/** The one that is written; null: it is not on the disk yet. */
export interface NewestSegment extends Segment {
  readonly file: File | null
}

/** Names sort by position. */
const NAME = /^(\d{16})\.segment$/
export const segmentPath = (folder: string, first: number) => join(folder, `${String(first).padStart(16, '0')}.segment`)
export const positionOfName = (name: string) => (NAME.test(name) ? Number(name.slice(0, 16)) : null)

/** Durable when it resolves. Under its name a segment has its whole header at once, so a wrong one is never the trace of a crash. */
export async function createSegment(
  files: Files,
  folder: string,
  header: Header,
): Promise<NewestSegment & { file: File }> {
  const path = segmentPath(folder, header.first)
  const file = await files.open(`${path}.new`, 'w', 0o600)
  try {
    await writeAt(file, encodeHeader(header), 0)
    await sync(file.datasync())
    await files.rename(`${path}.new`, path)
    await sync(files.syncFolder(folder))
  } catch (error) {
    await file.close().catch(() => {})
    await files.unlink(`${path}.new`).catch(() => {})
    throw error
  }
  return { path, file, first: header.first, next: header.first, bytes: HEADER_BYTES }
}

export interface Entry {
  readonly position: number
  readonly record: Buffer
  /** Where the next record begins. */
  readonly end: number
}

/** Where reading ended early. `cutOff`: by what a crash during an append leaves at the end of a file. */
export interface Fault {
  readonly offset: number
  readonly kind: 'cut off' | 'damaged'
}

const CHUNK_BYTES = 65_536

/** Records from `offset` up to `end`, whose first has `position`; in memory there is one piece, or the longest record. */
export async function* readEntries(
  file: File,
  { offset, end, position }: { offset: number; end: number; position: number },
): AsyncGenerator<readonly Entry[], Fault | null> {
  let wanted = CHUNK_BYTES
  let isShorter = false
  while (offset < end) {
    const asked = Math.min(wanted, end - offset)
    const chunk = await readAt(file, offset, asked)
    if (chunk.length < asked) {
      isShorter = true
      end = offset + chunk.length
    }
    wanted = CHUNK_BYTES
    const entries: Entry[] = []
    let at = 0
    let kind: Fault['kind'] | null = null
    while (at < chunk.length) {
      const decoded = decodeRecord(chunk, at, position)
      if ('record' in decoded) {
        at += decoded.bytes
        entries.push({ position, record: decoded.record, end: offset + at })
        position += 1
      } else if ('short' in decoded) {
        if (offset + at + decoded.short > end) kind = 'cut off'
        wanted = Math.max(CHUNK_BYTES, decoded.short)
        break
      } else {
        const isLast = decoded.bad === 'payload' && offset + at + decoded.bytes === end
        kind = isLast || (await isZero(file, offset + at, end)) ? 'cut off' : 'damaged'
        break
      }
    }
    offset += at
    if (entries.length > 0) yield entries
    if (kind !== null) return { offset, kind }
  }
  return isShorter ? { offset, kind: 'cut off' } : null
}

/** A file system may have written the new length of a file, but none of its bytes, when the machine went down. */
async function isZero(file: File, offset: number, end: number): Promise<boolean> {
  while (offset < end) {
    const chunk = await readAt(file, offset, Math.min(CHUNK_BYTES, end - offset))
    if (chunk.length === 0 || chunk.some((byte) => byte !== 0)) return false
    offset += chunk.length
  }
  return true
}
