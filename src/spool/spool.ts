/** An open spool: appends in groups, reads, deletes what is forgotten. */

import { createLimiter } from '../runtime/limiter.ts'
import { SpoolBroken, SpoolFull } from './errors.ts'
import { type File, type Files, isDiskFull, sync, writeAt } from './files.ts'
import { encodedBytes, encodeRecords, HEADER_BYTES } from './format.ts'
import { damageOf, keptAs, type Problem, type Recovered } from './recover.ts'
import { createSegment, type Positioned, planSegment, readRecords, type Segment } from './segment.ts'

export interface Spool {
  /** Made with the folder's first file, and in all of them: what is remembered about positions is remembered with it. */
  readonly id: string
  /**
   * `full`: the last append found no room; the next one may. `broken`: a write failed, and what the disk holds of it is unknown:
   * nothing is accepted until the spool is opened anew, but what was stored before can be read.
   */
  readonly state: 'open' | 'full' | 'broken'
  /** Records that can be read and are not forgotten. */
  readonly records: number
  /** Of all files. A file is deleted when all its records are forgotten. */
  readonly bytes: number
  /**
   * Stores records in order and resolves with their positions when they are on disk: numbers that increase by one, also over
   * restarts, and are never used again. Calls that arrive during a write are written together, with one fsync. Rejects with
   * SpoolFull or SpoolBroken; a call is stored as a whole or not at all. After SpoolBroken it may be found stored at the next start.
   * `move`: the records are copies of older records, which the caller forgets next. Copies may exceed `maxBytes` by two
   * files, so that a full spool can be read past the records that have to stay.
   */
  append(records: readonly Buffer[], kind?: 'new' | 'move'): Promise<readonly number[]>
  /**
   * The oldest records after a position, in order: up to a limit, but one at least if there is one. A damaged record
   * ends its file: it is reported, and the records of the next file follow.
   */
  read(after: number, limit: { readonly records: number; readonly bytes: number }): Promise<readonly Positioned[]>
  /** Records up to this position are no longer needed. Up to which one is remembered by the caller: files are deleted as a whole. */
  forget(upTo: number): Promise<void>
  /** Stores what was appended before, and lets another process open the folder. */
  close(): Promise<void>
}

export interface SpoolOptions {
  /** Made if it is missing. One process at a time uses it. */
  readonly folder: string
  /** All files together, but for copies that were just moved. */
  readonly maxBytes: number
  /** One file, and so the most that one append may have. */
  readonly segmentBytes: number
  readonly onProblem: (problem: Problem) => void
  readonly files: Files
}

const MOVED_FILES = 2

interface Call {
  readonly records: readonly Buffer[]
  readonly bytes: number
  readonly resolve: (positions: readonly number[]) => void
  readonly reject: (error: Error) => void
}

