/**
 * The public ids of all checks in a file, for a database that goes away while a process starts. An id is the right to send pings, so
 * the file is for its owner alone. It has no keys: they are those of one database, and the file may outlive it.
 *
 * A header of 32 bytes: `HB-KNOWN`; the version, 4 bytes; 4 bytes of zero; the number of ids, 8 bytes; the CRC-32 of the ids; that of the header before
 * it. Then the ids, 16 bytes each, in no order. Numbers begin with their highest byte.
 */

import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { yieldTurn } from '../../runtime/clock.ts'
import { errorCode } from '../../runtime/error-code.ts'
import { SHARDS, UUID_BYTES, type UuidMap } from '../../runtime/uuid-map.ts'

export const KNOWN_FILE = 'known-checks'
const MAGIC = 'HB-KNOWN'
const VERSION = 1
const HEADER = { bytes: 32, version: 8, count: 16, crc: 24, headerCrc: 28 }
/** About half a megabyte of a million ids. */
const SHARDS_PER_WRITE = 8
const IDS_PER_TURN = 5_000

/** Replaces the file at once, and returns its size. What comes or goes meanwhile may be in it or not. Throws the error of the file system. */
export async function writeKnownIds(folder: string, ids: Pick<UuidMap, 'listShard'>): Promise<number> {
  const path = join(folder, KNOWN_FILE)
  const fresh = `${path}.new`
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    const bytes = await writeFresh(fresh, ids)
    await rename(fresh, path)
    await syncFolder(folder)
    return bytes
  } catch (error) {
    await rm(fresh, { force: true }).catch(() => {})
    throw error
  }
}

async function writeFresh(path: string, ids: Pick<UuidMap, 'listShard'>): Promise<number> {
  await using file = await open(path, 'w', 0o600)
  let at = HEADER.bytes
  let crc = 0
  for (let shard = 0; shard < SHARDS; shard += SHARDS_PER_WRITE) {
    const lists = Array.from({ length: SHARDS_PER_WRITE }, (_, index) => ids.listShard(shard + index))
    const piece = Buffer.concat(lists)
    crc = crc32(piece, crc)
    await file.writev([piece], at)
    at += piece.length
  }
  await file.writev([headerOf((at - HEADER.bytes) / UUID_BYTES, crc)], 0)
  await file.sync()
  return at
}

function headerOf(count: number, crc: number): Buffer {
  const header = Buffer.alloc(HEADER.bytes)
  header.write(MAGIC, 'latin1')
  header.writeUInt32BE(VERSION, HEADER.version)
  header.writeBigUInt64BE(BigInt(count), HEADER.count)
  header.writeUInt32BE(crc, HEADER.crc)
  header.writeUInt32BE(crc32(header.subarray(0, HEADER.headerCrc)), HEADER.headerCrc)
  return header
}

/** The new name is on the disk too. */
async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder, 'r')
  await handle.sync()
}

/** Calls `onId` with each id, the 16 bytes at `at`, once the file as a whole is found to be right; otherwise `onIgnored`. Without a file it does nothing. */
export async function readKnownIds(
  folder: string,
  onIgnored: (path: string, reason: string) => void,
  onId: (bytes: Buffer, at: number) => void,
): Promise<void> {
  const path = join(folder, KNOWN_FILE)
  let file: Buffer
  try {
    file = await readFile(path)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') onIgnored(path, `it cannot be read: ${errorCode(error) ?? String(error)}`)
    return
  }
  const fault = await findFault(file)
  if (fault !== null) {
    onIgnored(path, fault)
    return
  }
  for (let at = HEADER.bytes; at < file.length; at += UUID_BYTES) {
    onId(file, at)
    if ((at / UUID_BYTES) % IDS_PER_TURN === 0) await yieldTurn()
  }
}

/** Why the file cannot be used; null: it can. */
async function findFault(file: Buffer): Promise<string | null> {
  if (file.length < HEADER.bytes || file.toString('latin1', 0, MAGIC.length) !== MAGIC)
    return 'it is not a file of known checks'
  const version = file.readUInt32BE(HEADER.version)
  if (version !== VERSION) return `it has version ${version}, this release reads version ${VERSION}`
  if (crc32(file.subarray(0, HEADER.headerCrc)) !== file.readUInt32BE(HEADER.headerCrc)) return 'its header is damaged'
  const expected = HEADER.bytes + Number(file.readBigUInt64BE(HEADER.count)) * UUID_BYTES
  if (file.length !== expected) return `it has ${file.length} bytes instead of ${expected}`
  let crc = 0
  for (let at = HEADER.bytes; at < file.length; at += IDS_PER_TURN * UUID_BYTES) {
    crc = crc32(file.subarray(at, at + IDS_PER_TURN * UUID_BYTES), crc)
    await yieldTurn()
  }
  return crc === file.readUInt32BE(HEADER.crc) ? null : 'it is damaged'
}
