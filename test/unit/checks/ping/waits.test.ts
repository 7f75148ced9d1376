import { beforeEach, expect, it } from 'vitest'
import { createPingWaits, type PingWaits } from '../../../../src/checks/ping/waits.ts'

let now: number
let waits: PingWaits
beforeEach(() => {
  now = 1_000_000
  waits = createPingWaits(() => now)
})

/** A ping gets its result now, having waited for so long. */
const settle = (waitedMs: number) => waits.onSettled(now - waitedMs)

it('the waits beside a batch are those of the pings that waited at any moment of it', () => {
  settle(1)
  waits.begin()
  now += 10
  // It began to wait before the batch.
  settle(12)
  settle(3)
  expect(waits.end()).toEqual({ besideMs: [12, 3], usualMs: 1, arePings: true })
  // It waits on after the batch, and counts beside the next one.
  now += 5
  settle(6)
  settle(4)
  waits.begin()
  expect(waits.end()).toEqual({ besideMs: [6], usualMs: 4, arePings: true })
  waits.begin()
  expect(waits.end()).toMatchObject({ besideMs: [] })
})

it('the usual wait is the 99th percentile of the newest pings without a batch beside them', () => {
  expect(waits.end().usualMs).toBeNull()
  for (let ms = 1; ms <= 3_000; ms += 1) {
    now += 1_000
    settle(ms)
  }
  waits.begin()
  settle(100_000)
  // Of 953 to 3,000.
  expect(waits.end().usualMs).toBe(2_980)
})

it('there are pings until a second has passed without one', () => {
  expect(waits.end().arePings).toBe(false)
  settle(1)
  now += 999
  expect(waits.end().arePings).toBe(true)
  now += 1
  expect(waits.end().arePings).toBe(false)
})

it('the usual wait stays as it is while it is not measured', () => {
  settle(5)
  waits.measureUsual(false)
  settle(9)
  expect(waits.end()).toMatchObject({ besideMs: [], usualMs: 5 })
  waits.measureUsual(true)
  now += 10
  settle(7)
  expect(waits.end().usualMs).toBe(7)
})
