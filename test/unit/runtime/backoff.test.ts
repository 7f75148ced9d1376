import { expect, it } from 'vitest'
import { backoffMs } from '../../../src/runtime/backoff.ts'

const STEPS = { firstMs: 800, maxMs: 30_000 }
const waits = (random?: () => number) => Array.from({ length: 8 }, (_, failures) => backoffMs(failures, STEPS, random))

it('doubles the wait up to its maximum', () => {
  expect(waits()).toEqual([800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000])
  expect(backoffMs(5_000, STEPS)).toBe(30_000)
})

it('spreads the wait over its second half with a source of randomness, and stays within the maximum', () => {
  expect(waits(() => 0)).toEqual([800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000, 15_000])
  expect(waits(() => 0.5)).toEqual([1_200, 2_400, 4_800, 9_600, 19_200, 22_500, 22_500, 22_500])
  expect(Math.max(...waits(() => 1))).toBe(30_000)
  expect(backoffMs(5_000, STEPS, () => 0)).toBe(15_000)
})
