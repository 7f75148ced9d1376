/** The room of bodies in the queue. Order, groups and numbers of pings: record.test.ts. */

import { expect, it } from 'vitest'
import { createPingQueue } from '../../../../src/checks/ping/queue.ts'

it('bodies of 32 MiB may wait, and more only when a group was taken', () => {
  const queue = createPingQueue()
  const entry = (since: number, bytes: number | null) => ({
    since,
    ping: { publicId: 'a', body: bytes === null ? null : Buffer.alloc(bytes) },
  })
  for (let since = 0; since < 32; since += 1) expect(queue.add(entry(since, 2 ** 20))).toBe(true)
  const short = entry(32, 1)
  expect([queue.add(short), queue.add(entry(33, null))]).toEqual([false, true])
  const group = queue.takeGroup()
  expect(queue.add(short)).toBe(true)
  queue.takeAll()
  queue.putBack(group)
  expect(queue.add(short)).toBe(false)
  queue.takeOlderThan(1)
  expect(queue.add(short)).toBe(true)
})
