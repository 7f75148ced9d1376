/**
 * Ids that carry their time to the microsecond: UUIDs, version 7 (RFC 9562). Their order is the order of a check's
 * history. A time is in milliseconds, and its fraction carries the microseconds.
 */

import { createHash, randomFillSync } from 'node:crypto'

const POOL_BYTES = 8_192
let pool = Buffer.alloc(0)
let used = 0

/** Sixteen random bytes. From a pool: one system call for each ping's id would cost more than the id. */
function randomBytes(): Buffer {
  if (used + 16 > pool.length) {
    pool = randomFillSync(Buffer.allocUnsafeSlow(POOL_BYTES))
    used = 0
  }
  used += 16
  return pool.subarray(used - 16, used)
}

/** An id of something that happens at `at`. */
export function newId(at: number): string {
  return toUuid(newIdBytes(at))
}

/** The same as the 16 bytes that PostgreSQL takes. */
export function newIdBytes(at: number): Buffer {
  return writeTime(randomBytes(), at)
}

/** The id, always the same, of what `name` stands for and happened at `at`. */
export function idBytesOf(name: string, at: number): Buffer {
  return writeTime(createHash('sha256').update(name).digest().subarray(0, 16), at)
}

/**
 * The smallest id of the microsecond `at`: a primary key finds with it what is older. Times before 1970 count as 1970.
 */
export function firstIdAt(at: number): string {
  return toUuid(writeTime(Buffer.alloc(16), Math.max(0, at)))
}

/** The time that an id carries, in whole milliseconds. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

function writeTime(bytes: Buffer, at: number): Buffer {
  // The nearest microsecond, which may be in the next millisecond.
  const total = Math.round(at * 1_000)
  const us = total % 1_000
  bytes.writeUIntBE((total - us) / 1_000, 0, 6)
  bytes[6] = 0x70 | (us >> 6)
  bytes[7] = ((us << 2) & 0xff) | (bytes[7]! & 0x03)
  bytes[8] = 0x80 | (bytes[8]! & 0x3f)
  return bytes
}

/** A UUID in its usual form. */
export function toUuid(bytes: Buffer): string {
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
