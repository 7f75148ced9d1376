import { expect, it } from 'vitest'
import { createQueue, type QueueOptions } from '../../../src/kubernetes/queue.ts'
import {
  createWorkers,
  type ReconcileOutcome,
  type ReconcileResult,
  type WorkersOptions,
} from '../../../src/kubernetes/workers.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { isPending } from '../../support/until.ts'

type Reconcile = WorkersOptions['reconcile']

function aController(reconcile: Reconcile, overrides: Partial<WorkersOptions> = {}) {
  const clock = createManualClock()
  const queueOptions: QueueOptions = { clock, random: () => 0 }
  const queue = createQueue(queueOptions)
  const errors: { error: unknown; key: string }[] = []
  const outcomes: ReconcileOutcome[] = []
  const active: number[] = [0]
  const workers = createWorkers({
    queue,
    count: 2,
    clock,
    reconcile,
    onError: (error, key) => void errors.push({ error, key }),
    metrics: {
      activeChanged: (by) => void active.push(active.at(-1)! + by),
      reconciled: (outcome) => void outcomes.push(outcome),
    },
    ...overrides,
  })
  return { clock, queue, workers, errors, outcomes, active }
}

const done: ReconcileResult = { kind: 'done' }

/** Resolves when its signal aborts, with what a request would then throw. */
const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason))
  })

it('reconciles what is queued, as many at a time as there are workers', async () => {
  const started: string[] = []
  const gates = new Map<string, () => void>()
  const { queue, workers, clock, active } = aController(async (key) => {
    started.push(key)
    await new Promise<void>((resolve) => gates.set(key, resolve))
    return done
  })
  for (const key of ['a', 'b', 'c']) queue.add(key)
  await clock.settle()
  expect(started).toEqual([])
  workers.start()
  workers.start()
  await clock.settle()
  expect(started).toEqual(['a', 'b'])
  expect(active.at(-1)).toBe(2)
  gates.get('b')!()
  await clock.settle()
  expect(started).toEqual(['a', 'b', 'c'])
  gates.get('a')!()
  gates.get('c')!()
  await clock.settle()
  expect(active.at(-1)).toBe(0)
  expect(Math.max(...active)).toBe(2)
})

it('never reconciles one key concurrently, and again when it was added meanwhile', async () => {
  const gates: (() => void)[] = []
  let now = 0
  let most = 0
  const { queue, workers, clock } = aController(async () => {
    now += 1
    most = Math.max(most, now)
    await new Promise<void>((resolve) => gates.push(resolve))
    now -= 1
    return done
  })
  workers.start()
  for (let round = 0; round < 3; round += 1) {
    queue.add('a')
    await clock.settle()
  }
  expect(gates).toHaveLength(1)
  gates[0]!()
  await clock.settle()
  expect(gates).toHaveLength(2)
  gates[1]!()
  await clock.settle()
  expect({ most, reconciles: gates.length }).toEqual({ most: 1, reconciles: 2 })
})

it.each([
  ['requeue_after', { kind: 'again', afterMs: 60_000 }],
  ['stalled', { kind: 'stalled', retryMs: 60_000 }],
] as const)('counts %s without a report, and reconciles again after the requested time', async (outcome, result) => {
  let reconciles = 0
  const { queue, workers, clock, outcomes, errors } = aController(async () => {
    reconciles += 1
    return reconciles === 1 ? result : done
  })
  workers.start()
  queue.add('a')
  await clock.advance(59_999)
  expect(reconciles).toBe(1)
  await clock.advance(600_000)
  expect(reconciles).toBe(2)
  expect(outcomes).toEqual([outcome, 'success'])
  expect(errors).toEqual([])
})

const results: [string, ReconcileResult, string[]][] = [
  ['again', { kind: 'again', afterMs: 10 }, ['first', 'change']],
  ['again in the background', { kind: 'again', afterMs: 10, priority: 'background' }, ['change', 'first']],
  ['stalled', { kind: 'stalled', retryMs: 10 }, ['change', 'first']],
]

it.each(results)('queues %s with the right priority', async (_, result, order) => {
  const reconciled: string[] = []
  const gate = Promise.withResolvers<void>()
  const { queue, workers, clock } = aController(
    async (key) => {
      reconciled.push(key)
      if (key === 'slow') await gate.promise
      return reconciled.length === 1 ? result : done
    },
    { count: 1 },
  )
  queue.add('first')
  queue.add('slow')
  workers.start()
  await clock.advance(10)
  queue.add('change')
  gate.resolve()
  await clock.settle()
  expect(reconciled).toEqual(['first', 'slow', ...order])
})

it('backs off after errors, longer each time, and starts again after a success', async () => {
  const at: number[] = []
  const outcomesWanted = ['fail', 'fail', 'fail', 'done', 'fail', 'done']
  const { queue, workers, clock, errors, outcomes } = aController(async () => {
    at.push(clock.now())
    if (outcomesWanted[at.length - 1] === 'fail') throw new Error(`no database ${at.length}`)
    return done
  })
  workers.start()
  queue.add('a')
  await clock.advance(1_000)
  queue.add('a')
  await clock.advance(1_000)
  const from = at[0]!
  expect(at.map((ms) => ms - from)).toEqual([0, 100, 300, 700, 1_000, 1_100])
  expect(errors.map(({ error, key }) => `${key}: ${(error as Error).message}`)).toEqual([
    'a: no database 1',
    'a: no database 2',
    'a: no database 3',
    'a: no database 5',
  ])
  expect(outcomes).toEqual(['error', 'error', 'error', 'success', 'error', 'success'])
})

