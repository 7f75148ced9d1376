import { expect, it } from 'vitest'
import { BATCH, createEvaluator } from '../../../src/checks/deadlines/evaluator.ts'
import { createManualClock } from '../../support/manual-clock.ts'

type Options = Parameters<typeof createEvaluator>[0]

/** While there are no pings. `session`: of its database. */
const anEvaluator = (session: unknown, recorder: Partial<Options['recorder']>, clock = createManualClock()) =>
  createEvaluator({
    database: { session } as never,
    recorder: {
      isSpooling: () => false,
      oldestWaitMs: () => 0,
      lockedIds: () => [],
      arePings: () => false,
      yieldToPings: async () => {},
      ...recorder,
    },
    clock,
    onFlip: () => {},
    onFailed: () => {},
  })

it.each([
  [501, false, 'done'],
  [500, false, 'evaluated'],
  [0, true, 'done'],
])(
  'while a ping has waited for %i ms, and pings are on disk (%s), the evaluator, after yielding to pings, is %s',
  async (oldestWaitMs, isSpooling, expected) => {
    let hasYielded = false
    const session = async () => {
      throw new Error(hasYielded ? 'evaluated' : 'did not yield')
    }
    const evaluate = anEvaluator(session, {
      isSpooling: () => isSpooling,
      oldestWaitMs: () => oldestWaitMs,
      async yieldToPings() {
        hasYielded = true
      },
    })
    expect(await evaluate(AbortSignal.abort()).catch((error: Error) => error.message)).toBe(expected)
  },
)

/** An evaluator whose batch takes 10 ms, and is full or not. */
function createRun(isFull: boolean, arePings: boolean) {
  const clock = createManualClock()
  const sizes: number[] = []
  const session = async (use: (session: object) => unknown) =>
    use({
      async groupTransaction(_budgetMs: number, read: (tx: object) => Promise<unknown>) {
        await read({
          async queryColumns({ values }: { values: number[] }) {
            sizes.push(values[0]!)
            return []
          },
        })
        await clock.advance(10)
        return { flips: [], failed: [], isFull }
      },
    })
  return { evaluate: anEvaluator(session, { arePings: () => arePings }, clock), clock, sizes }
}

it.each([
  ['after a full batch, while there are pings, as long as it took', true, true, 10],
  ['never while there are no pings', true, false, 0],
  ['never after a batch that is not full', false, true, 0],
])('the evaluator rests %s', async (_, isFull, arePings, expected) => {
  const { evaluate, clock, sizes } = createRun(isFull, arePings)
  const startedAt = clock.now()
  const evaluated = evaluate(new AbortController().signal)
  while (clock.now() === startedAt) await clock.settle()
  await clock.settle()
  expect(clock.wakeTimes()).toEqual(expected === 0 ? [] : [startedAt + 10 + expected])
  await clock.advance(expected)
  expect(await evaluated).toBe(isFull ? 'again' : 'done')
  expect(sizes).toEqual([BATCH])
})
