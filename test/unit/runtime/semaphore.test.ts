import { describe, expect, it } from 'vitest'
import { createSemaphore } from '../../../src/runtime/semaphore.ts'

/** Work whose end the test decides. */
function aWork() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  return {
    isStarted: false,
    finish: resolve,
    fail: reject,
    run() {
      this.isStarted = true
      return promise
    },
  }
}
const queueFull = () => new Error('the queue is full')
const semaphore = (slots: number, length: number) =>
  createSemaphore({ slots, queue: { length, createError: queueFull } })
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('a semaphore', () => {
  it('runs as many pieces of work as it has slots, the others in order of arrival', async () => {
    const runInSlot = semaphore(2, 2)
    const works = [aWork(), aWork(), aWork(), aWork()]
    const results = works.map((work) => runInSlot(() => work.run()))
    await settle()
    expect(works.map((work) => work.isStarted)).toEqual([true, true, false, false])
    works[1]!.finish('second')
    await results[1]
    await settle()
    expect(works.map((work) => work.isStarted)).toEqual([true, true, true, false])
    for (const [index, work] of works.entries()) work.finish(`work ${index}`)
    expect(await Promise.all(results)).toEqual(['work 0', 'second', 'work 2', 'work 3'])
  })

  it('rejects work when the queue is full, and accepts work again when the queue moves', async () => {
    const runInSlot = semaphore(1, 1)
    const [running, queued, late] = [aWork(), aWork(), aWork()]
    const first = runInSlot(() => running.run())
    const second = runInSlot(() => queued.run())
    await expect(runInSlot(() => late.run())).rejects.toThrow('the queue is full')
    expect(late.isStarted).toBe(false)
    running.finish('done')
    await first
    await settle()
    const third = runInSlot(() => late.run())
    queued.finish('done')
    late.finish('late')
    expect(await Promise.all([second, third])).toEqual(['done', 'late'])
  })

  it('passes a slot to the next in line: work that arrives in between waits', async () => {
    const runInSlot = semaphore(1, 5)
    const [first, second, third] = [aWork(), aWork(), aWork()]
    const results = [runInSlot(() => first.run()), runInSlot(() => second.run())]
    first.finish('done')
    await results[0]
    results.push(runInSlot(() => third.run()))
    await settle()
    expect([second.isStarted, third.isStarted]).toEqual([true, false])
    second.finish('done')
    third.finish('done')
    await Promise.all(results)
  })

  it('frees the slot when work fails', async () => {
    const runInSlot = semaphore(1, 1)
    const failing = aWork()
    const first = runInSlot(() => failing.run())
    const second = runInSlot(async () => 'fine')
    failing.fail(new Error('broken'))
    await expect(first).rejects.toThrow('broken')
    expect(await second).toBe('fine')
    expect(await runInSlot(async () => 'and again')).toBe('and again')
  })
})
