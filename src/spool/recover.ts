/** What a folder holds when a spool is opened: checked, and put in order. Nothing but a record that was cut off is deleted. */

import { randomUUID } from 'node:crypto'
import { basename, join } from 'node:path'
import { SpoolRejected } from './errors.ts'
import { type File, type Files, readAt, sync, writeAt } from './files.ts'
import { decodeHeader, HEADER_BYTES, type Header, RECORD_HEADER_BYTES } from './format.ts'
import { createSegment, type Fault, type OpenSegment, positionOfName, readEntries, type Segment } from './segment.ts'

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
  readonly newest: OpenSegment
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
  // Left by a crash while a segment was made: it never had a record.
  for (const name of names.filter((name) => name.endsWith('.segment.new'))) await files.unlink(join(folder, name))
  const paths = names.filter((name) => positionOfName(name) !== null).map((name) => join(folder, name))
  // All headers before the first change: a folder that is rejected stays as it was.
  const headers: (Header | null)[] = []
  for (const path of paths) headers.push(await readHeader(files, path))
  const id = headers.find((header) => header !== null)?.id ?? randomUUID()
  const other = headers.findIndex((header) => header !== null && header.id !== id)
  if (other !== -1) throw new SpoolRejected(`${paths[other]}: it belongs to another spool than ${paths[0]}`)
  const found: Found[] = []
  for (const [index, path] of paths.entries()) found.push(await inspect(files, path, headers[index]!))
  let next = 1
  for (const [index, segment] of found.entries()) {
    if (index > 0 && segment.first < next)
      throw new SpoolRejected(`${segment.path}: it repeats records of an older file`)
    if (index > 0 && segment.first > next) onProblem({ kind: 'gap', file: segment.path, count: segment.first - next })
    next = Math.max(segment.next, segment.first)
  }
  const last = found.at(-1)
  // Its records may have been written, but not yet synced, by a process that was killed.
  if (last !== undefined) await withFile(files, last.path, 'r+', (file) => sync(file.datasync()))
  // Never on behind records of an earlier process: if an fsync failed there, their page in memory may differ from the disk.
  // And before any repair, so that no crash can lead to a position a second time.
  const isReusable = last !== undefined && last.next === last.first && last.fault === null
  const newest = isReusable
    ? { ...last, file: await files.open(last.path, 'r+') }
    : await createSegment(files, folder, { id, first: last?.after ?? 1 })
  try {
    for (const segment of found) await repair(files, segment, segment === last, onProblem)
    const sealed: Segment[] = []
    for (const { path, first, next, bytes, fault } of found) {
      if (path === newest.path) continue
      if (next > first) sealed.push({ path, first, next, bytes })
      else if (fault?.offset !== 0) await files.unlink(path)
    }
    await sync(files.syncFolder(folder))
    return { id, sealed, newest, damagedBytes: await sizeOfDamaged(files, folder) }
  } catch (error) {
    await newest.file.close().catch(() => {})
    throw error
  }
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
