/** Lets at most `atOnce` pieces of work run; `waiting` more wait in line, in order; whoever comes then is refused at once. */

import { AppError } from '../domain/errors.ts'

export type TakeTurn = <T>(work: () => Promise<T>) => Promise<T>

export interface TurnLimits {
  readonly atOnce: number
  readonly waiting: number
}

/** The returned function throws AppError `unavailable` when the line is full. */
export function createTurns({ atOnce, waiting }: TurnLimits): TakeTurn {
  const line: (() => void)[] = []
  let running = 0

  return async (work) => {
    if (running < atOnce) running += 1
    else {
      if (line.length >= waiting) {
        throw new AppError('unavailable', 'too many log-ins at the moment; try again shortly', { retryAfterSeconds: 5 })
      }
      // Whoever ends hands its place over, so nobody who comes in between can take it.
      await new Promise<void>((resolve) => line.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = line.shift()
      if (next === undefined) running -= 1
      else next()
    }
  }
}
