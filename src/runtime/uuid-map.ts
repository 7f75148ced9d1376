/**
 * A map of UUIDs to numbers for millions of entries: about 35 bytes each, outside V8's heap. A Map of strings takes 85, and grows in one go.
 *
 * Open addressing in 256 shards, each an array of 24 bytes a slot. A shard grows and shrinks alone, so that no call takes long, whatever the size.
 * The hash has a seed of its own for each map: a choice of UUIDs is no choice of slots.
 */

import { randomBytes } from 'node:crypto'

export interface UuidMap {
  size(): number
  /** Undefined for one that is not there, and for a text that is no UUID. Does not allocate. */
  get(uuid: string): number | undefined
  /** Adds or replaces; false for a text that is no UUID. `value`: a whole number, 0 to 2^53 - 1. `mark`: 1 to 255, for `dropOthers`. */
  set(uuid: string, value: number, mark: number): boolean
  /** As `set`, for the 16 bytes at `at`. */
  setBytes(bytes: Buffer, at: number, value: number, mark: number): void
  /** The same, unless it is there already. */
  addBytes(bytes: Buffer, at: number, value: number, mark: number): void
  delete(uuid: string): boolean
  /** Removes the entries of a shard (0 to 255) that have another mark. Returns how many. */
  dropOthers(shard: number, mark: number): number
  /** The UUIDs of a shard, 16 bytes each. */
  listShard(shard: number): Buffer
  /** What it takes. */
  bytes(): number
}

export const SHARDS = 256
export const UUID_BYTES = 16

/** The hash has 32 bits: the upper eight are the shard, the others choose the slot. */
const SLOT_HASHES = 2 ** 24
/** Words of a slot: four of the UUID; the lower half of the value; its upper half, with the mark in the upper eight bits. All zero: free. */
const WORDS = 6
const LOW = 4
const HIGH = 5
const MARK = 2 ** 24
const TWO_32 = 2 ** 32

const LEAST_SLOTS = 8
/** A shard that is fuller or emptier is rebuilt, with so many entries a slot. */
const MOST_FULL = 0.8
const LEAST_FULL = 0.45
const REBUILT_FULL = 0.6

const DASH = '-'.charCodeAt(0)
/** The value of each hexadecimal digit by its character. */
const DIGITS = new Int8Array(128).fill(-1)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  DIGITS[digit.charCodeAt(0)] = value
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value
}

