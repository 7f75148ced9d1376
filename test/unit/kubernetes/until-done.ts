import type { ManualClock } from '../../support/manual-clock.ts'
import { eventually } from '../../support/until.ts'

type Pauses = Pick<ManualClock, 'now' | 'wakeTimes' | 'advance'>

/**
 * Moves the clock through the pauses of `work`, while its answers come over real sockets. What is longer than `pauseMs` is a
 * limit, which must not run out by being waited for.
 */
export async function untilDone<T>(clock: Pauses, work: Promise<T>): Promise<T> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  work.then(end, end)
  await throughPauses(clock, () => isDone)
  return work
}

/** One loop looks and moves the clock, so that no more than one pause passes between two looks: `isSo` may hold for a moment only. */
export async function throughPauses(clock: Pauses, isSo: () => boolean, pauseMs = 9_000): Promise<void> {
  await eventually(`after some pauses, ${isSo}`, async () => {
    if (isSo()) return true
    const next = clock.wakeTimes()[0]
    if (next !== undefined && next - clock.now() <= pauseMs) await clock.advance(next - clock.now())
    return false
  })
}
