/** What a folder holds when a spool is opened: checked, and put in order. Nothing but a record that was cut off is deleted. */

import { randomUUID } from 'node:crypto'
import { basename, join } from 'node:path'
import { SpoolRejected } from './errors.ts'
import { type File, type Files, isDiskFull, readAt, sync, writeAt } from './files.ts'
import { decodeHeader, HEADER_BYTES, type Header, RECORD_HEADER_BYTES } from './format.ts'
import {
  createSegment,
  type Fault,
  type NewestSegment,
  positionOfName,
  readEntries,
  type Segment,
  segmentPath,
} from './segment.ts'

/** What the log should say. Offsets and sizes are in bytes. */
export type Problem =
  /** The last record of the newest file was not whole, and was removed. */
  | { readonly kind: 'cut off'; readonly file: string; readonly offset: number; readonly bytes: number }
  /** Records cannot be read; `bytes` from `offset` on are in the file `keptAs`. */
  | {
      readonly kind: 'damaged'
      readonly file: string
      readonly offset: number
      readonly bytes: number
      readonly keptAs: string
    }
  /** `count` positions before those of the file have no record: it was damaged, or removed by hand. */
  | { readonly kind: 'gap'; readonly file: string; readonly count: number }
  /** The disk was full; nothing of the append was stored. */
  | { readonly kind: 'disk full'; readonly error: unknown }
  /** A write failed; the spool accepts nothing more. */
  | { readonly kind: 'broken'; readonly error: unknown }

export interface Recovered {
  readonly id: string
  /** Oldest first, none of them empty. */
  readonly sealed: Segment[]
  readonly newest: NewestSegment
  /** Of the files that damage was kept in. */
  readonly damagedBytes: number
}

interface Found extends Segment {
  readonly size: number
  readonly fault: Fault | null
  /** The first position that no record of the file can ever have had. */
  readonly after: number
}

export async function recover(files: Files, folder: string, onProblem: (problem: Problem) => void): Promise<Recovered> {
  const names = (await files.readdir(folder)).sort()
  // All is read before the first change: a folder that is rejected stays as it was.
  const { id, found } = await inspectAll(files, folder, names)
  reportGaps(found, onProblem)
  // Left by a crash while a segment was made: it never had a record.
  for (const name of names.filter((name) => name.endsWith('.segment.new'))) await files.unlink(join(folder, name))
  const last = found.at(-1)
  // Its records may have been written, but not yet synced, by a process that was killed.
  if (last !== undefined) await withFile(files, last.path, 'r+', (file) => sync(file.datasync()))
  // Before any repair, so that no crash can lead to a position a second time.
  const newest = await openNewest(files, folder, id, last).catch((error) => {
    if (!isDiskFull(error)) throw error
    onProblem({ kind: 'disk full', error })
    return null
  })
  try {
    if (newest !== null) await repairAll(files, folder, found, newest.path, onProblem)
    const sealed = found.filter(({ first, next, path }) => next > first && path !== newest?.path)
    return {
      id,
      sealed: sealed.map(({ path, first, next, bytes }) => ({ path, first, next, bytes })),
      newest: newest ?? planNewest(folder, last),
      damagedBytes: await sizeOfDamaged(files, folder),
    }
  } catch (error) {
    await newest?.file.close().catch(() => {})
    throw error
  }
}

async function inspectAll(files: Files, folder: string, names: readonly string[]) {
  const paths = names.filter((name) => positionOfName(name) !== null).map((name) => join(folder, name))
  const headers: (Header | null)[] = []
  for (const path of paths) headers.push(await readHeader(files, path))
  const id = headers.find((header) => header !== null)?.id ?? randomUUID()
  const other = headers.findIndex((header) => header !== null && header.id !== id)
  if (other !== -1) throw new SpoolRejected(`${paths[other]}: it belongs to another spool than ${paths[0]}`)
  const found: Found[] = []
  for (const [index, path] of paths.entries()) {
    const segment = await inspect(files, path, headers[index]!)
    if (segment.first < (found.at(-1)?.next ?? 0))
      throw new SpoolRejected(`${path}: it repeats records of an older file`)
    found.push(segment)
  }
  return { id, found }
}

function reportGaps(found: readonly Found[], onProblem: (problem: Problem) => void): void {
  for (const [index, { path, first }] of found.entries()) {
    const count = first - (found[index - 1]?.next ?? first)
    if (count > 0) onProblem({ kind: 'gap', file: path, count })
  }
}

/**
 * Never one with records of an earlier process: if an fsync failed there, the page behind its last record may differ between
 * memory and disk.
 */
