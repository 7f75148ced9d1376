import { expect, it } from 'vitest'
import { createPingQueue } from '../../../../src/checks/ping/queue.ts'

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
  expect(queue.oldestSince()).toBe(0)
  expect(numbersOf(queue.takeGroup())).toEqual([8, 9, 0, 1])
  expect(queue.oldestSince()).toBe(Number.POSITIVE_INFINITY)
})

it('old entries are taken out wherever they are', () => {
  const queue = createFilled(3)
  queue.putBack([entry(2), entry(0)])
  expect(numbersOf(queue.takeOlderThan(2))).toEqual([0, 0, 1])
  expect(numbersOf(queue.takeOlderThan(2))).toEqual([])
  expect(numbersOf(queue.takeGroup())).toEqual([2, 2])
})

it('entries that rest are in no group, and neither are newer ones of their checks, until they are taken in order', () => {
  const queue = createFilled(0)
  queue.add(entry(1, 'held'))
  const held = queue.takeGroup()
  for (const [since, id] of [
    [2, 'other'],
    [3, 'held'],
  ] as const)
    queue.add(entry(since, id))
  queue.rest(held)
  queue.add(entry(4, 'held'))
  queue.putBack([entry(5, 'other')])
  expect([queue.size(), queue.resting(), queue.isResting('held'), queue.oldestSince()]).toEqual([2, 3, true, 1])
  expect(numbersOf(queue.takeGroup())).toEqual([5, 2])
  expect(numbersOf(queue.takeRested(() => false))).toEqual([])
  expect(numbersOf(queue.takeRested(() => true))).toEqual([1, 3, 4])
  expect(queue.isResting('held')).toBe(false)
})

it('entries that rest count for the limit, and are taken out as others are', () => {
  const queue = createFilled(20_000)
  queue.rest(queue.takeGroup())
  expect([queue.resting(), queue.add(entry(0))]).toEqual([500, false])
  expect(numbersOf(queue.takeOlderThan(2))).toEqual([0, 1])
  expect(numbersOf(queue.takeAll(({ since }) => since === 499 || since === 500))).toEqual([499, 500])
  expect(queue.add(entry(0))).toBe(true)
})

it('bodies of 32 MiB may wait, and more only when a group was taken', () => {
  const queue = createFilled(0)
  const long = (since: number) => ({ since, ping: { publicId: 'a', body: Buffer.alloc(2 ** 20) } })
  for (let since = 0; since < 32; since += 1) expect(queue.add(long(since))).toBe(true)
  const short = { since: 32, ping: { publicId: 'a', body: Buffer.alloc(1) } }
  expect([queue.add(short), queue.add(entry(33))]).toEqual([false, true])
  const group = queue.takeGroup()
  expect(queue.add(short)).toBe(true)
  queue.takeAll(() => true)
  queue.rest(group)
  expect(queue.add(short)).toBe(false)
  queue.putBack(queue.takeRested(() => true))
  expect(queue.add(short)).toBe(false)
  queue.takeOlderThan(1)
  expect(queue.add(short)).toBe(true)
})