export function runSpool(options: SpoolOptions, recovered: Recovered, unlock: () => void): Spool {
  const { files, folder, maxBytes, segmentBytes, onProblem } = options
  const { id, sealed } = recovered
  let { newest, file } = recovered
  /** What reads or changes files is done one after the other. */
  const alone = createLimiter({ atOnce: 1 })
  const waiting: Call[] = []
  /** Of what waits or is being written. */
  let pendingBytes = 0
  let isLastRejected = false
  let flushing: Promise<void> | null = null
  let broken: SpoolBroken | null = null
  let isFull = file === null
  let isClosed = false
  let forgotten = (sealed.find(({ first, next }) => next > first) ?? newest).first - 1
  let fileBytes = recovered.damagedBytes + newest.bytes + sealed.reduce((sum, { bytes }) => sum + bytes, 0)
  /** Where the last read ended, so that the next one need not search. */
  let lastRead = { path: newest.path, position: newest.first, offset: HEADER_BYTES }

  /** For a failed write: whatever it left is cut off, as well as that works, and never relied on. */
  async function fail(error: unknown): Promise<SpoolBroken> {
    const message = 'a write to the spool failed; it accepts nothing until it is opened anew'
    broken = new SpoolBroken(message, { cause: error })
    onProblem({ kind: 'broken', error })
    await file?.truncate(newest.bytes).catch(() => {})
    return broken
  }

  async function roll(): Promise<void> {
    const made = await createSegment(files, folder, { id, first: newest.next })
    fileBytes += HEADER_BYTES
    await replaceNewest(made.segment, made.file)
  }

  async function replaceNewest(segment: Segment, its: File | null): Promise<void> {
    const former = file
    if (former !== null) sealed.push(newest)
    newest = segment
    file = its
    await former?.close()
  }

  /** For the newest file. */
  const isTooLong = (bytes: number) => file === null || newest.bytes + bytes > segmentBytes

  async function flush(): Promise<void> {
    if (broken !== null) return rejectAll(waiting.splice(0), broken)
    const group: Call[] = []
    let bytes = 0
    while (waiting.length > 0 && bytes + waiting[0]!.bytes <= segmentBytes - HEADER_BYTES) {
      bytes += waiting[0]!.bytes
      group.push(waiting.shift()!)
    }
    const records = group.flatMap((call) => call.records)
    try {
      if (isTooLong(bytes)) await roll()
      await writeAt(file!, encodeRecords(records, newest.next), newest.bytes)
      await sync(file!.datasync())
    } catch (error) {
      const reason = await undo(error)
      pendingBytes -= bytes
      return rejectAll(group, reason)
    }
    pendingBytes -= bytes
    let position = newest.next
    newest.next += records.length
    newest.bytes += bytes
    fileBytes += bytes
    isFull = isLastRejected
    for (const call of group) call.resolve(call.records.map(() => position++))
  }

  /** A full disk may have taken a part of the group. */
  async function undo(error: unknown): Promise<SpoolFull | SpoolBroken> {
    if (!isDiskFull(error)) return await fail(error)
    try {
      await file?.truncate(newest.bytes)
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
    while (waiting.length > 0) await alone(flush)
    flushing = null
  }

  async function deleteForgotten(): Promise<void> {
    const done = sealed.filter(({ next }) => next - 1 <= forgotten)
    if (broken !== null || done.length === 0) return
    try {
      for (const segment of done) {
        if (segment.isDamaged) await files.rename(segment.path, keptAs(segment, id))
        else {
          await files.unlink(segment.path)
          fileBytes -= segment.bytes
        }
        sealed.shift()
      }
      // Copies may still exceed the limit.
      isFull = fileBytes > maxBytes
      isLastRejected = isFull
      await sync(files.syncFolder(folder))
    } catch (error) {
      throw await fail(error)
    }
  }

  /** Returns whether `take` wants more. A damaged record ends its file: nothing is appended behind it. */
  async function readFrom(segment: Segment, after: number, take: (record: Positioned) => boolean): Promise<boolean> {
    const { path, first, next, bytes } = segment
    const isNext = lastRead.path === path && lastRead.position === after + 1
    const from = isNext ? lastRead : { position: first, offset: HEADER_BYTES }
    let isWanted = true
    await using opened = await files.open(path, 'r')
    const { position, offset } = await readRecords(opened, from, bytes, (record) => {
      isWanted = record.position <= after || take(record)
      return isWanted
    })
    lastRead = { path, position, offset }
    if (!isWanted || position === next) return isWanted
    if (segment === newest) await replaceNewest(planSegment(folder, next), null)
    segment.next = position
    segment.isDamaged = true
    onProblem(damageOf(segment, offset, id))
    await deleteForgotten()
    return true
  }

  return {
    id,
    get state() {
      return broken === null ? (isFull ? 'full' : 'open') : 'broken'
    },
    get records() {
      const countOf = ({ first, next }: Segment) => Math.max(0, next - Math.max(first, forgotten + 1))
      return [...sealed, newest].reduce((sum, segment) => sum + countOf(segment), 0)
    },
    get bytes() {
      return fileBytes
    },

    append(records, kind = 'new') {
      if (broken !== null) return Promise.reject(broken)
      const bytes = encodedBytes(records)
      if (bytes > segmentBytes - HEADER_BYTES)
        return Promise.reject(new RangeError(`an append of ${bytes} bytes is longer than a file of ${segmentBytes}`))
      if (records.length === 0) return Promise.resolve([])
      const grown = pendingBytes + bytes
      const limit = kind === 'new' ? maxBytes : maxBytes + MOVED_FILES * segmentBytes
      const isRejected = fileBytes + grown + (isTooLong(grown) ? HEADER_BYTES : 0) > limit
      // A copy that fits says nothing about other records.
      isLastRejected = isRejected || (isLastRejected && kind === 'move')
      if (isRejected) {
        isFull = true
        return Promise.reject(new SpoolFull(`the spool has reached its limit of ${maxBytes} bytes`))
      }
      pendingBytes = grown
      return new Promise((resolve, reject) => {
        waiting.push({ records, bytes, resolve, reject })
        flushing ??= flushAll()
      })
    },

    read: (after, limit) =>
      alone(async () => {
        const found: Positioned[] = []
        let bytes = 0
        const take = (entry: Positioned) => {
          bytes += entry.record.length
          if (found.length > 0 && (found.length >= limit.records || bytes > limit.bytes)) return false
          found.push(entry)
          return true
        }
        try {
          for (const segment of [...sealed, newest]) {
            if (segment.next - 1 > after && !(await readFrom(segment, after, take))) break
          }
        } catch (error) {
          if (found.length === 0) throw error
        }
        return found
      }),

    forget: (upTo) =>
      alone(async () => {
        forgotten = Math.max(forgotten, Math.min(upTo, newest.next - 1))
        if (broken !== null) return
        try {
          if (forgotten === newest.next - 1 && newest.next > newest.first) await roll()
        } catch (error) {
          // Without room for an empty file the newest one stays, and goes another time.
          if (!isDiskFull(error)) throw await fail(error)
        }
        await deleteForgotten()
      }),

    async close() {
      while (flushing !== null) await flushing
      await alone(async () => {
        if (isClosed) return
        isClosed = true
        broken = new SpoolBroken('the spool is closed')
        await Promise.resolve(file?.close()).finally(unlock)
      })
    },
  }
}

function rejectAll(calls: readonly Call[], error: Error): void {
  for (const call of calls) call.reject(error)
}