it.each([
  ['again', { kind: 'again', afterMs: 1_000 }],
  ['stalled', { kind: 'stalled', retryMs: 1_000 }],
] as const)('ends a row of failures with %s', async (_, result) => {
  let reconciles = 0
  const { queue, workers, clock } = aController(async () => {
    reconciles += 1
    if (reconciles === 1) throw new Error('once')
    return reconciles === 2 ? result : done
  })
  workers.start()
  queue.add('a')
  await clock.settle()
  expect(queue.failures('a')).toBe(1)
  await clock.advance(100)
  expect(queue.failures('a')).toBe(0)
})

const crashes: [string, () => ReconcileResult | Promise<ReconcileResult>, ReconcileOutcome][] = [
  ['an error', () => Promise.reject(new Error('no')), 'error'],
  ['no error at all', () => Promise.reject('a text'), 'panicked'],
  ['undefined', () => Promise.reject(undefined), 'panicked'],
  [
    'a fault in the program',
    () => {
      throw new TypeError('undefined is not a function')
    },
    'panicked',
  ],
  ['a call of itself without end', () => Promise.reject(new RangeError('stack')), 'panicked'],
  ['no result', () => undefined as never, 'panicked'],
  ['a wait of no number', () => ({ kind: 'again', afterMs: Number.NaN }), 'panicked'],
]

it.each(crashes)('outlives %s, counts it, and tries again', async (_, crash, outcome) => {
  let reconciles = 0
  const { queue, workers, clock, errors, outcomes, active } = aController(
    (() => {
      reconciles += 1
      return reconciles === 1 ? crash() : Promise.resolve(done)
    }) as Reconcile,
    { count: 1 },
  )
  workers.start()
  queue.add('a')
  await clock.advance(99)
  expect({ reconciles, reported: errors.length }).toEqual({ reconciles: 1, reported: 1 })
  await clock.advance(1)
  expect(outcomes).toEqual([outcome, 'success'])
  expect(active.at(-1)).toBe(0)
})

it('outlives a reporter that throws', async () => {
  let reconciles = 0
  const { queue, workers, clock } = aController(
    async () => {
      reconciles += 1
      throw new Error('no')
    },
    {
      count: 1,
      onError: () => {
        throw new Error('the log is full')
      },
    },
  )
  workers.start()
  queue.add('a')
  await clock.advance(300)
  expect(reconciles).toBe(3)
})

it('lets reconciles in progress finish within the grace, takes no more keys, and leaves those queued', async () => {
  const reconciled: string[] = []
  const { queue, workers, clock } = aController(
    async (key, signal) => {
      await clock.sleep(1_000, signal)
      if (!signal.aborted) reconciled.push(key)
      return done
    },
    { count: 1 },
  )
  workers.start()
  queue.add('a')
  queue.add('b')
  await clock.settle()
  const ended = workers.stop(1_001)
  await clock.advance(999)
  expect({ isPending: await isPending(ended), reconciled }).toEqual({ isPending: true, reconciled: [] })
  await clock.advance(1)
  await ended
  expect(reconciled).toEqual(['a'])
  expect(queue.length()).toBe(1)
  expect(clock.wakeTimes()).toEqual([])
})

it('aborts what has not finished after the grace, waits for its end, and neither reports it nor forgets its key', async () => {
  const gate = Promise.withResolvers<void>()
  const { queue, workers, clock, errors, outcomes } = aController(async (_, signal) => {
    await untilAborted(signal).catch(() => {})
    await gate.promise
    throw signal.reason
  })
  workers.start()
  queue.add('a', 'background')
  await clock.settle()
  const ended = workers.stop(5_000)
  await clock.advance(4_999)
  expect(await isPending(ended)).toBe(true)
  await clock.advance(60_000)
  // The reconcile has not ended yet.
  expect(await isPending(ended)).toBe(true)
  gate.resolve()
  await ended
  expect({ errors, outcomes, failures: queue.failures('a') }).toEqual({ errors: [], outcomes: [], failures: 0 })
  queue.add('live')
  expect([await queue.take(), await queue.take()]).toEqual(['live', 'a'])
})

it('aborts at once without a grace, also when a longer stop is in progress', async () => {
  const { queue, workers, clock } = aController((_, signal) => untilAborted(signal))
  workers.start()
  queue.add('a')
  await clock.settle()
  const patient = workers.stop(20_000)
  await clock.settle()
  await Promise.all([workers.stop(0), patient])
})

it('does not begin with a key that it was given in the moment of the stop', async () => {
  const reconciled: string[] = []
  const { queue, workers, clock } = aController(async (key) => {
    reconciled.push(key)
    return done
  })
  workers.start()
  await clock.settle()
  queue.add('a', 'background')
  await workers.stop(1_000)
  expect(reconciled).toEqual([])
  expect(await queue.take()).toBe('a')
})

it('stops before it was started, and when it is idle', async () => {
  await aController(async () => done).workers.stop(1_000)
  const idle = aController(async () => done)
  idle.workers.start()
  await idle.workers.stop(1_000)
})
