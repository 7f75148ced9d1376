/** Randomness that can be repeated: everything of a fuzz run follows from its seed. */

import { randomInt } from 'node:crypto'

export interface Random {
  /** From `min` to `max`, both included. */
  int(min: number, max: number): number
  chance(probability: number): boolean
  pick<T>(list: readonly T[]): T
  bytes(length: number): Buffer
  /** Printable ASCII. */
  word(length: number): string
}

/** That of FUZZ_SEED, to repeat a run, else a new one. */
export function chooseSeed(): number {
  const given = process.env.FUZZ_SEED
  if (given === undefined || given === '') return randomInt(2 ** 31)
  if (!/^\d{1,10}$/.test(given))
    throw new Error('FUZZ_SEED must be an integer: take it from the output of an earlier run')
  return Number(given)
}

/** mulberry32: small, fast, and good enough to choose requests with. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    int,
    chance: (probability) => next() < probability,
    pick: (list) => list[int(0, list.length - 1)]!,
    bytes: (length) => Buffer.from(Array.from({ length }, () => int(0, 255))),
    word: (length) => String.fromCharCode(...Array.from({ length }, () => int(33, 126))),
  }
}
