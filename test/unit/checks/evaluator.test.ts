import { expect, it } from 'vitest'
import { createEvaluator } from '../../../src/checks/deadlines/evaluator.ts'
import type { Waits } from '../../../src/checks/ping/waits.ts'
import { createManualClock } from '../../support/manual-clock.ts'

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
        waits: {
          begin: () => {},
          end: () => ({ besideMs: [], usualMs: null, arePings: false }),
          measureUsual: () => {},
        },
      },
      clock: createManualClock(),
      onFlip: () => {},
      onFailed: () => {},
    })
    expect(await evaluate(AbortSignal.abort()).catch((error: Error) => error.message)).toBe(expected)
  },
)

type Answer = 'full' | 'not full' | 'fails'

/** An evaluator whose batches take 10 ms, and end as given, with the pings that waited beside them. */
function createRun(answers: readonly [Answer, Waits][]) {
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
        const answer = answers[sizes.length - 1]![0]
        if (answer === 'fails') throw new Error('it failed')
        return { flips: [], failed: [], isFull: answer === 'full', saved: null }
      },
    })
  const calls: string[] = []
  const measured: boolean[] = []
  const evaluate = createEvaluator({
    database: { session } as never,
    cache: undefined as never,
    recorder: {
      isSpooling: () => false,
      oldestWaitMs: () => 0,
      yieldToPings: async () => {},
      waits: {
        begin: () => calls.push('begin'),
        end: () => {
          calls.push('end')
          return answers[sizes.length - 1]![1]
        },
        measureUsual: (isMeasured: boolean) => measured.push(isMeasured),
      },
    },
    clock,
    onFlip: () => {},
    onFailed: () => {},
  })
  return { evaluate, clock, sizes, calls, measured }
}

const NO_PINGS: Waits = { besideMs: [], usualMs: 5, arePings: false }
const waited = (ms: number): Waits => ({ besideMs: [ms], usualMs: 5, arePings: true })
const signal = new AbortController().signal

it.each<[string, [Answer, Waits][], number[]]>([
  [
    'grow while no ping waits, and shrink when the measured wait of pings rises',
    [
      ['full', NO_PINGS],
      ['full', NO_PINGS],
      ['full', NO_PINGS],
      ['full', waited(100)],
      ['full', waited(100)],
    ],
    [5, 10, 20, 40, 20],
  ],
  [
    'that are not full change nothing, whatever pings waited',
    [
      ['full', NO_PINGS],
      ['not full', waited(100)],
      ['not full', NO_PINGS],
      ['full', NO_PINGS],
    ],
    [5, 10, 10, 10],
  ],
  [
    'are small after one that failed',
    [
      ['full', NO_PINGS],
      ['full', NO_PINGS],
      ['fails', NO_PINGS],
      ['full', NO_PINGS],
    ],
    [5, 10, 20, 5],
  ],
])('batches %s', async (_, answers, expected) => {
  const { evaluate, sizes, calls } = createRun(answers)
  // The signal ends each rest at once.
  for (const _ of answers) await evaluate(AbortSignal.abort()).catch(() => {})
  expect(sizes).toEqual(expected)
  expect(calls).toEqual(answers.flatMap(() => ['begin', 'end']))
})

it.each<[string, Answer, Waits, number]>([
  ['after a full batch, while there are pings, as long as it took', 'full', waited(1), 10],
  ['longer when pings waited too long beside the smallest batch', 'full', waited(100), 20],
  ['never while there are no pings', 'full', NO_PINGS, 0],
  ['never after a batch that is not full', 'not full', waited(100), 0],
])('the evaluator rests %s', async (_, answer, waits, expected) => {
  const { evaluate, clock, calls } = createRun([[answer, waits]])
  const startedAt = clock.now()
  const evaluated = evaluate(signal)
  while (calls.at(-1) !== 'end') await clock.settle()
  await clock.settle()
  const restsUntil = clock.wakeTimes()
  expect(restsUntil).toEqual(expected === 0 ? [] : [startedAt + 10 + expected])
  await clock.advance(expected)
  expect(await evaluated).toBe(answer === 'full' ? 'again' : 'done')
})

it('what pings usually wait is measured outside of floods, and in the long rests of the smallest batches', async () => {
  const answers: [Answer, Waits][] = [
    ['not full', NO_PINGS],
    ['full', NO_PINGS],
    ['full', waited(100)],
    ['full', waited(100)],
    ['full', waited(100)],
    ['full', waited(1)],
    ['not full', waited(1)],
  ]
  const { evaluate, measured } = createRun(answers)
  for (const _ of answers) await evaluate(AbortSignal.abort())
  expect(measured).toEqual([true, false, false, false, true, false, true])
})
