/** An open spool: appends in groups, reads, deletes what is forgotten. */

import { createSemaphore } from '../runtime/semaphore.ts'
import { SpoolBroken, SpoolDamaged, SpoolFull } from './errors.ts'
import { type Files, isDiskFull, sync, writeAt } from './files.ts'
import { encodedBytes, encodeRecords, HEADER_BYTES } from './format.ts'
import type { Problem, Recovered } from './recover.ts'
import { createSegment, readEntries, type Segment } from './segment.ts'

export interface Positioned {
  readonly position: number
  readonly record: Buffer
}

export interface Spool {
  /** Made with the folder's first file, and in all of them: what is remembered about positions is remembered with it. */
  readonly id: string
  /**
   * `full`: the last append found no room; the next one may. `broken`: a write failed, and what the disk holds of it is unknown:
   * nothing is accepted until the spool is opened anew, but what was stored before can be read.
   */
  readonly state: 'open' | 'full' | 'broken'
  /** Of the newest stored record, also when it is forgotten; 0 before the first. */
  readonly last: number
  /** Records that are not forgotten. */
  readonly records: number
  /** Of all files. A file is deleted when all its records are forgotten. */
  readonly bytes: number
  /**
   * Stores records in order and resolves with their positions when they are on disk: numbers that increase by one, also over
   * restarts, and are never used again. Calls that arrive during a write are written together, with one fsync. Rejects with
   * SpoolFull or SpoolBroken; a call is stored as a whole or not at all. After SpoolBroken it may be found stored at the next start.
   */
  append(records: readonly Buffer[]): Promise<readonly number[]>
  /** The oldest records after a position, in order: up to a limit, but one at least if there is one. Rejects with SpoolDamaged. */
  read(after: number, limit: { readonly records: number; readonly bytes: number }): Promise<readonly Positioned[]>
  /** Records up to this position are no longer needed. Up to which one is remembered by the caller: files are deleted as a whole. */
  forget(upTo: number): Promise<void>
  /** Stores what was appended before, and lets another process open the folder. */
  close(): Promise<void>
}

interface Place {
  readonly files: Files
  readonly folder: string
  readonly maxBytes: number
  readonly segmentBytes: number
  readonly onProblem: (problem: Problem) => void
  readonly unlock: () => void
}

interface Call {
  readonly records: readonly Buffer[]
  readonly bytes: number
  readonly resolve: (positions: readonly number[]) => void
  readonly reject: (error: Error) => void
}

