import { expect, it } from 'vitest'
import { LARGEST_BATCH, nextBatch, SMALLEST_BATCH } from '../../../src/checks/deadlines/expire-overdue.ts'

/** Batches that follow each other while `flipsOf` of each are flips. */
function batchesOf(count: number, flipsOf: (batch: number) => number): number[] {
  const batches = [SMALLEST_BATCH]
  while (batches.length < count) {
    const batch = batches.at(-1)!
    batches.push(nextBatch(batch, { flips: flipsOf(batch), isFull: true }))
  }
  return batches
}

it('batches stay small while everything goes down', () => {
  expect(batchesOf(4, (batch) => batch)).toEqual([5, 5, 5, 5])
})

it('batches grow to their limit while checks are only put off', () => {
  expect(batchesOf(9, () => 0)).toEqual([5, 10, 20, 40, 80, 160, LARGEST_BATCH, LARGEST_BATCH, LARGEST_BATCH])
})

it('a few flips among many that are put off change nothing', () => {
  expect(batchesOf(4, () => 2)).toEqual([5, 10, 20, 40])
})

it('a large batch with more flips than a small one could have is the last large one', () => {
  expect(nextBatch(LARGEST_BATCH, { flips: SMALLEST_BATCH, isFull: true })).toBe(LARGEST_BATCH)
  expect(nextBatch(LARGEST_BATCH, { flips: SMALLEST_BATCH + 1, isFull: true })).toBe(SMALLEST_BATCH)
})

it('whoever has caught up begins small again', () => {
  expect(nextBatch(LARGEST_BATCH, { flips: 0, isFull: false })).toBe(SMALLEST_BATCH)
})
