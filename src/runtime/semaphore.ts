/** A limit on work that runs at the same time. */

export interface SemaphoreOptions {
  /** Pieces of work that may run at the same time. */
  readonly slots: number
  /** How many may wait for a slot, and the error for those beyond. Default: no limit. */
  readonly queue?: { readonly length: number; readonly createError: () => Error }
}

/** Runs `work` as soon as a slot is free, in order of arrival. Rejects with what `work` rejects with, or with the queue's error. */
export type RunInSlot = <T>(work: () => Promise<T>) => Promise<T>

export function createSemaphore({ slots, queue }: SemaphoreOptions): RunInSlot {
  const waiting: (() => void)[] = []
  let used = 0

  return async (work) => {
    if (used < slots) used += 1
    else {
      if (queue !== undefined && waiting.length >= queue.length) throw queue.createError()
      await new Promise<void>((resolve) => waiting.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      // The slot passes straight to the next in line: work that arrives in between cannot take it.
      if (next === undefined) used -= 1
      else next()
    }
  }
}
