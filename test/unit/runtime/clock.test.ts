import { describe, expect, it } from 'vitest'
import { after as callAfter, waitForEvent } from '../../../src/runtime/clock.ts'
import { createManualClock } from '../../support/manual-clock.ts'

describe('after()', () => {
  it('acts once, when the time is over and not before', async () => {
    const clock = createManualClock()
    let acts = 0
    callAfter(clock, 1_000, () => {
      acts += 1
    })
    await clock.advance(999)
    expect(acts).toBe(0)
    await clock.advance(1)
    await clock.advance(10_000)
    expect(acts).toBe(1)
  })

  it('does not act once it was called off, and leaves no timer', async () => {
    const clock = createManualClock()
    let acts = 0
    const callOff = callAfter(clock, 1_000, () => {
      acts += 1
    })
    callOff()
    await clock.advance(10_000)
    expect(acts).toBe(0)
    expect(clock.wakeTimes()).toEqual([])
  })
})

describe('waitForEvent()', () => {
  function wait(signal = new AbortController().signal) {
    const clock = createManualClock()
    const seen = { isOver: false, listeners: 0, onEvent: () => {} }
    const listen = (onEvent: () => void) => {
      seen.onEvent = onEvent
      seen.listeners += 1
      return () => {
        seen.listeners -= 1
      }
    }
    void waitForEvent(clock, 1_000, signal, listen).then(() => {
      seen.isOver = true
    })
    return { clock, seen }
  }

  it('ends with the event', async () => {
    const { clock, seen } = wait()
    await clock.advance(500)
    expect(seen).toMatchObject({ isOver: false, listeners: 1 })
    seen.onEvent()
    await clock.settle()
    expect(seen).toMatchObject({ isOver: true, listeners: 0 })
    expect(clock.wakeTimes()).toEqual([])
  })

  it('ends after its time, and not before', async () => {
    const { clock, seen } = wait()
    await clock.advance(999)
    expect(seen.isOver).toBe(false)
    await clock.advance(1)
    expect(seen).toMatchObject({ isOver: true, listeners: 0 })
  })

  it('ends with the signal, and does not begin after it', async () => {
    const stopping = new AbortController()
    const { clock, seen } = wait(stopping.signal)
    stopping.abort()
    await clock.settle()
    expect(seen).toMatchObject({ isOver: true, listeners: 0 })
    const late = wait(AbortSignal.abort())
    await late.clock.settle()
    expect(late.seen).toMatchObject({ isOver: true, listeners: 0 })
  })
})
