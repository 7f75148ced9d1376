/** A limit on work that runs at the same time, for callers that wait for a limited time only. */

import { startTimer } from './clock.ts'

/** Gives the place back; a second call has no effect. */
export type Leave = () => void

export interface Places {
  /** In order of arrival. Null when no place became free within `waitMs`. */
  take(waitMs: number): Promise<Leave | null>
}

export function createPlaces(count: number): Places {
  const waiting = new Set<() => void>()
  let used = 0

  /** The place passes straight to the next in line: a caller that arrives in between cannot take it. */
  function createLeave(): Leave {
    let isLeft = false
    return () => {
      if (isLeft) return
      isLeft = true
      const [next] = waiting
      if (next === undefined) used -= 1
      else next()
    }
  }

  return {
    take(waitMs) {
      if (used < count) {
        used += 1
        return Promise.resolve(createLeave())
      }
      return new Promise((resolve) => {
        const settle = (result: Leave | null) => {
          stopTimer()
          waiting.delete(enter)
          resolve(result)
        }
        const enter = () => settle(createLeave())
        const stopTimer = startTimer(waitMs, () => settle(null))
        waiting.add(enter)
      })
    },
  }
}

export interface SharedPlaces {
  /** In order of arrival among those with the same key. Null when too many of the key wait, or no place became free within `waitMs`. */
  take(key: string, waitMs: number): Promise<Leave | null>
}

/**
 * `count` places, of which all with the same key hold at most `perKey`: one key cannot take what others need. `waiting`: how many may wait with
 * one key.
 */
export function createSharedPlaces(count: number, perKey: number, waiting = Number.POSITIVE_INFINITY): SharedPlaces {
  const all = createPlaces(count)
  const parts = new Map<string, { readonly places: Places; users: number }>()

  return {
    async take(key, waitMs) {
      const giveUpAt = performance.now() + waitMs
      const part = parts.get(key) ?? { places: createPlaces(perKey), users: 0 }
      if (part.users >= perKey + waiting) return null
      parts.set(key, part)
      part.users += 1
      const own = await part.places.take(waitMs)
      // Only those with a place of their key wait here: however many wait with one key, they are few in this line.
      const shared = own === null ? null : await all.take(Math.max(0, giveUpAt - performance.now()))
      let isLeft = false
      const leave = () => {
        if (isLeft) return
        isLeft = true
        shared?.()
        own?.()
        part.users -= 1
        if (part.users === 0) parts.delete(key)
      }
      if (shared !== null) return leave
      leave()
      return null
    },
  }
}
