/**
 * The bytes of a segment file: a header, then records.
 *
 *   header   magic 8, version u32, position of the first record u64, id of the spool 16, CRC-32C of these
 *   record   length u32, CRC-32C of length and position, CRC-32C of length, position and payload, payload
 *
 * The length has a sum of its own: with a wrong one, damage in the middle could not be distinguished from a record that was cut off,
 * and records behind it would be removed. Numbers are little-endian.
 */

import { crc32c } from './crc32c.ts'

export const HEADER_BYTES = 40
export const RECORD_HEADER_BYTES = 12
const MAGIC = Buffer.from('spool\r\n\x1a', 'latin1')
const VERSION = 1

export interface Header {
  readonly id: string
  readonly first: number
}

export function encodeHeader({ id, first }: Header): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES)
  MAGIC.copy(bytes)
  bytes.writeUInt32LE(VERSION, 8)
  bytes.writeBigUInt64LE(BigInt(first), 12)
  bytes.write(id.replaceAll('-', ''), 20, 'hex')
  bytes.writeUInt32LE(crc32c(bytes.subarray(0, 36)), 36)
  return bytes
}

/** Null for a damaged header; a text for what is no segment of this version. */
export function decodeHeader(bytes: Buffer): Header | string | null {
  if (!bytes.subarray(0, 8).equals(MAGIC)) return 'it is not a segment of a spool'
  const version = bytes.length >= 12 ? bytes.readUInt32LE(8) : VERSION
  if (version !== VERSION) return `it has format version ${version}, and this program reads version ${VERSION}`
  if (bytes.length < HEADER_BYTES || crc32c(bytes.subarray(0, 36)) !== bytes.readUInt32LE(36)) return null
  const id = bytes.toString('hex', 20, 36).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  return { id, first: Number(bytes.readBigUInt64LE(12)) }
}

export const encodedBytes = (records: readonly Buffer[]) =>
  records.reduce((sum, record) => sum + RECORD_HEADER_BYTES + record.length, 0)

/** The records as they follow each other in a segment; `position` is that of the first. */
export function encodeRecords(records: readonly Buffer[], position: number): Buffer {
  const bytes = Buffer.allocUnsafe(encodedBytes(records))
  let at = 0
  for (const [index, record] of records.entries()) {
    const sum = sumOfHead(record.length, position + index)
    bytes.writeUInt32LE(record.length, at)
    bytes.writeUInt32LE(sum, at + 4)
    bytes.writeUInt32LE(crc32c(record, sum), at + 8)
    record.copy(bytes, at + RECORD_HEADER_BYTES)
    at += RECORD_HEADER_BYTES + record.length
  }
  return bytes
}

/** `short`: this many bytes are needed. `bad`: a sum is wrong; only with a right sum of the length it is known where the record ends. */
export type Decoded =
  | { readonly record: Buffer; readonly bytes: number }
  | { readonly short: number }
  | { readonly bad: 'length' }
  | { readonly bad: 'payload'; readonly bytes: number }

export function decodeRecord(bytes: Buffer, at: number, position: number): Decoded {
  if (bytes.length - at < RECORD_HEADER_BYTES) return { short: RECORD_HEADER_BYTES }
  const length = bytes.readUInt32LE(at)
  const sum = sumOfHead(length, position)
  if (sum !== bytes.readUInt32LE(at + 4)) return { bad: 'length' }
  const size = RECORD_HEADER_BYTES + length
  if (bytes.length - at < size) return { short: size }
  const record = bytes.subarray(at + RECORD_HEADER_BYTES, at + size)
  return crc32c(record, sum) === bytes.readUInt32LE(at + 8) ? { record, bytes: size } : { bad: 'payload', bytes: size }
}

const head = Buffer.alloc(12)

function sumOfHead(length: number, position: number): number {
  head.writeUInt32LE(length, 0)
  head.writeUInt32LE(position % 2 ** 32, 4)
  head.writeUInt32LE(Math.floor(position / 2 ** 32), 8)
  return crc32c(head)
}