export function createUuidMap(): UuidMap {
  const seed = randomBytes(4).readInt32LE()
  const shards: Uint32Array[] = Array.from({ length: SHARDS }, () => new Uint32Array(LEAST_SLOTS * WORDS))
  const counts = new Uint32Array(SHARDS)
  let size = 0
  /** The UUID at hand. */
  const wanted = new Uint32Array(4)

  /** Into `wanted`. False for a text that is no UUID. */
  function parse(text: string): boolean {
    if (text.length !== 36) return false
    for (let at = 8; at <= 23; at += 5) if (text.charCodeAt(at) !== DASH) return false
    const a = digitsAt(text, 0)
    const b = digitsAt(text, 4)
    const c = digitsAt(text, 9)
    const d = digitsAt(text, 14)
    const e = digitsAt(text, 19)
    const f = digitsAt(text, 24)
    const g = digitsAt(text, 28)
    const h = digitsAt(text, 32)
    wanted[0] = (a << 16) | b
    wanted[1] = (c << 16) | d
    wanted[2] = (e << 16) | f
    wanted[3] = (g << 16) | h
    return (a | b | c | d | e | f | g | h) >= 0
  }

  function read(bytes: Buffer, at: number): void {
    for (let word = 0; word < 4; word += 1) wanted[word] = bytes.readUInt32BE(at + 4 * word)
  }

  const hashOf = (words: Uint32Array, at: number) => {
    let hash = Math.imul(words[at]! ^ seed, 0x9e3779b1)
    hash = Math.imul(hash ^ (hash >>> 15) ^ words[at + 1]!, 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 13) ^ words[at + 2]!, 0xc2b2ae35)
    hash = Math.imul(hash ^ (hash >>> 16) ^ words[at + 3]!, 0x27d4eb2f)
    return (hash ^ (hash >>> 15)) >>> 0
  }
  const shardOf = (hash: number) => hash >>> 24
  /** Where the slot of that hash begins. */
  const homeOf = (hash: number, slots: number) => Math.floor(((hash % SLOT_HASHES) * slots) / SLOT_HASHES) * WORDS

  /** Where the slot of `wanted` begins, or the free one in which it belongs. */
  function find(words: Uint32Array, hash: number): number {
    let at = homeOf(hash, words.length / WORDS)
    while (words[at + HIGH] !== 0) {
      if (
        words[at] === wanted[0] &&
        words[at + 1] === wanted[1] &&
        words[at + 2] === wanted[2] &&
        words[at + 3] === wanted[3]
      )
        return at
      at += WORDS
      if (at === words.length) at = 0
    }
    return at
  }

  function put(value: number, mark: number): void {
    const hash = hashOf(wanted, 0)
    const shard = shardOf(hash)
    let words = shards[shard]!
    let at = find(words, hash)
    if (words[at + HIGH] === 0) {
      size += 1
      counts[shard]! += 1
      if (counts[shard]! > (words.length / WORDS) * MOST_FULL) {
        words = rebuild(shard)
        at = find(words, hash)
      }
      words.set(wanted, at)
    }
    words[at + LOW] = value % TWO_32
    words[at + HIGH] = Math.floor(value / TWO_32) + mark * MARK
  }

  /** With room for `counts`. */
  function rebuild(shard: number): Uint32Array {
    const before = shards[shard]!
    const slots = Math.max(LEAST_SLOTS, Math.ceil(counts[shard]! / REBUILT_FULL))
    const words = new Uint32Array(slots * WORDS)
    for (let from = 0; from < before.length; from += WORDS) {
      if (before[from + HIGH] === 0) continue
      let at = homeOf(hashOf(before, from), slots)
      while (words[at + HIGH] !== 0) {
        at += WORDS
        if (at === words.length) at = 0
      }
      for (let word = 0; word < WORDS; word += 1) words[at + word] = before[from + word]!
    }
    shards[shard] = words
    return words
  }

  /** Frees a slot. Entries behind it move up, so that none is cut off from its home. */
  function free(shard: number, freed: number): void {
    const words = shards[shard]!
    const { length } = words
    let gap = freed
    for (let at = (gap + WORDS) % length; words[at + HIGH] !== 0; at = (at + WORDS) % length) {
      const home = homeOf(hashOf(words, at), length / WORDS)
      // It may move to the gap unless its home lies behind that, seen from the gap on.
      if ((at - home + length) % length < (at - gap + length) % length) continue
      words.copyWithin(gap, at, at + WORDS)
      gap = at
    }
    words.fill(0, gap, gap + WORDS)
    size -= 1
    counts[shard]! -= 1
  }

  function shrink(shard: number): void {
    const slots = shards[shard]!.length / WORDS
    if (slots > LEAST_SLOTS && counts[shard]! < slots * LEAST_FULL) rebuild(shard)
  }

  return {
    size: () => size,
    get(uuid) {
      if (!parse(uuid)) return undefined
      const hash = hashOf(wanted, 0)
      const words = shards[shardOf(hash)]!
      const at = find(words, hash)
      const high = words[at + HIGH]!
      return high === 0 ? undefined : (high % MARK) * TWO_32 + words[at + LOW]!
    },
    set(uuid, value, mark) {
      if (!parse(uuid)) return false
      put(value, mark)
      return true
    },
    setBytes(bytes, at, value, mark) {
      read(bytes, at)
      put(value, mark)
    },
    addBytes(bytes, at, value, mark) {
      read(bytes, at)
      const hash = hashOf(wanted, 0)
      const words = shards[shardOf(hash)]!
      if (words[find(words, hash) + HIGH] === 0) put(value, mark)
    },
    delete(uuid) {
      if (!parse(uuid)) return false
      const hash = hashOf(wanted, 0)
      const shard = shardOf(hash)
      const at = find(shards[shard]!, hash)
      if (shards[shard]![at + HIGH] === 0) return false
      free(shard, at)
      shrink(shard)
      return true
    },
    dropOthers(shard, mark) {
      const words = shards[shard]!
      const before = counts[shard]!
      // What moves to the freed slot is looked at too. One that comes there from the beginning, around the end, was looked at before.
      for (let at = 0; at < words.length; ) {
        const high = words[at + HIGH]!
        if (high !== 0 && Math.floor(high / MARK) !== mark) free(shard, at)
        else at += WORDS
      }
      shrink(shard)
      return before - counts[shard]!
    },
    listShard(shard) {
      const words = shards[shard]!
      const list = Buffer.allocUnsafe(counts[shard]! * UUID_BYTES)
      let end = 0
      for (let at = 0; at < words.length; at += WORDS) {
        if (words[at + HIGH] === 0) continue
        for (let word = 0; word < 4; word += 1) end = list.writeUInt32BE(words[at + word]!, end)
      }
      return list
    },
    bytes: () => shards.reduce((sum, words) => sum + words.byteLength, 0),
  }
}

/** The number of four digits; negative when one of them is none. */
function digitsAt(text: string, at: number): number {
  const a = DIGITS[text.charCodeAt(at)] ?? -1
  const b = DIGITS[text.charCodeAt(at + 1)] ?? -1
  const c = DIGITS[text.charCodeAt(at + 2)] ?? -1
  const d = DIGITS[text.charCodeAt(at + 3)] ?? -1
  return (a << 12) | (b << 8) | (c << 4) | d
}
