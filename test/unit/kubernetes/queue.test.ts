import { expect, it } from 'vitest'
import {
  createQueue,
  type Priority,
  type Queue,
  type QueueMetrics,
  type QueueOptions,
} from '../../../src/kubernetes/queue.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import { DAY } from '../../support/builders.ts'
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts'
import { isPending } from '../../support/until.ts'

function aQueue(overrides: Partial<QueueOptions> = {}) {
  const clock = createManualClock()
  return { clock, queue: createQueue({ clock, random: () => 0, ...overrides }) }
}

/** What a worker that is always free has been given so far. */
function collect(queue: Queue): string[] {
  const taken: string[] = []
  const work = async () => {
    for (let key = await queue.take(); key !== null; key = await queue.take()) {
      taken.push(key)
      queue.done(key)
    }
  }
  void work()
  return taken
}

async function takeAll(queue: Queue): Promise<string[]> {
  const keys: string[] = []
  while (queue.length() > 0) keys.push((await queue.take())!)
  return keys
}

it('hands keys out in the order in which they came, each once however often it was added', async () => {
  const { queue } = aQueue()
  for (const key of ['b', 'a', 'b', 'c', 'a']) queue.add(key)
  expect(queue.length()).toBe(3)
  expect(await takeAll(queue)).toEqual(['b', 'a', 'c'])
})

it('gives a key to the taker that has waited longest', async () => {
  const { queue } = aQueue()
  const [first, second] = [queue.take(), queue.take()]
  queue.add('a')
  queue.add('b')
  expect(await Promise.all([first, second])).toEqual(['a', 'b'])
})

it('gives a group of the keys that wait, live ones first, up to a number, and none that is being worked on', async () => {
  const { queue } = aQueue()
  for (const key of ['a', 'b', 'c']) queue.add(key, 'background')
  queue.add('live')
  expect(await queue.take()).toBe('live')
  queue.add('live')
  expect([queue.takeWaiting(0), queue.takeWaiting(2), queue.takeWaiting(9)]).toEqual([[], ['a', 'b'], ['c']])
  queue.done('live')
  expect(queue.takeWaiting(9)).toEqual(['live'])
})

it('queues a key again that was added while being worked on, and never gives it to two workers', async () => {
  const { queue } = aQueue()
  queue.add('a')
  await queue.take()
  queue.add('a')
  queue.add('a')
  expect(queue.length()).toBe(1)
  const second = queue.take()
  expect(await isPending(second)).toBe(true)
  queue.done('a')
  expect(await second).toBe('a')
  queue.done('a')
  expect(queue.length()).toBe(0)
})

it('does not queue a key again that was not added meanwhile', async () => {
  const { queue } = aQueue()
  queue.add('a')
  await queue.take()
  queue.done('a')
  queue.done('a')
  const next = queue.take()
  expect(await isPending(next)).toBe(true)
  queue.add('b')
  expect(await next).toBe('b')
})

it('lets live changes overtake what waits in the background, and moves a key up that changes', async () => {
  const { queue } = aQueue()
  for (const key of ['a', 'b', 'c']) queue.add(key, 'background')
  queue.add('live')
  queue.add('b', 'live')
  queue.add('live', 'background')
  expect(queue.length()).toBe(4)
  expect(await takeAll(queue)).toEqual(['live', 'b', 'a', 'c'])
})

it('gives the background a turn after 20 live changes in a row, however many more wait', async () => {
  const { queue } = aQueue()
  for (const key of ['a', 'b']) queue.add(key, 'background')
  const live = Array.from({ length: 45 }, (_, n) => `live-${n}`)
  for (const key of live) queue.add(key)
  const taken = await takeAll(queue)
  expect(taken).toHaveLength(47)
  expect([taken[20], taken[41]]).toEqual(['a', 'b'])
  expect(taken.filter((key) => key.startsWith('live'))).toEqual(live)
})

it('remembers the higher priority of a key that waits behind its own worker', async () => {
  const { queue } = aQueue()
  queue.add('a', 'background')
  await queue.take()
  queue.add('a', 'background')
  queue.add('a', 'live')
  queue.add('b', 'background')
  queue.done('a')
  expect(await takeAll(queue)).toEqual(['a', 'b'])
})

it('keeps the order over many takes and removals from the middle', async () => {
  const { queue } = aQueue()
  const keys = Array.from({ length: 1_000 }, (_, index) => `key-${index}`)
  for (const key of keys) queue.add(key, 'background')
  for (const key of keys.slice(0, 500)) {
    expect(await queue.take()).toBe(key)
    queue.done(key)
    queue.add(key, 'background')
  }
  queue.add('key-700')
  expect(await queue.take()).toBe('key-700')
  const rest = await takeAll(queue)
  expect(rest).toEqual([...keys.slice(500, 700), ...keys.slice(701), ...keys.slice(0, 500)])
})

