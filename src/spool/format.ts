/**
 * The bytes of a segment file: a header, then records. Numbers are little-endian.
 *
 *   header   magic and version 12, position of the first record u64, id of the spool 16, CRC-32 of these u32
 *   record   length u32, the inverted length u32, CRC-32 of the payload u32, payload
 *
 * The CRC-32 of a payload begins with the position of the record. The inverted length tells a damaged length from a
 * record that a crash cut off: whole records may follow a damaged length.
 */

import { crc32 } from 'node:zlib'
import { toUuid } from '../runtime/ids.ts'

export const HEADER_BYTES = 40
export const RECORD_HEADER_BYTES = 12
const MAGIC = Buffer.from('spool\r\n\x1a\x02\0\0\0', 'latin1')

export interface Header {
  readonly id: string
  readonly first: number
}

export function encodeHeader({ id, first }: Header): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES)
  MAGIC.copy(bytes)
  bytes.writeBigUInt64LE(BigInt(first), 12)
  bytes.write(id.replaceAll('-', ''), 20, 'hex')
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 36)), 36)
  return bytes
}

/** Null for a damaged header, and for one of another format. */
export function decodeHeader(bytes: Buffer): Header | null {
  if (bytes.length < HEADER_BYTES || !bytes.subarray(0, 12).equals(MAGIC)) return null
  if (crc32(bytes.subarray(0, 36)) !== bytes.readUInt32LE(36)) return null
  return { id: toUuid(bytes.subarray(20, 36)), first: Number(bytes.readBigUInt64LE(12)) }
}

export const encodedBytes = (records: readonly Buffer[]) =>
  records.reduce((sum, record) => sum + RECORD_HEADER_BYTES + record.length, 0)

/** The records as they follow each other in a segment; `position` is that of the first. */
export function encodeRecords(records: readonly Buffer[], position: number): Buffer {
  const bytes = Buffer.allocUnsafe(encodedBytes(records))
  let at = 0
  for (const [index, record] of records.entries()) {
    bytes.writeUInt32LE(record.length, at)
    bytes.writeUInt32LE(~record.length >>> 0, at + 4)
    bytes.writeUInt32LE(sumOf(record, position + index), at + 8)
    record.copy(bytes, at + RECORD_HEADER_BYTES)
    at += RECORD_HEADER_BYTES + record.length
  }
  return bytes
}

export type Fault = 'cut off' | 'damaged'

/** `cut off`: the record goes on behind the end of the bytes. */
export function decodeRecord(bytes: Buffer, at: number, position: number): Buffer | Fault {
  if (bytes.length - at < RECORD_HEADER_BYTES) return 'cut off'
  const length = bytes.readUInt32LE(at)
  if (bytes.readUInt32LE(at + 4) !== ~length >>> 0) return 'damaged'
  const end = at + RECORD_HEADER_BYTES + length
  if (end > bytes.length) return 'cut off'
  const record = bytes.subarray(at + RECORD_HEADER_BYTES, end)
  return sumOf(record, position) === bytes.readUInt32LE(at + 8) ? record : 'damaged'
}

const sumOf = (record: Buffer, position: number) => crc32(record, position % 2 ** 32)
