import { describe, expect, it } from 'vitest'
import {
  type Allowance,
  MAX_BATCH,
  MIN_BATCH,
  nextAllowance,
  planBatch,
  SMALLEST,
} from '../../../src/checks/deadlines/batch-size.ts'
import type { Waits } from '../../../src/checks/ping/waits.ts'
import { createRandom } from '../../support/random.ts'

const USUAL_MS = 6
const NO_PINGS: Waits = { besideMs: [], usualMs: USUAL_MS, arePings: false }
const waits = (...besideMs: number[]): Waits => ({ besideMs, usualMs: USUAL_MS, arePings: true })
const SHORT = waits(USUAL_MS)
const LONG = waits(2 * USUAL_MS)

/** The limits of batches that follow each other. */
function limitsOf(batches: readonly Waits[], from: Allowance = SMALLEST): number[] {
  const limits: number[] = []
  let allowance = from
  for (const batch of batches) {
    allowance = nextAllowance(allowance, batch)
    limits.push(planBatch(allowance).limit)
  }
  return limits
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

describe('batches', () => {
  it('double to their limit while there are no pings', () => {
    expect(limitsOf(times(7, NO_PINGS))).toEqual([10, 20, 40, 80, MAX_BATCH, MAX_BATCH, MAX_BATCH])
  })

  it('double while pings wait beside them no longer than usual', () => {
    expect(limitsOf(times(3, SHORT))).toEqual([10, 20, 40])
  })

  it('have shorter rests while pings wait no longer than usual beside the largest', () => {
    const rests: number[] = []
    let allowance: Allowance = { size: MAX_BATCH / 2, isProbing: true }
    for (let batch = 0; batch < 5; batch += 1) {
      allowance = nextAllowance(allowance, batch < 4 ? SHORT : LONG)
      rests.push(planBatch(allowance).rest)
    }
    expect(rests).toEqual([1, 1 / 2, 1 / 4, 1 / 4, 1 / 2])
  })

  it('stay as they are beside pings of which none has waited beside one', () => {
    expect(limitsOf(times(3, waits()))).toEqual([5, 5, 5])
  })

  it('are halved by a ping that waits too long, and grow slowly from then on', () => {
    expect(limitsOf([NO_PINGS, NO_PINGS, NO_PINGS, LONG, ...times(45, SHORT)])).toEqual(
      expect.arrayContaining([40, 20, 20, 20, 20, 21, 40]),
    )
  })

  it('double again once there are no pings', () => {
    expect(limitsOf([NO_PINGS, LONG, NO_PINGS, NO_PINGS, SHORT])).toEqual([10, 5, 10, 20, 40])
  })

  it('shrink to a quarter at most, however many pings have waited too long', () => {
    expect(limitsOf([waits(...times(30, 100))], { size: 160, isProbing: true })).toEqual([40])
  })

  it('grow to twice at most, however many pings have waited', () => {
    expect(limitsOf([waits(...times(500, 1))], { size: 20, isProbing: false })).toEqual([40])
  })

  it('are the smallest, with the longest rests, beside pings of which it is not known what is usual', () => {
    const allowance = nextAllowance({ size: 160, isProbing: true }, { ...SHORT, usualMs: null })
    expect(planBatch(allowance)).toEqual({ limit: MIN_BATCH, rest: 4, isUsual: true })
  })

  it('have room for five deadlines however long pings wait; rests grow instead', () => {
    const rests: number[] = []
    let allowance = SMALLEST
    for (const batch of [LONG, LONG, LONG, ...times(180, SHORT)]) {
      allowance = nextAllowance(allowance, batch)
      expect(planBatch(allowance).limit).toBeGreaterThanOrEqual(MIN_BATCH)
      rests.push(planBatch(allowance).rest)
    }
    expect(rests.slice(0, 3)).toEqual([2, 4, 4])
    expect(rests.at(-1)).toBe(1)
  })
})

it('a machine whose pings wait in proportion to the batch has one in a hundred that waits too long', () => {
  const random = createRandom(1)
  // Beside a batch of 50 they wait for 1.3 times the usual time on average, and each for a random time around that.
  const waitOf = (size: number) => (USUAL_MS * 1.3 * size * (random.int(50, 150) / 100)) / 50
  let allowance = SMALLEST
  let long = 0
  let all = 0
  const sizes: number[] = []
  for (let batch = 0; batch < 5_000; batch += 1) {
    const { limit } = planBatch(allowance)
    const besideMs = [waitOf(limit), waitOf(limit)]
    allowance = nextAllowance(allowance, waits(...besideMs))
    if (batch < 500) continue
    sizes.push(limit)
    all += besideMs.length
    long += besideMs.filter((ms) => ms > USUAL_MS * 1.3).length
  }
  expect(long / all).toBeLessThan(0.015)
  expect(long / all).toBeGreaterThan(0.005)
  expect(sizes.reduce((sum, size) => sum + size, 0) / sizes.length).toBeGreaterThan(15)
})
