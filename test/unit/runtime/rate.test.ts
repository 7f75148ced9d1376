import { describe, expect, it } from 'vitest'
import { createRate } from '../../../src/runtime/rate.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const NEVER = new AbortController().signal

describe('turns that are waited for', () => {
  it('come one after the other, in the order of the calls', async () => {
    const clock = createManualClock()
    const rate = createRate(clock, 5)
    const taken: number[] = []
    for (const caller of [1, 2, 3]) void rate.take(NEVER).then(() => taken.push(caller))
    await clock.settle()
    expect(taken).toEqual([1])
    await clock.advance(199)
    expect(taken).toEqual([1])
    await clock.advance(1)
    expect(taken).toEqual([1, 2])
    await clock.advance(200)
    expect(taken).toEqual([1, 2, 3])
  })

  it('end with the signal, and leave no timer', async () => {
    const clock = createManualClock()
    const rate = createRate(clock, 1)
    const stopping = new AbortController()
    const turns = Promise.all([rate.take(stopping.signal), rate.take(stopping.signal)])
    await clock.settle()
    stopping.abort()
    await turns
    expect(clock.wakeTimes()).toEqual([])
  })
})

describe('turns that are taken now', () => {
  it('are as many as may come at once, then one each interval', async () => {
    const clock = createManualClock()
    const rate = createRate(clock, 2, 3)
    expect([1, 2, 3, 4].map(() => rate.tryTake())).toEqual([true, true, true, false])
    await clock.advance(499)
    expect(rate.tryTake()).toBe(false)
    await clock.advance(1)
    expect([1, 2].map(() => rate.tryTake())).toEqual([true, false])
  })

  it('do not add up over a long rest, and a refused one costs nothing', async () => {
    const clock = createManualClock()
    const rate = createRate(clock, 2, 3)
    for (let times = 0; times < 20; times += 1) rate.tryTake()
    await clock.advance(3_600_000)
    expect([1, 2, 3, 4].map(() => rate.tryTake())).toEqual([true, true, true, false])
  })
})
