import { expect, it } from 'vitest'
import { createPingQueue } from '../../../../src/checks/ping/queue.ts'

/** Entries 0, 1, 2 ..., each of which began to wait when its number says. */
function createFilled(count: number) {
  const queue = createPingQueue<{ since: number }>()
  for (let since = 0; since < count; since += 1) expect(queue.add({ since })).toBe(true)
  return queue
}
const numbersOf = (entries: readonly { since: number }[]) => entries.map(({ since }) => since)

it('a queue gives groups in the order of arrival, of at most 500', () => {
  const queue = createFilled(501)
  expect(numbersOf(queue.takeGroup())).toEqual(Array.from({ length: 500 }, (_, index) => index))
  queue.add({ since: 501 })
  expect(numbersOf(queue.takeGroup())).toEqual([500, 501])
  expect(queue.takeGroup()).toEqual([])
})

it('a queue takes 20,000 entries, and more only when a group was taken', () => {
  const queue = createFilled(20_000)
  expect(queue.add({ since: 0 })).toBe(false)
  expect(queue.size()).toBe(20_000)
  queue.takeGroup()
  expect(queue.add({ since: 0 })).toBe(true)
})

it('entries that are put back come before all others, in their order', () => {
  const queue = createFilled(2)
  queue.putBack([{ since: 8 }, { since: 9 }])
  expect(queue.oldestSince()).toBe(0)
  expect(numbersOf(queue.takeGroup())).toEqual([8, 9, 0, 1])
  expect(queue.oldestSince()).toBe(Number.POSITIVE_INFINITY)
})

it('old entries are taken out wherever they are', () => {
  const queue = createFilled(3)
  queue.putBack([{ since: 2 }, { since: 0 }])
  expect(numbersOf(queue.takeOlderThan(2))).toEqual([0, 0, 1])
  expect(numbersOf(queue.takeOlderThan(2))).toEqual([])
  expect(numbersOf(queue.takeGroup())).toEqual([2, 2])
})
