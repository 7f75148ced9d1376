import { expect, it } from 'vitest'
import { createEvaluator, MAX_BATCH, MIN_BATCH, sizeAfterFull } from '../../../src/checks/deadlines/evaluator.ts'
import { createManualClock } from '../../support/manual-clock.ts'

/** Full batches that follow each other while `flipsOf` of each are flips. */
function batchesOf(count: number, flipsOf: (batch: number) => number): number[] {
  const batches = [MIN_BATCH]
  while (batches.length < count) batches.push(sizeAfterFull(batches.at(-1)!, flipsOf(batches.at(-1)!)))
  return batches
}

it.each([
  ['batches stay small while every check goes down', (batch: number) => batch, [5, 5, 5, 5]],
  ['batches grow to their limit while checks are only postponed', () => 0, [5, 10, 20, 40, 80, 160, 320, 320]],
  ['a few flips among many checks that are postponed change nothing', () => 2, [5, 10, 20, 40]],
])('%s', (_, flipsOf, batches) => {
  expect(batchesOf(batches.length, flipsOf)).toEqual(batches)
})

it('a large batch with more flips than a small one could have is the last large one', () => {
  expect(sizeAfterFull(MAX_BATCH, MIN_BATCH)).toBe(MAX_BATCH)
  expect(sizeAfterFull(MAX_BATCH, MIN_BATCH + 1)).toBe(MIN_BATCH)
})

it.each([
  [501, 'done'],
  [500, 'evaluated'],
])(
  'while a ping has waited for %i ms, after yielding to pings, the evaluator is %s',
  async (oldestWaitMs, expected) => {
    let hasYielded = false
    const session = async () => {
      throw new Error(hasYielded ? 'evaluated' : 'did not yield')
    }
    const evaluate = createEvaluator({
      database: { session } as never,
      cache: undefined as never,
      recorder: {
        isSpooling: () => false,
        oldestWaitMs: () => oldestWaitMs,
        async yieldToPings() {
          hasYielded = true
        },
      },
      clock: createManualClock(),
      onFlip: () => {},
      onFailed: () => {},
    })
    expect(await evaluate(AbortSignal.abort()).catch((error: Error) => error.message)).toBe(expected)
  },
)

it('a batch that is not full is followed by a small one', async () => {
  const areFull = [true, true, false, true]
  const sizes: unknown[] = []
  const tx = {
    async queryColumns({ values }: { values: unknown[] }) {
      sizes.push(values[0])
      return []
    },
  }
  const session = (use: (session: object) => unknown) =>
    use({
      async groupTransaction(_budgetMs: number, read: (queryable: typeof tx) => Promise<unknown>) {
        await read(tx)
        return { flips: [], failed: [], isFull: areFull[sizes.length - 1], saved: null }
      },
    })
  const evaluate = createEvaluator({
    database: { session } as never,
    cache: undefined as never,
    recorder: { isSpooling: () => false, oldestWaitMs: () => 0, yieldToPings: async () => {} },
    clock: createManualClock(),
    onFlip: () => {},
    onFailed: () => {},
  })
  for (const _ of areFull) await evaluate(AbortSignal.abort())
  expect(sizes).toEqual([5, 10, 20, 5])
})
