import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { beforeEach, expect, it } from 'vitest'
import { createLookups } from '../../../src/delivery/lookups.ts'

const LIMITS = { atOnce: 2, longMs: 1_000, avoidMs: 30_000 }
const FOUND: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }]

let now = 0
let asked: { name: string; answer: (error?: Error) => void }[]
const lookup: LookupFunction = (name, _options, callback) => {
  const answer = (error?: Error) => (error === undefined ? callback(null, FOUND) : callback(error, []))
  asked.push({ name, answer })
}
const names = () => asked.map(({ name }) => name)
const settle = () => new Promise((resolve) => setImmediate(resolve))

beforeEach(() => {
  now = 0
  asked = []
})

it('asks for one name once, however many want it at the same time', async () => {
  const find = createLookups(lookup, () => now, LIMITS)
  const found = [find('a.test', {}), find('a.test', {})]
  await settle()
  expect(names()).toEqual(['a.test'])
  asked[0]!.answer()
  expect(await Promise.all(found)).toEqual([FOUND, FOUND])
  void find('a.test', {})
  await settle()
  expect(names()).toEqual(['a.test', 'a.test'])
})

it('takes no more threads than it may, and goes on as they are free again', async () => {
  const find = createLookups(lookup, () => now, LIMITS)
  const found = ['a.test', 'b.test', 'c.test'].map((name) => find(name, {}))
  await settle()
  expect(names()).toEqual(['a.test', 'b.test'])
  asked[1]!.answer(new Error('no such name'))
  await expect(found[1]).rejects.toThrow('no such name')
  await settle()
  expect(names()).toEqual(['a.test', 'b.test', 'c.test'])
  asked[0]!.answer()
  asked[2]!.answer()
  expect(await found[0]).toEqual(FOUND)
  expect(await found[2]).toEqual(FOUND)
})

it.each([
  ['is not asked for again for a while when it took too long', LIMITS.longMs + 1, true],
  ['is asked for again when it did not', LIMITS.longMs, false],
])('a name %s', async (_what, tookMs, isAvoided) => {
  const find = createLookups(lookup, () => now, LIMITS)
  const first = find('slow.test', {})
  await settle()
  now += tookMs
  asked[0]!.answer(new Error('timed out'))
  await expect(first).rejects.toThrow('timed out')
  const second = find('slow.test', {})
  second.catch(() => {})
  await settle()
  expect(names()).toHaveLength(isAvoided ? 1 : 2)
  if (!isAvoided) return
  await expect(second).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  now += LIMITS.avoidMs
  void find('slow.test', {})
  await settle()
  expect(names()).toHaveLength(2)
})