it('lets the earliest of several delays win, for one key and among keys, under a single timer', async () => {
  const { queue, clock } = aQueue()
  const taken = collect(queue)
  queue.addAfter('a', 5_000)
  queue.addAfter('b', 3_000)
  queue.addAfter('a', 1_000)
  queue.addAfter('a', 4_000)
  queue.addAfter('c', 2_000)
  await clock.settle()
  expect(clock.wakeTimes()).toEqual([clock.now() + 1_000])
  await clock.advance(1_000)
  expect(taken).toEqual(['a'])
  await clock.advance(10_000)
  expect(taken).toEqual(['a', 'c', 'b'])
  expect(clock.wakeTimes()).toEqual([])
})

it('hands out many delayed keys in the order of their times', async () => {
  const { queue, clock } = aQueue()
  const taken = collect(queue)
  // Every number below 997 once, in disorder.
  const delays = Array.from({ length: 996 }, (_, index) => ((index + 1) * 571) % 997)
  for (const ms of delays) queue.addAfter(`${ms}`, ms)
  await clock.advance(1_000)
  expect(taken).toEqual(delays.sort((a, b) => a - b).map(String))
})

it('keeps a delay when the key is added directly meanwhile', async () => {
  const { queue, clock } = aQueue()
  const taken = collect(queue)
  queue.addAfter('a', 1_000)
  queue.add('a')
  await clock.advance(999)
  expect(taken).toEqual(['a'])
  await clock.advance(1)
  expect(taken).toEqual(['a', 'a'])
})

it('adds a key without a delay directly', () => {
  const { queue } = aQueue()
  queue.addAfter('now', 0)
  queue.addAfter('overdue', -5)
  expect(queue.length()).toBe(2)
})

it('rejects a delay that is not a number, which would break the order of the heap', () => {
  const { queue } = aQueue()
  for (const ms of [Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => queue.addAfter('a', ms)).toThrow(/cannot wait .* for a/)
  }
})

it('keeps a key waiting for a year although the clock wakes it early, as Node timers do after 24 days', async () => {
  const manual = createManualClock()
  const clock: Clock = { now: manual.now, sleep: (ms, signal) => manual.sleep(Math.min(ms, 2 ** 31 - 1), signal) }
  const { queue } = aQueue({ clock })
  queue.addAfter('a', 365 * DAY)
  await manual.advance(365 * DAY - 1)
  expect(queue.length()).toBe(0)
  await manual.advance(1)
  expect(queue.length()).toBe(1)
})

it('gives a delayed key the priority that its worker has it with, and a higher one wins', async () => {
  const { queue, clock } = aQueue()
  queue.add('resynced', 'background')
  await queue.take()
  queue.addAfter('resynced', 10)
  queue.done('resynced')
  queue.addAfter('changed', 10)
  queue.addAfter('both', 5, 'live')
  queue.addAfter('both', 5, 'background')
  queue.addAfter('either', 6, 'background')
  queue.addAfter('either', 7, 'live')
  queue.addAfter('none', 1, 'background')
  await clock.advance(10)
  expect(await takeAll(queue)).toEqual(['both', 'either', 'changed', 'none', 'resynced'])
})

async function backoffsOf(queue: Queue, clock: ManualClock, failures: number): Promise<number[]> {
  const waits: number[] = []
  for (let failed = 0; failed < failures; failed += 1) {
    queue.addBackedOff('a')
    const waitMs = clock.wakeTimes()[0]! - clock.now()
    waits.push(Math.round(waitMs))
    await clock.advance(waitMs)
    expect(await queue.take()).toBe('a')
    queue.done('a')
  }
  return waits
}

it('backs off from 100 ms, twice as long each time, and never longer than five minutes', async () => {
  const earliest = aQueue({ random: () => 0 })
  expect(await backoffsOf(earliest.queue, earliest.clock, 13)).toEqual([
    100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 150_000, 150_000,
  ])
  expect(earliest.queue.failures('a')).toBe(13)
  const latest = aQueue({ random: () => 1 - Number.EPSILON })
  const waits = await backoffsOf(latest.queue, latest.clock, 100)
  expect(waits.slice(0, 2)).toEqual([200, 400])
  expect(waits.slice(11)).toEqual(Array(89).fill(300_000))
})

it('starts the back-off again after forget(), separately for each key', async () => {
  const { queue, clock } = aQueue()
  await backoffsOf(queue, clock, 5)
  queue.forget('a')
  expect(queue.failures('a')).toBe(0)
  expect(await backoffsOf(queue, clock, 2)).toEqual([100, 200])
  queue.addBackedOff('b')
  expect(clock.wakeTimes()).toEqual([clock.now() + 100])
})

