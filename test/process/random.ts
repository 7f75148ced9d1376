/** Reproducible chance (mulberry32): a run that fails can be run again. */
export interface Chance {
  /** From 0 to 1, without 1. */
  next(): number
  /** An integer, both ends included. */
  between(low: number, high: number): number
  isLucky(share: number): boolean
  pick<T>(choices: readonly T[]): T
}

export function createChance(seed: number): Chance {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (low, high) => low + Math.floor(next() * (high - low + 1)),
    isLucky: (share) => next() < share,
    pick: (choices) => choices[Math.floor(next() * choices.length)]!,
  }
}
