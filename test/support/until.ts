import { setTimeout as sleep } from 'node:timers/promises'

/** What a poll may return; null, undefined and false mean "not yet". */
type Found<T> = T | null | undefined | false
type Look<T> = () => Promise<Found<T>> | Found<T>

/**
 * Polls until `look` returns something other than null, undefined or false, and returns that. Throws what `look` throws at
 * once, so it may contain assertions; throws after `withinMs`, by default 45 s.
 */
export async function until<T>(look: Look<T>, withinMs = 45_000): Promise<T> {
  for (const giveUpAt = performance.now() + withinMs; ; await sleep(5)) {
    const found = await look()
    if (found !== null && found !== undefined && found !== false) return found
    if (performance.now() > giveUpAt) throw new Error(`still nothing after ${withinMs} ms: ${look}`)
  }
}

/**
 * As `until`, for systems that fail on the way: an error of `look` is retried, too. Throws after `withinMs`, by default 45 s,
 * with the last result or error in the message.
 */
export async function eventually<T>(what: string, look: Look<T>, withinMs = 45_000): Promise<T> {
  for (const giveUpAt = performance.now() + withinMs; ; await sleep(20)) {
    let last: unknown
    try {
      last = await look()
      if (last !== null && last !== undefined && last !== false) return last as T
    } catch (error) {
      last = error
    }
    if (performance.now() > giveUpAt)
      throw new Error(`not within ${withinMs} ms: ${what} (last: ${last})`, { cause: last })
  }
}
