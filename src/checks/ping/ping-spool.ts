/**
 * The pings that wait on disk for the database (design, section 10), in one order for all checks. A ping whose row
 * another session has locked goes to the end (`postpone`), so that no other ping waits for that row.
 */

import type { Instant } from '../../domain/check.ts'
import { stampAfter } from '../../domain/instant.ts'
import { waitAtMost } from '../../runtime/clock.ts'
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

export type PingSpool = ReturnType<typeof createPingSpool>

/** Not yet on disk: what waits for a slow one must not fill the memory. */
const MAX_WRITING = { pings: 50_000, bytes: 32 * 2 ** 20 }
const MAX_FLUSH_MS = 1_000
/** Copies of all of them are one append, which a file takes. */
const BATCH = { records: 500, bytes: 2_000_000 }

/** `now`: by the database's clock. */
export function createPingSpool(spool: Spool, now: () => Instant) {
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

  /** Also of pings that are being written. */
  const isEmpty = () => spool.records === 0 && writing.size === 0
  /** Without pings whose rows another session has locked. */
  const waiting = () => spool.records - locked.size

  return {
    id: spool.id,
    /** False when it is broken: it is not asked any more. */
    accepts: () => spool.state !== 'broken',
    /** False also while it is full. */
    hasRoom: () => spool.state === 'open',
    isEmpty,
    /** Whether nothing waits but pings whose rows another session has locked. False while pings are being written. */
    isCaughtUp: () => waiting() <= 0 && writing.size === 0,
    pings: () => spool.records,
    waiting,
    /** The checks whose rows another session has locked. */
    lockedKeys: (): readonly number[] => [...new Set(locked.values())],
    bytes: () => spool.bytes,
    /** About when the oldest ping came in; null: none waits. */
    oldestAt: () => (spool.records === 0 ? null : oldestAt),
    /** When a ping got 503 last that would have been for it; null: never. Now while it is broken. */
    refusedAt: () => (spool.state === 'broken' ? now() : refusedAt),
    noteRefusal() {
      refusedAt = now()
    },

    /** Resolves when all are on disk. Rejects when none was stored. */
    async append(pings: readonly SpooledPing[]): Promise<void> {
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

    /** The oldest pings after this position, some hundreds. Throws UnknownFormat. */
    async read(after: number): Promise<readonly ReadPing[]> {
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

    /** Appends copies of these pings, with their arrivals. The caller then moves its position past them. */
    async postpone(pings: readonly LockedPing[]): Promise<void> {
      // A broken spool takes no append, and is read back all the same.
      if (pings.length === 0) return
      const positions = await spool.append(pings.map(encodePing), 'move')
      for (const [index, position] of positions.entries()) locked.set(position, pings[index]!.key)
    },

    /** These stay where they are: nothing waits behind them. */
    noteLocked(pings: readonly LockedPing[]): void {
      for (const { position, key } of pings) locked.set(position, key)
    },

    /** The pings up to this position are recorded, or postponed: `pings` of them since the last call. */
    async forget(upTo: number, pings: readonly ReadPing[]): Promise<void> {
      try {
        await spool.forget(upTo)
      } finally {
        // They are recorded, whatever becomes of their file.
        for (const position of locked.keys()) if (position <= upTo) locked.delete(position)
        oldestAt = pings.at(-1)?.ping.at ?? oldestAt
      }
    },

    /** Resolves when all appends are on disk, or have failed; after a second at the latest: a disk may hang. */
    flushed: () => waitAtMost(MAX_FLUSH_MS, Promise.allSettled(writing)),
  }
}
