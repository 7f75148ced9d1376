import { setTimeout as sleep } from 'node:timers/promises'
import type { ManualClock } from '../../support/manual-clock.ts'

const PATIENCE_MS = 45_000

type Pauses = Pick<ManualClock, 'now' | 'wakeTimes' | 'advance'>

/**
 * Moves the clock through the pauses of `work`, while its answers come over real sockets. What is longer than `pauseMs` is a
 * limit, which must not run out by being waited for.
 */
export async function untilDone<T>(clock: Pauses, work: Promise<T>, pauseMs = 9_000): Promise<T> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  work.then(end, end)
  await pollUntil(() => isDone, clock, pauseMs)
  return work
}

/** Polls until `isSo`, moving the clock through pauses if there is one. */
export async function untilSo(isSo: () => boolean, clock?: Pauses, pauseMs = 9_000): Promise<void> {
  await pollUntil(isSo, clock, pauseMs)
}

/** One loop looks and moves the clock, so that no more than one pause passes between two looks: `isSo` may hold for a moment only. */
async function pollUntil(isSo: () => boolean, clock: Pauses | undefined, pauseMs: number): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS
  while (!isSo()) {
    if (performance.now() > giveUpAt) throw new Error(`not so within ${PATIENCE_MS} ms: ${isSo}`)
    const next = clock?.wakeTimes()[0]
    if (clock !== undefined && next !== undefined && next - clock.now() <= pauseMs)
      await clock.advance(next - clock.now())
    await sleep(2)
  }
}
