/**
 * The pings that wait on disk for the database (design, section 10), in one order for all checks. A ping whose row
 * another session has locked goes to the end (`postpone`), so that no other ping waits for that row.
 */

import type { Instant } from '../../domain/check.ts'
import { stampAfter } from '../../domain/instant.ts'
import { startTimer } from '../../runtime/clock.ts'
import { SpoolFull } from '../../spool/errors.ts'
import type { Spool } from '../../spool/spool.ts'
import { decodePing, encodePing, type SpooledPing } from './spooled-ping.ts'

export interface ReadPing extends SpooledPing {
  readonly position: number
}

/** A ping on disk whose row another session has locked. */
export interface LockedPing extends ReadPing {
  /** Of its check. */
  readonly key: number
}

export interface PingSpool {
  readonly id: string
  /** False when it is broken: it is not asked any more. */
  accepts(): boolean
  /** False also while it is full. */
  hasRoom(): boolean
  /** Also of pings that are being written. */
  isEmpty(): boolean
  /** Whether nothing waits but pings whose rows another session has locked. False while pings are being written. */
  isCaughtUp(): boolean
  pings(): number
  /** Without those whose rows another session has locked. */
  waiting(): number
  /** The checks whose rows another session has locked. */
  lockedKeys(): readonly number[]
  bytes(): number
  /** About when the oldest ping came in; null: none waits. */
  oldestAt(): Instant | null
  /** When a ping got 503 last that would have been for it; null: never. Now while it is broken. */
  refusedAt(): Instant | null
  noteRefusal(): void
  /** Resolves when all are on disk. Rejects when none was stored. */
  append(pings: readonly SpooledPing[]): Promise<void>
  /** The oldest pings after this position, some hundreds. Throws UnknownFormat. */
  read(after: number): Promise<readonly ReadPing[]>
  /** Appends copies of these pings, with their arrivals. The caller then moves its position past them. */
  postpone(pings: readonly LockedPing[]): Promise<void>
  /** These stay where they are: nothing waits behind them. */
  noteLocked(pings: readonly LockedPing[]): void
  /** The pings up to this position are recorded, or postponed: `pings` of them since the last call. */
  forget(upTo: number, pings: readonly ReadPing[]): Promise<void>
  /** Resolves when all that was appended is on disk, or has failed; after a second at the latest, because a disk may hang. */
  flushed(): Promise<void>
}

/** Not yet on disk: what waits for a slow one must not fill the memory. */
const MAX_WRITING = { pings: 50_000, bytes: 32 * 2 ** 20 }
const MAX_FLUSH_MS = 1_000
const BATCH = { records: 500, bytes: 2_000_000 }
/** As for one append of the recorder. */
const MAX_POSTPONED = 100

/** `now`: by the database's clock. */
export function createPingSpool(spool: Spool, now: () => Instant): PingSpool {
  const writing = new Set<Promise<unknown>>()
  const size = { pings: 0, bytes: 0 }
  /** Keys of checks, by the positions of their pings. */
  const locked = new Map<number, number>()
  let refusedAt: Instant | null = null
  let oldestAt: Instant | null = null
  let lastAt: Instant = 0

  /** What comes in later is stored as later, also when the clock steps back: a newer ping of a check decides. */
  function inOrder({ ping, pingId }: SpooledPing): SpooledPing {
    lastAt = stampAfter(lastAt, ping.at)
    return { ping: { ...ping, at: lastAt }, pingId }
  }

  const isEmpty = () => spool.records === 0 && writing.size === 0
  const waiting = () => spool.records - locked.size

  return {
    id: spool.id,
    accepts: () => spool.state !== 'broken',
    hasRoom: () => spool.state === 'open',
    isEmpty,
    isCaughtUp: () => waiting() <= 0 && writing.size === 0,
    pings: () => spool.records,
    waiting,
    lockedKeys: () => [...new Set(locked.values())],
    bytes: () => spool.bytes,
    oldestAt: () => (spool.records === 0 ? null : oldestAt),
    refusedAt: () => (spool.state === 'broken' ? now() : refusedAt),
    noteRefusal() {
      refusedAt = now()
    },

    async append(pings) {
      // An append of a hundred pings may exceed them.
      if (size.pings >= MAX_WRITING.pings || size.bytes >= MAX_WRITING.bytes)
        throw new SpoolFull('the disk of the spool is too slow: too much waits for it')
      if (isEmpty()) {
        oldestAt = null
        lastAt = 0
      }
      const stamped = pings.map(inOrder)
      oldestAt ??= stamped[0]?.ping.at ?? null
      const records = stamped.map(encodePing)
      const bytes = records.reduce((sum, { length }) => sum + length, 0)
      const written = spool.append(records)
      writing.add(written)
      size.pings += pings.length
      size.bytes += bytes
      try {
        await written
      } finally {
        writing.delete(written)
        size.pings -= pings.length
        size.bytes -= bytes
      }
    },

    async read(after) {
      const pings: ReadPing[] = []
      for (const { position, record } of await spool.read(after, BATCH)) {
        try {
          pings.push({ position, ...decodePing(record) })
        } catch (error) {
          // Those before it are recorded first.
          if (pings.length === 0) throw error
          break
        }
      }
      oldestAt ??= pings[0]?.ping.at ?? null
      return pings
    },

    async postpone(pings) {
      for (let from = 0; from < pings.length; from += MAX_POSTPONED) {
        const some = pings.slice(from, from + MAX_POSTPONED)
        const positions = await spool.append(some.map(encodePing))
        for (const [index, position] of positions.entries()) locked.set(position, some[index]!.key)
      }
    },

    noteLocked(pings) {
      for (const { position, key } of pings) locked.set(position, key)
    },

    async forget(upTo, pings) {
      try {
        await spool.forget(upTo)
      } finally {
        // They are recorded, whatever becomes of their file.
        for (const position of locked.keys()) if (position <= upTo) locked.delete(position)
        oldestAt = pings.at(-1)?.ping.at ?? oldestAt
      }
    },

    flushed: () =>
      new Promise((resolve) => {
        const stopTimer = startTimer(MAX_FLUSH_MS, resolve)
        void Promise.allSettled(writing).then(() => {
          stopTimer()
          resolve()
        })
      }),
  }
}
