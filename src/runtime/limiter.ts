/** A limit on work that runs at the same time. */

import { startTimer, yieldTurn } from './clock.ts'

export interface LimiterOptions {
  /** Pieces of work at the same time, of all keys. Default: no limit. */
  readonly atOnce?: number
  /** Of these, those with the same key: one key cannot take what others need. Default: no limit. */
  readonly perKey?: number
  /** How many may wait with the same key. Default: no limit. */
  readonly waiting?: number
  /** The longest wait. Default: no limit. */
  readonly waitMs?: number
  /** What work is rejected with that may not wait, or has waited too long. */
  readonly createError?: () => Error
}

/**
 * Runs `work` when it is its turn, in order of arrival. Work with several keys waits in the line of each key in turn,
 * and then in the line of all. Rejects with what `work` rejects with, or with the error of the limit. `waitMs`: instead
 * of the limiter's own.
 */
export type RunLimited = <T>(work: () => Promise<T>, keys?: readonly string[], waitMs?: number) => Promise<T>

export function createLimiter(options: LimiterOptions): RunLimited {
  const { atOnce = Number.POSITIVE_INFINITY, perKey = Number.POSITIVE_INFINITY } = options
  const { waiting = Number.POSITIVE_INFINITY, waitMs: usualMs = Number.POSITIVE_INFINITY } = options
  const { createError = () => new Error('too much work waits') } = options
  const all = createLine(atOnce)
  const ofKeys = new Map<string, Line & { users: number }>()
  const most = Math.min(atOnce, perKey) + waiting

  return async (work, keys = [''], waitMs = usualMs) => {
    const giveUpAt = performance.now() + waitMs
    const left: (() => void)[] = []
    const wait = async (line: Line) => {
      if (!(await line.wait(Math.max(0, giveUpAt - performance.now())))) throw createError()
    }
    try {
      for (const key of keys) {
        const line = ofKeys.get(key) ?? { ...createLine(perKey), users: 0 }
        if (line.users >= most) throw createError()
        ofKeys.set(key, line)
        line.users += 1
        left.push(() => {
          line.users -= 1
          if (line.users === 0) ofKeys.delete(key)
        })
        if (!line.enter()) await wait(line)
        left.push(line.leave)
      }
      // Only work with a turn of its key waits here: however much waits with one key, little of it is in this line.
      if (!all.enter()) await wait(all)
      left.push(all.leave)
      return await work()
    } finally {
      for (const leave of left.reverse()) leave()
    }
  }
}

/** Lets one caller through in each turn of the event loop: pings come between two pieces of other work. */
export function createPacer(): () => Promise<void> {
  const inTurn = createLimiter({ atOnce: 1 })
  return () => inTurn(yieldTurn)
}

interface Line {
  /** False when it is not its turn now. */
  enter(): boolean
  /** False when it was not its turn within `waitMs`. */
  wait(waitMs: number): Promise<boolean>
  leave(): void
}

function createLine(count: number): Line {
  const waiting = new Set<() => void>()
  let used = 0

  return {
    enter() {
      if (used >= count) return false
      used += 1
      return true
    },
    wait: (waitMs) =>
      new Promise((resolve) => {
        const settle = (isEntered: boolean) => {
          stopTimer()
          waiting.delete(enter)
          resolve(isEntered)
        }
        const enter = () => settle(true)
        const stopTimer = startTimer(waitMs, () => settle(false))
        waiting.add(enter)
      }),
    leave() {
      // The turn passes straight to the next in line: work that arrives in between cannot take it.
      const [next] = waiting
      if (next === undefined) used -= 1
      else next()
    },
  }
}