it('hands out what is left after a stop, also what waits behind its own worker, and takes nothing more', async () => {
  const { queue, clock } = aQueue()
  queue.add('a')
  queue.add('b')
  queue.addAfter('delayed', 1_000)
  expect(await queue.take()).toBe('a')
  queue.add('a')
  queue.stop()
  queue.add('late')
  queue.addAfter('late', 5)
  queue.addBackedOff('late')
  expect(clock.wakeTimes()).toEqual([])
  expect(await queue.take()).toBe('b')
  const last = queue.take()
  const none = queue.take()
  expect(await isPending(last)).toBe(true)
  queue.done('a')
  expect(await last).toBe('a')
  expect(await none).toBeNull()
  expect(await queue.take()).toBeNull()
  await clock.advance(10_000)
  expect(queue.length()).toBe(0)
})

it('lets one who no longer waits go without a key, and loses none', async () => {
  const { queue } = aQueue()
  const leaving = new AbortController()
  const left = queue.take(leaving.signal)
  const stayed = queue.take()
  leaving.abort()
  expect(await left).toBeNull()
  queue.add('a')
  expect(await stayed).toBe('a')
  expect(await queue.take(leaving.signal)).toBeNull()
})

function watchMetrics() {
  const depth: Record<Priority, number> = { live: 0, background: 0 }
  const seen = { adds: 0, retries: 0, waited: [] as number[], depth }
  const metrics: QueueMetrics = {
    begin: () => {},
    added() {
      seen.adds += 1
    },
    depthChanged(priority, by) {
      depth[priority] += by
    },
    waited: (seconds) => void seen.waited.push(seconds),
    worked: () => {},
    retried() {
      seen.retries += 1
    },
  }
  return { seen, metrics }
}

it('counts adds that came through, retries, and how deep each priority is', async () => {
  const { seen, metrics } = watchMetrics()
  const { queue, clock } = aQueue({ metrics })
  queue.add('a', 'background')
  queue.add('a', 'background')
  queue.add('b', 'background')
  expect(seen).toMatchObject({ adds: 2, depth: { live: 0, background: 2 } })
  queue.add('a')
  expect(seen).toMatchObject({ adds: 2, depth: { live: 1, background: 1 } })
  await queue.take()
  expect(seen.depth).toEqual({ live: 0, background: 1 })
  queue.add('a')
  expect(seen).toMatchObject({ adds: 3, depth: { live: 1, background: 1 } })
  queue.addAfter('c', 10)
  queue.addBackedOff('d')
  queue.addAfter('e', 0)
  expect(seen).toMatchObject({ adds: 4, retries: 2 })
  await clock.advance(100)
  expect(seen).toMatchObject({ adds: 6, retries: 2, depth: { live: 4, background: 1 } })
})

it('has no depth any more once stopped, whether it is drained or not', async () => {
  const { seen, metrics } = watchMetrics()
  const { queue } = aQueue({ metrics })
  queue.add('a')
  queue.add('b', 'background')
  queue.stop()
  queue.stop()
  expect(seen.depth).toEqual({ live: 0, background: 0 })
  expect(await queue.take()).toBe('a')
  expect(seen.depth).toEqual({ live: 0, background: 0 })
  expect(seen.waited).toHaveLength(1)
})

it('F10: takes keys round robin by namespace, in their order within each', async () => {
  const { queue } = aQueue()
  for (const key of ['a/1', 'a/2', 'a/3', 'a/4', 'b/1', 'b/2', 'node-1', 'node-2']) queue.add(key)
  expect(await takeAll(queue)).toEqual(['a/1', 'b/1', 'node-1', 'a/2', 'b/2', 'node-2', 'a/3', 'a/4'])
})

it('F10: takes the single key of one namespace next, though 5,000 of another wait', async () => {
  const { queue } = aQueue()
  for (let n = 0; n < 5_000; n += 1) queue.add(`busy/n${n}`)
  expect(await queue.take()).toBe('busy/n0')
  queue.add('quiet/one')
  expect([await queue.take(), await queue.take()].sort()).toEqual(['busy/n1', 'quiet/one'])
  // It has no turn to make up for: the next one comes after the others again.
  queue.add('quiet/two')
  expect([await queue.take(), await queue.take()].sort()).toEqual(['busy/n2', 'quiet/two'])
})

it('F10: is fair in the background too, and gives no namespace a turn before live changes', async () => {
  const { queue } = aQueue()
  for (const key of ['a/1', 'a/2', 'b/1', 'a/3']) queue.add(key, 'background')
  queue.add('a/3', 'live')
  queue.add('a/4', 'live')
  expect(await takeAll(queue)).toEqual(['a/3', 'a/4', 'a/1', 'b/1', 'a/2'])
})

it('F10: gives a namespace no turn for keys that were moved up', async () => {
  const { queue } = aQueue()
  for (const key of ['a/1', 'b/1', 'c/1', 'b/2']) queue.add(key, 'background')
  queue.add('b/1')
  queue.add('b/2')
  queue.add('b/3', 'background')
  expect(await takeAll(queue)).toEqual(['b/1', 'b/2', 'a/1', 'c/1', 'b/3'])
})
