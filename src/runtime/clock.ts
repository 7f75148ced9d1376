/** Time as a dependency: tests move it by hand, and a stop ends every wait at once. */

import { setImmediate, setTimeout as setTimer } from 'node:timers/promises'

export interface Clock {
  /** Milliseconds since the epoch, in whole microseconds: PostgreSQL stores these, so that what is shown is stored. */
  now(): number
  /**
   * Resolves after `ms`, or as soon as `signal` aborts; never rejects. More than 24 days (2^31 - 1 ms) may end early.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** Node fires longer timers at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Rounds milliseconds. 847.9996 would be shown as 847, and be stored as 848. */
export const toMicroseconds = (ms: number): number => Math.round(ms * 1_000) / 1_000

/** The wall clock at the start, advanced by the monotonic clock: a change of the machine's time has no effect. */
export const systemClock: Clock = {
  now: () => toMicroseconds(performance.timeOrigin + performance.now()),
  sleep: (ms, signal) =>
    setTimer(Math.min(ms, MAX_TIMER_MS), undefined, signal === undefined ? {} : { signal }).catch(() => {}),
}

/** An explicit reason spares each wait an AbortError with its stack. */
const OVER = 'over'

/** Calls `act` after `ms` by `clock` unless the returned function is called first. */
export function after(clock: Clock, ms: number, act: () => void): () => void {
  const over = new AbortController()
  void clock.sleep(ms, over.signal).then(() => {
    if (!over.signal.aborted) act()
  })
  return () => over.abort(OVER)
}

/**
 * Waits for an event, for `ms` at most. `listen` gets what to call when the event has come, and returns how to stop
 * listening. Resolves too when `signal` aborts.
 */
export async function waitForEvent(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  listen: (onEvent: () => void) => () => void,
): Promise<void> {
  const over = new AbortController()
  const end = () => over.abort(OVER)
  if (signal.aborted) return
  signal.addEventListener('abort', end, { once: true })
  const unlisten = listen(end)
  await clock.sleep(ms, over.signal)
  unlisten()
  signal.removeEventListener('abort', end)
}

/** Resolves in the next turn of the event loop, so that long work in pieces does not block other work. */
export const yieldTurn = (): Promise<void> => setImmediate()

/** Waits in real time, whatever the clock of a test says. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Calls `act` after `ms` unless the returned function is called first. Does not keep the process alive. */
export function startTimer(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, Math.min(ms, MAX_TIMER_MS))
  timer.unref()
  return () => clearTimeout(timer)
}

/** Settles as `work` does, or resolves after `ms`, whichever is first. Does not keep the process alive. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stopTimer = startTimer(ms, resolve)
  await Promise.race([work, promise]).finally(stopTimer)
}
