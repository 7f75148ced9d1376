/**
 * A ping as a record of the spool. Format 1, numbers in big endian:
 *
 *   format u8, flags u8, type u8, public id 16 bytes, arrival f64 (milliseconds since the epoch, UTC)
 *   then what the flags say: exit code u8, duration u32 (milliseconds), run id 16 bytes, id of the ping 16 bytes, body (the rest)
 *
 * Another version of this program may have written it: a format is only added, and its number never used again.
 */

import { PING_TYPES } from '../../domain/check.ts'
import { toUuid } from '../../runtime/ids.ts'
import type { Ping } from './ping.ts'

export interface SpooledPing {
  readonly ping: Ping
  /** The id that it has if it is stored already: the connection broke while it was. Null: it is not. */
  readonly pingId: Buffer | null
}

/** The record cannot be read by this version. It is kept. */
export class UnknownFormat extends Error {
  constructor(format: number | undefined) {
    super(
      `the spool has pings in format ${format}, which this version cannot read: start the version that wrote them, or move the files of SPOOL_DIR away`,
    )
  }
}

const FORMAT = 1
const HAS = { exitCode: 1, duration: 2, runId: 4, body: 8, isBodyTruncated: 16, pingId: 32 } as const
const UUID_BYTES = 16
const HEAD_BYTES = 3 + UUID_BYTES + 8

export function encodePing({ ping, pingId }: SpooledPing): Buffer {
  const { publicId, type, exitCode, durationMs, runId, body, isBodyTruncated = false, at } = ping
  const head = Buffer.alloc(HEAD_BYTES)
  head[0] = FORMAT
  head[2] = PING_TYPES.indexOf(type)
  toBytes(publicId).copy(head, 3)
  head.writeDoubleBE(at, 3 + UUID_BYTES)
  const parts: Buffer[] = [head]
  let flags = isBodyTruncated ? HAS.isBodyTruncated : 0
  const add = (flag: number, part: Buffer) => {
    flags |= flag
    parts.push(part)
  }
  if (exitCode !== null) add(HAS.exitCode, Buffer.of(exitCode))
  if (durationMs !== null) {
    const duration = Buffer.alloc(4)
    duration.writeUInt32BE(durationMs)
    add(HAS.duration, duration)
  }
  if (runId !== null) add(HAS.runId, toBytes(runId))
  if (pingId !== null) add(HAS.pingId, pingId)
  if (body !== null) add(HAS.body, body)
  head[1] = flags
  return Buffer.concat(parts)
}

/** Throws UnknownFormat. */
export function decodePing(record: Buffer): SpooledPing {
  const type = PING_TYPES[record[2] ?? -1]
  if (record[0] !== FORMAT || record.length < HEAD_BYTES || type === undefined) throw new UnknownFormat(record[0])
  const flags = record[1]!
  let at = HEAD_BYTES
  const take = (flag: number, bytes: number): Buffer | null => {
    if ((flags & flag) === 0) return null
    at += bytes
    return record.subarray(at - bytes, at)
  }
  const exitCode = take(HAS.exitCode, 1)?.[0] ?? null
  const durationMs = take(HAS.duration, 4)?.readUInt32BE() ?? null
  const runId = take(HAS.runId, UUID_BYTES)
  const pingId = take(HAS.pingId, UUID_BYTES)
  const body = take(HAS.body, record.length - at)
  return {
    pingId,
    ping: {
      publicId: toUuid(record.subarray(3, 3 + UUID_BYTES)),
      type,
      exitCode,
      durationMs,
      runId: runId === null ? null : toUuid(runId),
      body,
      isBodyTruncated: (flags & HAS.isBodyTruncated) !== 0,
      at: record.readDoubleBE(3 + UUID_BYTES),
    },
  }
}

function toBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}