export function runSpool(place: Place, { id, sealed, newest, damagedBytes }: Recovered): Spool {
  const { files, folder, maxBytes, segmentBytes, onProblem, unlock } = place
  /** What changes files is done one after the other, and what reads them too; a deletion is both. */
  const write = createSemaphore({ slots: 1 })
  const read = createSemaphore({ slots: 1 })
  const waiting: Call[] = []
  let flushing: Promise<void> | null = null
  let broken: SpoolBroken | null = null
  let isFull = newest.file === null
  let isClosed = false
  let forgotten = (sealed[0] ?? newest).first - 1
  let fileBytes = damagedBytes + newest.bytes + sealed.reduce((sum, { bytes }) => sum + bytes, 0)
  /** Where the last read ended, so that the next one need not search. */
  let lastRead = { segment: newest as Segment, position: newest.first, offset: HEADER_BYTES }

  const last = () => newest.next - 1

  /** For a failed write: whatever it left is cut off, as well as that works, and never relied on. */
  async function fail(error: unknown): Promise<SpoolBroken> {
    broken = new SpoolBroken('a write to the spool failed; it accepts nothing until it is opened anew', {
      cause: error,
    })
    onProblem({ kind: 'broken', error })
    await newest.file?.truncate(newest.bytes).catch(() => {})
    return broken
  }

  async function roll(): Promise<void> {
    const made = await createSegment(files, folder, { id, first: newest.next })
    const { path, first, next, bytes, file } = newest
    if (file !== null) sealed.push({ path, first, next, bytes })
    newest = made
    fileBytes += HEADER_BYTES
    await file?.close()
  }

  /** The oldest calls that one file has room for; those that nothing has room for are rejected. */
  function takeGroup(): { group: Call[]; isLastRejected: boolean } {
    const group: Call[] = []
    let isLastRejected = false
    let bytes = 0
    while (waiting.length > 0 && bytes + waiting[0]!.bytes <= segmentBytes - HEADER_BYTES) {
      const call = waiting.shift()!
      const grown = bytes + call.bytes
      isLastRejected = fileBytes + grown + (isTooLong(grown) ? HEADER_BYTES : 0) > maxBytes
      if (isLastRejected) {
        isFull = true
        call.reject(new SpoolFull(`the spool has reached its limit of ${maxBytes} bytes`))
      } else {
        group.push(call)
        bytes = grown
      }
    }
    return { group, isLastRejected }
  }

  /** For the newest file. */
  const isTooLong = (bytes: number) => newest.file === null || newest.bytes + bytes > segmentBytes

  async function flush(): Promise<void> {
    if (broken !== null) return rejectAll(waiting.splice(0), broken)
    const { group, isLastRejected } = takeGroup()
    if (group.length === 0) return
    const records = group.flatMap((call) => call.records)
    try {
      const bytes = encodedBytes(records)
      if (isTooLong(bytes)) await roll()
      const file = newest.file!
      await writeAt(file, encodeRecords(records, newest.next), newest.bytes)
      await sync(file.datasync())
      let position = newest.next
      newest.next += records.length
      newest.bytes += bytes
      fileBytes += bytes
      isFull = isLastRejected
      for (const call of group) call.resolve(call.records.map(() => position++))
    } catch (error) {
      rejectAll(group, isDiskFull(error) ? await undo(error) : await fail(error))
    }
  }

  /** A full disk may have taken a part of the group. */
  async function undo(error: unknown): Promise<SpoolFull | SpoolBroken> {
    try {
      await newest.file?.truncate(newest.bytes)
      if (newest.file !== null) await sync(newest.file.datasync())
    } catch (failure) {
      return await fail(failure)
    }
    if (!isFull) onProblem({ kind: 'disk full', error })
    isFull = true
    return new SpoolFull('the disk is full', { cause: error })
  }

  async function flushAll(): Promise<void> {
    // After this turn: calls of the same turn are one group.
    await Promise.resolve()
    while (waiting.length > 0) await write(flush)
    flushing = null
  }

  async function deleteForgotten(): Promise<void> {
    const done = sealed.filter(({ next }) => next - 1 <= forgotten)
    if (done.length === 0) return
    for (const segment of done) {
      await files.unlink(segment.path)
      sealed.shift()
      fileBytes -= segment.bytes
    }
    isFull = false
    await sync(files.syncFolder(folder))
  }

  async function readFrom(segment: Segment, after: number, take: (entry: Positioned) => boolean): Promise<boolean> {
    const { path, first, next, bytes: end } = segment
    const known = lastRead.segment.path === path && lastRead.position === after + 1
    const { position, offset } = known ? lastRead : { position: first, offset: HEADER_BYTES }
    const file = await files.open(path, 'r')
    try {
      const batches = readEntries(file, { offset, end, position })
      let batch = await batches.next()
      let reached = position
      for (; !batch.done; batch = await batches.next()) {
        for (const { position, record, end } of batch.value) {
          if (position > after && !take({ position, record })) return false
          reached = position + 1
          lastRead = { segment, position: reached, offset: end }
        }
      }
      if (reached !== next)
        throw new SpoolDamaged(`${path}: damaged at byte ${batch.value?.offset ?? end}, position ${reached}`)
      return true
    } finally {
      await file.close()
    }
  }

  return {
    id,
    get state() {
      return broken === null ? (isFull ? 'full' : 'open') : 'broken'
    },
    get last() {
      return last()
    },
    get records() {
      return [...sealed, newest].reduce(
        (sum, { first, next }) => sum + Math.max(0, next - Math.max(first, forgotten + 1)),
        0,
      )
    },
    get bytes() {
      return fileBytes
    },

    append(records) {
      if (broken !== null) return Promise.reject(broken)
      const bytes = encodedBytes(records)
      if (bytes > segmentBytes - HEADER_BYTES)
        return Promise.reject(new RangeError(`an append of ${bytes} bytes is longer than a file of ${segmentBytes}`))
      if (records.length === 0) return Promise.resolve([])
      return new Promise((resolve, reject) => {
        waiting.push({ records, bytes, resolve, reject })
        flushing ??= flushAll()
      })
    },

    read: (after, limit) =>
      read(async () => {
        const found: Positioned[] = []
        let bytes = 0
        const take = (entry: Positioned) => {
          if (found.length > 0 && (found.length >= limit.records || bytes + entry.record.length > limit.bytes))
            return false
          found.push(entry)
          bytes += entry.record.length
          return true
        }
        try {
          // Of the newest file what is on disk when it is its turn, and not what is being written.
          for (const segment of [...sealed, newest]) {
            if (segment.next - 1 > after && !(await readFrom(segment, after, take))) break
          }
        } catch (error) {
          if (found.length === 0) throw error
        }
        return found
      }),

    forget: (upTo) =>
      write(async () => {
        forgotten = Math.max(forgotten, Math.min(upTo, last()))
        if (broken !== null) return
        try {
          if (forgotten === last() && newest.next > newest.first) await roll()
        } catch (error) {
          // Without room for an empty file the newest one stays, and goes another time.
          if (!isDiskFull(error)) throw await fail(error)
        }
        await read(deleteForgotten).catch(async (error) => {
          throw await fail(error)
        })
      }),

    async close() {
      while (flushing !== null) await flushing
      await write(async () => {
        if (isClosed) return
        isClosed = true
        broken = new SpoolBroken('the spool is closed')
        await Promise.resolve(newest.file?.close()).finally(unlock)
      })
    },
  }
}

function rejectAll(calls: readonly Call[], error: Error): void {
  for (const call of calls) call.reject(error)
}
