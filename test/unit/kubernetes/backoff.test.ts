import { expect, it } from 'vitest'
import { backoffMs } from '../../../src/kubernetes/backoff.ts'

const STEPS = { firstMs: 800, longestMs: 30_000 }

it('doubles, and is spread over as much again, up to its longest', () => {
  const waits = (chance: number) => Array.from({ length: 8 }, (_, failures) => backoffMs(failures, STEPS, () => chance))
  expect(waits(0)).toEqual([800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000, 15_000])
  expect(waits(0.5)).toEqual([1_200, 2_400, 4_800, 9_600, 19_200, 22_500, 22_500, 22_500])
  expect(Math.max(...waits(1))).toBe(30_000)
})

it('stays at its longest, however long it goes on', () => {
  expect(backoffMs(5_000, STEPS, () => 0)).toBe(15_000)
})
