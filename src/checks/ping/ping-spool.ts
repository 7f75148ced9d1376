/**
 * The pings that wait on disk for the database (design, section 10). Each check keeps the order of its pings: while pings of it wait here, newer ones
 * wait behind them.
 */

import type { Instant } from '../../domain/check.ts'
import { stampAfter, toMicrosecond } from '../../domain/instant.ts'
import { startTimer } from '../../runtime/clock.ts'
import { SpoolFull } from '../../spool/errors.ts'
import type { Spool } from '../../spool/spool.ts'
import { decodePing, encodePing, type SpooledPing } from './spooled-ping.ts'

export interface ReadPing extends SpooledPing {
  readonly position: number
}

export interface PingSpool {
  readonly id: string
  /** False when it is broken: it is not asked any more. */
  accepts(): boolean
  /** False also while it is full. */
  hasRoom(): boolean
  /** Whether pings of this check wait here, so that a newer one must wait behind them. */
  holds(publicId: string): boolean
  /** Also of pings that are being written. */
  isEmpty(): boolean
  pings(): number
  bytes(): number
  /** About when the oldest ping came in; null: none waits. */
  oldestAt(): Instant | null
  /** When a ping got 503 last that would have been for it; null: never. Now while it is broken. */
  refusedAt(): Instant | null
  noteRefusal(): void
  /** Resolves when all are on disk. From the call on their checks are held. Rejects when none was stored. */
  append(pings: readonly SpooledPing[]): Promise<void>
  /** The oldest pings after this position, some hundreds. Throws UnknownFormat. */
  read(after: number): Promise<readonly ReadPing[]>
  /** The pings up to this position are recorded, `pings` of them since the last call. */
  forget(upTo: number, pings: readonly ReadPing[]): Promise<void>
  /** Resolves when all that was appended is on disk, or has failed; after a second at the latest, because a disk may hang. */
  flushed(): Promise<void>
}

/** About 150 bytes each. With more checks, all pings go through the spool until it is empty. */
const MAX_HELD = 100_000
/** Not yet on disk: what waits for a slow one must not fill the memory. */
const MAX_WRITING = { pings: 50_000, bytes: 32 * 2 ** 20 }
const MAX_FLUSH_MS = 1_000
const BATCH = { records: 500, bytes: 2_000_000 }

interface Held {
  waiting: number
  /** Of the last one: what comes in later is stored as later. */
  arrivedAt: Instant
}

/** `now`: by the database's clock. */
export function createPingSpool(spool: Spool, now: () => Instant): PingSpool {
  /** By public id. Null: more checks than are listed, or what a process before this one left. */
  let held: Map<string, Held> | null = spool.records === 0 ? new Map() : null
  const writing = new Set<Promise<unknown>>()
  const size = { pings: 0, bytes: 0 }
  let refusedAt: Instant | null = null
  let oldestAt: Instant | null = null

  function hold({ ping, pingId }: SpooledPing): SpooledPing {
    const { publicId } = ping
    const before = held?.get(publicId)
    if (before !== undefined) {
      before.waiting += 1
      before.arrivedAt = stampAfter(before.arrivedAt, ping.at)
      return { ping: { ...ping, at: before.arrivedAt }, pingId }
    }
    if (held !== null && held.size >= MAX_HELD) held = null
    const arrivedAt = toMicrosecond(ping.at)
    held?.set(publicId, { waiting: 1, arrivedAt })
    return { ping: { ...ping, at: arrivedAt }, pingId }
  }

  function unhold(pings: readonly SpooledPing[]): void {
    if (isEmpty()) {
      held = new Map()
      oldestAt = null
    } else if (held !== null) for (const { ping } of pings) unholdOne(held, ping.publicId)
  }

  const isEmpty = () => spool.records === 0 && writing.size === 0

  return {
    id: spool.id,
    accepts: () => spool.state !== 'broken',
    hasRoom: () => spool.state === 'open',
    holds: (publicId) => held?.has(publicId) ?? true,
    isEmpty,
    pings: () => spool.records,
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
      const stamped = pings.map(hold)
      oldestAt ??= stamped[0]?.ping.at ?? null
      const records = stamped.map(encodePing)
      const bytes = records.reduce((sum, { length }) => sum + length, 0)
      const written = spool.append(records)
      writing.add(written)
      size.pings += pings.length
      size.bytes += bytes
      const end = () => {
        writing.delete(written)
        size.pings -= pings.length
        size.bytes -= bytes
      }
      try {
        await written
        end()
      } catch (error) {
        end()
        unhold(stamped)
        throw error
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

    async forget(upTo, pings) {
      try {
        await spool.forget(upTo)
      } finally {
        // They are recorded, whatever becomes of their file.
        oldestAt = pings.at(-1)?.ping.at ?? oldestAt
        unhold(pings)
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

function unholdOne(held: Map<string, Held>, publicId: string): void {
  const one = held.get(publicId)
  if (one === undefined) return
  one.waiting -= 1
  if (one.waiting === 0) held.delete(publicId)
}
