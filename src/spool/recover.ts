/** What a folder holds when a spool is opened. Nothing but a record that was cut off is removed. */

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type File, type Files, isDiskFull, readAt, sync } from './files.ts'
import { decodeHeader, type Fault, HEADER_BYTES, RECORD_HEADER_BYTES } from './format.ts'
import { createSegment, planSegment, positionOfName, readRecords, type Segment } from './segment.ts'

/** What the log should say. Offsets and sizes are in bytes. */
export type Problem =
  /** The last record of the newest file was not whole, and was removed. */
  | { readonly kind: 'cut off'; readonly file: string; readonly offset: number; readonly bytes: number }
  /**
   * The `bytes` from `offset` on cannot be read: they are damaged, or of another format. The file has the name `keptAs`
   * when the records before them are forgotten.
   */
  | {
      readonly kind: 'damaged'
      readonly file: string
      readonly offset: number
      readonly bytes: number
      readonly keptAs: string
    }
  /** The disk was full; nothing of the append was stored. */
  | { readonly kind: 'disk full'; readonly error: unknown }
  /** A write failed; the spool accepts nothing more. */
  | { readonly kind: 'broken'; readonly error: unknown }

export interface Recovered {
  readonly id: string
  /** Oldest first. */
  readonly sealed: Segment[]
  readonly newest: Segment
  /** Of the newest; null: the disk has no room for it. */
  readonly file: File | null
  /** Of the files that were kept aside. */
  readonly damagedBytes: number
}

/** Positions are not used twice under one id, so the name is not used twice. */
export const keptAs = ({ path }: Segment, id: string) => `${path}.${id}.damaged`

export const damageOf = (segment: Segment, offset: number, id: string): Problem => ({
  kind: 'damaged',
  file: segment.path,
  offset,
  bytes: segment.bytes - offset,
  keptAs: keptAs(segment, id),
})

export async function recover(files: Files, folder: string, onProblem: (problem: Problem) => void): Promise<Recovered> {
  const names = (await files.readdir(folder)).sort()
  // Left by a crash while a segment was made: it never had a record.
  for (const name of names.filter((name) => name.endsWith('.segment.new'))) await files.unlink(join(folder, name))
  let damagedBytes = 0
  for (const name of names.filter((name) => name.endsWith('.damaged'))) {
    await using file = await files.open(join(folder, name), 'r')
    damagedBytes += (await file.stat()).size
  }

  const found: (Segment & { readonly end: number; readonly fault: Fault | null })[] = []
  let id: string | null = null
  /** The first position that no record of these files can ever have had. */
  let free = 1
  for (const name of names) {
    const first = positionOfName(name)
    if (first === null) continue
    const path = join(folder, name)
    await using file = await files.open(path, 'r')
    const bytes = (await file.stat()).size
    const header = decodeHeader(await readAt(file, 0, HEADER_BYTES))
    const isInOrder = first >= (found.at(-1)?.next ?? 0)
    const fits = header?.first === first && isInOrder && header.id === (id ?? header.id)
    const { offset, position, fault } = fits
      ? await readRecords(file, { offset: HEADER_BYTES, position: first }, bytes, () => true)
      : ({ offset: 0, position: first, fault: 'damaged' } as const)
    if (fits) id = header.id
    found.push({ path, first, next: position, bytes, isDamaged: fault !== null, end: offset, fault })
    const lost = fault === null ? 0 : 1 + Math.floor((bytes - offset) / RECORD_HEADER_BYTES)
    free = Math.max(free, position + lost)
  }

  const last = found.at(-1)
  if (last !== undefined) {
    await using file = await files.open(last.path, 'r+')
    if (last.fault === 'cut off') await file.truncate(last.end)
    // Its records may have been written, but not yet synced, by a process that was killed.
    await sync(file.datasync())
  }
  const known = id ?? randomUUID()
  for (const segment of found) {
    const { path, bytes, end, fault } = segment
    if (segment === last && fault === 'cut off') {
      onProblem({ kind: 'cut off', file: path, offset: end, bytes: bytes - end })
      Object.assign(segment, { bytes: end, isDamaged: false })
    } else if (fault !== null) onProblem(damageOf(segment, end, known))
  }
  // Never a file with records of an earlier process: if an fsync failed there, memory and disk may differ behind them.
  const { segment: newest, file } = await createSegment(files, folder, { id: known, first: free }).catch((error) => {
    if (!isDiskFull(error)) throw error
    onProblem({ kind: 'disk full', error })
    return { segment: planSegment(folder, free), file: null }
  })
  const sealed = found.filter(({ path }) => path !== newest.path)
  return { id: known, sealed, newest, file, damagedBytes }
}
