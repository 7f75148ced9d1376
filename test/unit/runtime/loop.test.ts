import { expect, it } from 'vitest'
import type { Clock } from '../../../src/runtime/clock.ts'
import { createLoop } from '../../../src/runtime/loop.ts'

/** Sleeps end at once, and are written down; the loop is stopped by its own runs. */
function instantClock() {
  const waits: number[] = []
  const clock: Clock = {
    now: () => 0,
    async sleep(ms) {
      waits.push(ms)
    },
  }
  return { clock, waits }
}

async function waitsOf(
  everyMs: number,
  outcomes: ('again' | 'done' | 'fail')[],
): Promise<{ waits: number[]; errors: number }> {
  const { clock, waits } = instantClock()
  let errors = 0
  let runs = 0
  const ended = Promise.withResolvers<void>()
  const loop = createLoop({
    everyMs,
    clock,
    onError: () => {
      errors += 1
    },
    async run(signal) {
      const outcome = outcomes[runs++]
      if (outcome === undefined) {
        ended.resolve()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return 'done'
      }
      if (outcome === 'fail') throw new Error('failed')
      return outcome
    },
  })
  loop.start()
  await ended.promise
  await loop.stop()
  return { waits: waits.slice(0, outcomes.length), errors }
}

it('waits between runs, and not at all while there is more to do', async () => {
  expect((await waitsOf(250, ['done', 'again', 'again', 'done'])).waits.slice(0, 2)).toEqual([250, 250])
})

it('goes on after failures, ever more slowly, and never slower than two seconds', async () => {
  const { waits, errors } = await waitsOf(250, ['fail', 'fail', 'fail', 'fail', 'fail', 'fail', 'done'])
  expect(errors).toBe(6)
  expect(waits).toEqual([250, 400, 800, 1_600, 2_000, 2_000, 250])
})

it('tries rare work again within a minute', async () => {
  expect((await waitsOf(3_600_000, ['fail', 'done'])).waits).toEqual([60_000, 3_600_000])
})

it('lets the run in progress finish before it has stopped', async () => {
  const { clock } = instantClock()
  const started = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  let isFinished = false
  const loop = createLoop({
    everyMs: 1,
    clock,
    onError: () => {},
    async run() {
      started.resolve()
      await release.promise
      isFinished = true
      return 'done'
    },
  })
  loop.start()
  await started.promise
  const stopped = loop.stop()
  release.resolve()
  await stopped
  expect(isFinished).toBe(true)
})
