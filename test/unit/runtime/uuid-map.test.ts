import { randomInt, randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createUuidMap, SHARDS } from '../../../src/runtime/uuid-map.ts'

const toBytes = (uuid: string) => Buffer.from(uuid.replaceAll('-', ''), 'hex')
const toText = (bytes: Buffer) => {
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
/** Shards that are crowded: their entries differ from the first ones in the last digits only, as ids that a program has numbered. */
const numbered = (n: number) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`

it('holds what a Map holds, whatever comes and goes', () => {
  const map = createUuidMap()
  const model = new Map<string, number>()
  const ids = Array.from({ length: 6_000 }, (_, n) => (n % 2 === 0 ? numbered(n) : randomUUID()))
  const check = () => {
    expect(map.size()).toBe(model.size)
    for (const id of ids) expect(map.get(id)).toBe(model.get(id))
    expect(
      Array.from({ length: SHARDS }, (_, shard) => map.listShard(shard))
        .flatMap((list) =>
          Array.from({ length: list.length / 16 }, (_, n) => toText(list.subarray(16 * n, 16 * n + 16))),
        )
        .sort(),
    ).toEqual([...model.keys()].sort())
  }
  // More comes than goes, then the other way round.
  for (const share of [0.9, 0.5, 0.1]) {
    for (let step = 0; step < 12_000; step += 1) {
      const id = ids[randomInt(ids.length)]!
      if (Math.random() < share) {
        const value = randomInt(2 ** 47)
        if (step % 2 === 0) map.set(id, value, 2)
        else map.setBytes(toBytes(id), 0, value, 2)
        model.set(id, value)
      } else expect(map.delete(id)).toBe(model.delete(id))
    }
    check()
  }
})

it('keeps the entries with a mark, and drops all others', () => {
  const map = createUuidMap()
  const ids = Array.from({ length: 20_000 }, () => randomUUID())
  for (const [n, id] of ids.entries()) map.set(id, n, 254)
  for (const [n, id] of ids.entries()) if (n % 5 === 0) map.set(id, n, 255)
  let dropped = 0
  for (let shard = 0; shard < SHARDS; shard += 1) dropped += map.dropOthers(shard, 255)
  expect([dropped, map.size()]).toEqual([16_000, 4_000])
  for (const [n, id] of ids.entries()) expect(map.get(id)).toBe(n % 5 === 0 ? n : undefined)
})

it('takes values up to 2^53 - 1 and 0, in any case of the UUID', () => {
  const map = createUuidMap()
  const id = randomUUID()
  for (const value of [Number.MAX_SAFE_INTEGER, 2 ** 32, 1, 0]) {
    map.set(id.toUpperCase(), value, 255)
    expect(map.get(id)).toBe(value)
  }
  map.addBytes(toBytes(id), 0, 7, 1)
  expect(map.get(id)).toBe(0)
})

it('knows no text that is no UUID', () => {
  const map = createUuidMap()
  const id = '0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f'
  map.set(id, 1, 1)
  const others = ['', id.slice(1), `${id}0`, id.replace('-', '0'), id.replaceAll('-', '')]
  for (let at = 0; at < id.length; at += 1)
    for (const bad of ['g', '/', ':', '`', 'ÿ', 'İ', '\0', ' ']) others.push(id.slice(0, at) + bad + id.slice(at + 1))
  for (const text of others) {
    expect(map.get(text)).toBeUndefined()
    expect(map.set(text, 2, 1)).toBe(false)
    expect(map.delete(text)).toBe(false)
  }
  expect(map.size()).toBe(1)
})

it('takes up to 40 bytes for an entry while it grows, 54 while it shrinks', () => {
  const map = createUuidMap()
  const ids = Array.from({ length: 100_000 }, () => randomUUID())
  const perEntry = () => map.bytes() / map.size()
  for (const [n, id] of ids.entries()) {
    map.set(id, n, 1)
    if (n > 20_000 && n % 1_000 === 0) expect(perEntry()).toBeLessThanOrEqual(40.5)
  }
  for (const [n, id] of ids.entries()) {
    map.delete(id)
    if (n < 80_000 && n % 1_000 === 0) expect(perEntry()).toBeLessThanOrEqual(54)
  }
})