async function openNewest(
  files: Files,
  folder: string,
  id: string,
  last: Found | undefined,
): Promise<NewestSegment & { file: File }> {
  if (last === undefined || last.next > last.first || last.fault !== null)
    return await createSegment(files, folder, { id, first: last?.after ?? 1 })
  const { path, first, next, bytes } = last
  return { path, first, next, bytes, file: await files.open(path, 'r+') }
}

/** On a full disk: all can be read, the repair waits for another start, and the file is made when there is room. */
function planNewest(folder: string, last: Found | undefined): NewestSegment {
  const first = last?.after ?? 1
  return { path: segmentPath(folder, first), first, next: first, bytes: 0, file: null }
}

async function repairAll(
  files: Files,
  folder: string,
  found: readonly Found[],
  newestPath: string,
  onProblem: (problem: Problem) => void,
): Promise<void> {
  for (const segment of found) {
    await repair(files, segment, segment === found.at(-1), onProblem).catch((error) => {
      // Of what cannot be copied nothing is cut: another start does it.
      if (!isDiskFull(error)) throw error
      onProblem({ kind: 'disk full', error })
    })
    const { path, first, next, fault } = segment
    if (next === first && path !== newestPath && fault?.offset !== 0) await files.unlink(path)
  }
  await sync(files.syncFolder(folder))
}

async function readHeader(files: Files, path: string): Promise<Header | null> {
  const header = decodeHeader(await withFile(files, path, 'r', (file) => readAt(file, 0, HEADER_BYTES)))
  if (typeof header === 'string')
    throw new SpoolRejected(`${path}: ${header}; move it elsewhere, or start the program that wrote it`)
  if (header !== null && header.first !== positionOfName(basename(path)))
    throw new SpoolRejected(`${path}: its header says that it begins with position ${header.first}`)
  return header
}

async function inspect(files: Files, path: string, header: Header | null): Promise<Found> {
  const first = positionOfName(basename(path))!
  return await withFile(files, path, 'r', async (file) => {
    const { size } = await file.stat()
    if (header === null) {
      const fault: Fault = { offset: 0, kind: 'damaged' }
      return { path, first, next: first, bytes: 0, size, fault, after: first + mostRecords(size) }
    }
    let next = first
    let bytes = HEADER_BYTES
    const batches = readEntries(file, { offset: bytes, end: size, position: first })
    let batch = await batches.next()
    for (; !batch.done; batch = await batches.next()) {
      next = batch.value.at(-1)!.position + 1
      bytes = batch.value.at(-1)!.end
    }
    const fault = batch.value
    const after = fault === null ? next : next + (fault.kind === 'cut off' ? 1 : mostRecords(size - bytes))
    return { path, first, next, bytes, size, fault, after }
  })
}

/** In so many bytes. */
const mostRecords = (bytes: number) => Math.ceil(bytes / RECORD_HEADER_BYTES)

async function repair(
  files: Files,
  found: Found,
  isLast: boolean,
  onProblem: (problem: Problem) => void,
): Promise<void> {
  const { path, size, fault } = found
  if (fault === null) return
  const { offset } = fault
  const bytes = size - offset
  if (fault.kind === 'cut off' && isLast) {
    await cut(files, path, offset)
    return onProblem({ kind: 'cut off', file: path, offset, bytes })
  }
  const keptAs = `${path}.${offset}.damaged`
  if (offset === 0) await files.rename(path, keptAs)
  else {
    await copyRest(files, path, offset, keptAs)
    await cut(files, path, offset)
  }
  onProblem({ kind: 'damaged', file: path, offset, bytes, keptAs })
}

async function cut(files: Files, path: string, length: number): Promise<void> {
  await withFile(files, path, 'r+', async (file) => {
    await file.truncate(length)
    await sync(file.datasync())
  })
}

/** Durable when it resolves. */
async function copyRest(files: Files, path: string, offset: number, to: string): Promise<void> {
  const rest = await withFile(files, path, 'r', async (file) => readAt(file, offset, (await file.stat()).size - offset))
  await withFile(files, to, 'w', async (file) => {
    await writeAt(file, rest, 0)
    await sync(file.datasync())
  })
  await sync(files.syncFolder(join(path, '..')))
}

async function sizeOfDamaged(files: Files, folder: string): Promise<number> {
  let sum = 0
  for (const name of await files.readdir(folder)) {
    if (name.endsWith('.damaged'))
      sum += await withFile(files, join(folder, name), 'r', async (file) => (await file.stat()).size)
  }
  return sum
}

async function withFile<T>(
  files: Files,
  path: string,
  flags: 'r' | 'r+' | 'w',
  act: (file: File) => Promise<T>,
): Promise<T> {
  const file = await files.open(path, flags, 0o600)
  try {
    return await act(file)
  } finally {
    await file.close()
  }
}
