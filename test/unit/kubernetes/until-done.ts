import { setTimeout as sleep } from 'node:timers/promises'
import type { ManualClock } from '../../support/manual-clock.ts'

const PATIENCE_MS = 10_000

/**
 * Moves the clock through the pauses of `work`, while its answers come over real sockets. What is longer than `pauseMs` is a
 * limit, which must not run out by being waited for.
 */
export async function untilDone<T>(
  clock: Pick<ManualClock, 'now' | 'wakeTimes' | 'advance'>,
  work: Promise<T>,
  pauseMs = 9_000,
): Promise<T> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  work.then(end, end)
  for (const giveUpAt = performance.now() + PATIENCE_MS; !isDone; await sleep(2)) {
    if (performance.now() > giveUpAt) throw new Error(`not done within ${PATIENCE_MS} ms`)
    const next = clock.wakeTimes()[0]
    if (next !== undefined && next - clock.now() <= pauseMs) await clock.advance(next - clock.now())
  }
  return work
}

/** Polls until `isSo`, moving the clock through pauses if there is one. */
export async function untilSo(
  isSo: () => boolean,
  clock?: Parameters<typeof untilDone>[0],
  pauseMs?: number,
): Promise<void> {
  const work = (async () => {
    const giveUpAt = performance.now() + PATIENCE_MS
    while (!isSo()) {
      if (performance.now() > giveUpAt) throw new Error(`never came to be: ${isSo}`)
      await sleep(2)
    }
  })()
  await (clock === undefined ? work : untilDone(clock, work, pauseMs))
}
