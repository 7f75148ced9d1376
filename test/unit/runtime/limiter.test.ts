import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createLimiter } from '../../../src/runtime/limiter.ts'
import { settle } from '../../support/until.ts'

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
const createError = () => new Error('too much waits')
const limiter = (atOnce: number, waiting: number) => createLimiter({ atOnce, waiting, createError })

describe('a limiter', () => {
  it('runs as many pieces of work as it may at once, the others in order of arrival', async () => {
    const inTurn = limiter(2, 2)
    const works = [aWork(), aWork(), aWork(), aWork()]
    const results = works.map((work) => inTurn(() => work.run()))
    await settle()
    expect(works.map((work) => work.isStarted)).toEqual([true, true, false, false])
    works[1]!.finish('second')
    await results[1]
    await settle()
    expect(works.map((work) => work.isStarted)).toEqual([true, true, true, false])
    for (const [index, work] of works.entries()) work.finish(`work ${index}`)
    expect(await Promise.all(results)).toEqual(['work 0', 'second', 'work 2', 'work 3'])
  })

  it('rejects work beyond what may wait, and accepts work again when the line moves', async () => {
    const inTurn = limiter(1, 1)
    const [running, queued, late] = [aWork(), aWork(), aWork()]
    const first = inTurn(() => running.run())
    const second = inTurn(() => queued.run())
    await expect(inTurn(() => late.run())).rejects.toThrow('too much waits')
    expect(late.isStarted).toBe(false)
    running.finish('done')
    await first
    await settle()
    const third = inTurn(() => late.run())
    queued.finish('done')
    late.finish('late')
    expect(await Promise.all([second, third])).toEqual(['done', 'late'])
  })

  it('passes the turn to the next in line: work that arrives in between waits', async () => {
    const inTurn = limiter(1, 5)
    const [first, second, third] = [aWork(), aWork(), aWork()]
    const results = [inTurn(() => first.run()), inTurn(() => second.run())]
    first.finish('done')
    await results[0]
    results.push(inTurn(() => third.run()))
    await settle()
    expect([second.isStarted, third.isStarted]).toEqual([true, false])
    second.finish('done')
    third.finish('done')
    await Promise.all(results)
  })

  it('ends the turn when work fails', async () => {
    const inTurn = limiter(1, 1)
    const failing = aWork()
    const first = inTurn(() => failing.run())
    const second = inTurn(async () => 'fine')
    failing.fail(new Error('broken'))
    await expect(first).rejects.toThrow('broken')
    expect(await second).toBe('fine')
    expect(await inTurn(async () => 'and again')).toBe('and again')
  })

  it('runs so much work of one key, and so much of all', async () => {
    const inTurn = createLimiter({ atOnce: 3, perKey: 2, createError })
    const works = ['a', 'a', 'a', 'b', 'c'].map((key) => ({ key, work: aWork() }))
    const results = works.map(({ key, work }) => inTurn(() => work.run(), [key]))
    await settle()
    const started = () => works.map(({ work }) => work.isStarted)
    expect(started()).toEqual([true, true, false, true, false])
    works[0]!.work.finish('done')
    await results[0]
    await settle()
    // In the line of all before the work that waited for its key.
    expect(started()).toEqual([true, true, false, true, true])
    works[4]!.work.finish('done')
    await settle()
    expect(started()).toEqual([true, true, true, true, true])
    for (const { work } of works) work.finish('done')
    await Promise.all(results)
  })

  it('lets so much work wait with one key, and more with others', async () => {
    const inTurn = createLimiter({ perKey: 1, waiting: 1, createError })
    const work = aWork()
    const results = ['a', 'a', 'b'].map((key) => inTurn(() => work.run(), [key]))
    await expect(inTurn(() => work.run(), ['a'])).rejects.toThrow('too much waits')
    work.finish('done')
    expect(await Promise.all(results)).toEqual(['done', 'done', 'done'])
    expect(await inTurn(() => work.run(), ['a'])).toBe('done')
  })

  it('rejects work that has waited too long for a key or for all, and gives no turn to it later', async () => {
    for (const [keys, others] of [
      [['a'], ['a']],
      [['a'], ['b']],
      [['a'], []],
      [
        ['a', 'b'],
        ['c', 'b'],
      ],
    ]) {
      const inTurn = createLimiter({ atOnce: 1, perKey: 1, waitMs: 1, createError })
      const [running, late] = [aWork(), aWork()]
      const first = inTurn(() => running.run(), keys)
      await expect(inTurn(() => late.run(), others)).rejects.toThrow('too much waits')
      running.finish('done')
      await first
      expect(late.isStarted).toBe(false)
      expect(await inTurn(async () => 'next', keys)).toBe('next')
      expect(await inTurn(async () => 'next', others)).toBe('next')
    }
  })

  it('counts the waits for a key and for all together', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const inTurn = createLimiter({ atOnce: 1, perKey: 1, waitMs: 1_000, createError })
    const [a, b] = [aWork(), aWork()]
    const running = [inTurn(() => a.run(), ['a']), inTurn(() => b.run(), ['b'], 60_000)]
    const outcomes: string[] = []
    const late = inTurn(async () => 'done', ['a']).then(
      () => outcomes.push('done'),
      () => outcomes.push('rejected'),
    )
    await vi.advanceTimersByTimeAsync(600)
    // Now b runs, and what waited for the key waits for b.
    a.finish('done')
    await vi.advanceTimersByTimeAsync(399)
    expect(outcomes).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(outcomes).toEqual(['rejected'])
    b.finish('done')
    await Promise.all([...running, late])
  })

  it('gives work with several keys the turn of one after the other', async () => {
    const inTurn = createLimiter({ perKey: 1, createError })
    const [a, b] = [aWork(), aWork()]
    const running = [inTurn(() => a.run(), ['a']), inTurn(() => b.run(), ['b'])]
    const both = inTurn(async () => 'both', ['a', 'b'])
    const short = inTurn(async () => 'short', ['b'], 1)
    await expect(short).rejects.toThrow('too much waits')
    a.finish('done')
    await running[0]
    await settle()
    // It has the turn of the first key, and waits for the second.
    await expect(inTurn(async () => 'late', ['a'], 1)).rejects.toThrow('too much waits')
    b.finish('done')
    expect(await both).toBe('both')
    await Promise.all(running)
  })
})
