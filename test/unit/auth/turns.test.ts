import { describe, expect, it } from 'vitest'
import { createTurns } from '../../../src/auth/turns.ts'

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
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('turns', () => {
  it('start no more pieces of work than may run at once, the others in their order', async () => {
    const takeTurn = createTurns({ atOnce: 2, waiting: 2 })
    const works = [aWork(), aWork(), aWork(), aWork()]
    const results = works.map((work) => takeTurn(() => work.run()))
    await settle()
    expect(works.map((work) => work.isStarted)).toEqual([true, true, false, false])
    works[1]!.finish('second')
    await results[1]
    await settle()
    expect(works.map((work) => work.isStarted)).toEqual([true, true, true, false])
    for (const [place, work] of works.entries()) work.finish(`work ${place}`)
    expect(await Promise.all(results)).toEqual(['work 0', 'second', 'work 2', 'work 3'])
  })

  it('refuse whoever comes when the line is full, and take them again when it moves', async () => {
    const takeTurn = createTurns({ atOnce: 1, waiting: 1 })
    const [running, waiting, late] = [aWork(), aWork(), aWork()]
    const first = takeTurn(() => running.run())
    const second = takeTurn(() => waiting.run())
    await expect(takeTurn(() => late.run())).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 })
    expect(late.isStarted).toBe(false)
    running.finish('done')
    await first
    await settle()
    const third = takeTurn(() => late.run())
    waiting.finish('done')
    late.finish('late')
    expect(await Promise.all([second, third])).toEqual(['done', 'late'])
  })

  it('hand a place over: nobody who comes meanwhile runs beside the one who got it', async () => {
    const takeTurn = createTurns({ atOnce: 1, waiting: 5 })
    const [first, second, third] = [aWork(), aWork(), aWork()]
    const results = [takeTurn(() => first.run()), takeTurn(() => second.run())]
    first.finish('done')
    await results[0]
    results.push(takeTurn(() => third.run()))
    await settle()
    expect([second.isStarted, third.isStarted]).toEqual([true, false])
    second.finish('done')
    third.finish('done')
    await Promise.all(results)
  })

  it('go on after work that failed', async () => {
    const takeTurn = createTurns({ atOnce: 1, waiting: 1 })
    const failing = aWork()
    const first = takeTurn(() => failing.run())
    const second = takeTurn(async () => 'fine')
    failing.fail(new Error('broken'))
    await expect(first).rejects.toThrow('broken')
    expect(await second).toBe('fine')
    expect(await takeTurn(async () => 'and again')).toBe('and again')
  })
})
