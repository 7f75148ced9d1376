/**
 * UUIDs, version 7 (RFC 9562), whose order is the order of a check's history: 48 bits of milliseconds, then the microseconds
 * within the millisecond, then random bits, which the caller hands in.
 */

import type { Instant } from './check.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return text.length === 36 && UUID.test(text)
}

/** Writes the id of something that happened at `at` (a fraction carries the microseconds) over `bytes`: 16 random ones. */
export function writeTimeOrderedId(bytes: Buffer, at: Instant): Buffer {
  const ms = Math.floor(at)
  const us = Math.round((at - ms) * 1_000) % 1_000
  bytes.writeUIntBE(ms, 0, 6)
  bytes[6] = 0x70 | (us >> 6)
  bytes[7] = ((us << 2) & 0xff) | (bytes[7]! & 0x03)
  bytes[8] = 0x80 | (bytes[8]! & 0x3f)
  return bytes
}

export function formatUuid(bytes: Buffer): string {
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
