import { setTimeout as sleep } from 'node:timers/promises'

/** What a look may return; null, undefined and false mean "not yet". */
type Found<T> = T | null | undefined | false

export interface Patience {
  readonly withinMs?: number
  /** False: an error of `look` ends the wait, because an assertion in it must hold each time. */
  readonly retryErrors?: boolean
}

/**
 * Looks again and again until `look` returns something other than null, undefined or false, and returns that. Throws
 * after `withinMs`, by default 45 s, with `what` was awaited and the last result or error in the message.
 */
export async function eventually<T>(
  what: string,
  look: () => Promise<Found<T>> | Found<T>,
  patience: number | Patience = {},
): Promise<T> {
  const { withinMs = 45_000, retryErrors = true } = typeof patience === 'number' ? { withinMs: patience } : patience
  const startedAt = performance.now()
  for (let looks = 1; ; looks += 1) {
    let last: unknown
    try {
      last = await look()
      if (last !== null && last !== undefined && last !== false) return last as T
    } catch (error) {
      if (!retryErrors) throw error
      last = error
    }
    if (performance.now() - startedAt > withinMs)
      throw new Error(`not within ${withinMs} ms: ${what} (last: ${last})`, { cause: last })
    // What comes soon is seen soon; what takes long is not asked all the time.
    await sleep(looks < 10 ? 5 : 20)
  }
}

/** Lets everything run that waits for no time and for no socket: all promise reactions run before the event loop comes to its next phase. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Whether it has neither resolved nor rejected, once all has run that needs no more time. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol()
  await settle()
  return (await Promise.race([promise.catch(() => {}), pending])) === pending
}
