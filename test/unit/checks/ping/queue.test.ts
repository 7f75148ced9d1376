import { expect, it } from 'vitest'
import { createPingQueue, oldestOf } from '../../../../src/checks/ping/queue.ts'

/** Entries 0, 1, 2 ..., each of which began to wait when its number says. */
function createFilled(count: number) {
  const queue = createPingQueue()
  for (let since = 0; since < count; since += 1) expect(queue.add(entry(since))).toBe(true)
  return queue
}
const entry = (since: number, publicId = `check-${since}`) => ({
  since,
  ping: { publicId, body: null as Buffer | null },
})
const numbersOf = (entries: readonly { since: number }[]) => entries.map(({ since }) => since)

it('a queue gives groups in the order of arrival, of at most 500', () => {
  const queue = createFilled(501)
  expect(numbersOf(queue.takeGroup())).toEqual(Array.from({ length: 500 }, (_, index) => index))
  queue.add(entry(501))
  expect(numbersOf(queue.takeGroup())).toEqual([500, 501])
  expect(queue.takeGroup()).toEqual([])
})

it('a queue takes 20,000 entries, and more only when a group was taken', () => {
  const queue = createFilled(20_000)
  expect(queue.add(entry(0))).toBe(false)
  expect(queue.size()).toBe(20_000)
  queue.takeGroup()
  expect(queue.add(entry(0))).toBe(true)
})

it('entries that are put back come before all others, in their order', () => {
  const queue = createFilled(2)
  queue.putBack([entry(8), entry(9)])
  expect(oldestOf(queue.entries())).toBe(0)
  expect(numbersOf(queue.takeGroup())).toEqual([8, 9, 0, 1])
  expect(oldestOf(queue.entries())).toBe(Number.POSITIVE_INFINITY)
})

it('old entries are taken out wherever they are', () => {
  const queue = createFilled(3)
  queue.putBack([entry(2), entry(0)])
  expect(numbersOf(queue.takeOlderThan(2))).toEqual([0, 0, 1])
  expect(numbersOf(queue.takeOlderThan(2))).toEqual([])
  expect(numbersOf(queue.takeGroup())).toEqual([2, 2])
})

it('bodies of 32 MiB may wait, and more only when a group was taken', () => {
  const queue = createFilled(0)
  const long = (since: number) => ({ since, ping: { publicId: 'a', body: Buffer.alloc(2 ** 20) } })
  for (let since = 0; since < 32; since += 1) expect(queue.add(long(since))).toBe(true)
  const short = { since: 32, ping: { publicId: 'a', body: Buffer.alloc(1) } }
  expect([queue.add(short), queue.add(entry(33))]).toEqual([false, true])
  const group = queue.takeGroup()
  expect(queue.add(short)).toBe(true)
  queue.takeAll()
  queue.putBack(group)
  expect(queue.add(short)).toBe(false)
  queue.takeOlderThan(1)
  expect(queue.add(short)).toBe(true)
})
