/**
 * How many deadlines a batch may have, and how long the evaluator rests after it. A batch delays the pings beside it: by its locks, by the time of the
 * processors, by its part of the log. How long depends on the machine and on everything else that it does, so it is measured, ping by ping
 * (../ping/waits.ts), and compared with what pings wait otherwise.
 */

import type { Waits } from '../ping/waits.ts'

/** `size` below MIN_BATCH stands for longer rests, and above MAX_BATCH for shorter ones. */
export interface Allowance {
  readonly size: number
  /** No ping has waited too long since it was smallest: it doubles with each batch. */
  readonly isProbing: boolean
}

export const MIN_BATCH = 5
/** More gain nothing: the event loop and the rows would be held for longer (docs/benchmarks.md). */
export const MAX_BATCH = 160
/** The longest rest is so many times as long as the batch, and the shortest one this part of it. */
const MAX_REST = 4
/**
 * Twice the usual wait is the limit for the 99th percentile of all pings (design, section 4). This leaves room for what is not measured here: a ping
 * may wait for the event loop before it is read.
 */
const TOO_LONG = 1.3
/** With these two, the size is steady while one in a hundred of the pings beside batches waits too long. */
const GROWTH = 1 + 1 / 128
const SHRINKING = 1 / 2
/** In one batch, however many pings wait beside it. */
const MOST = { growth: 2, shrinking: 1 / 4 }

export const SMALLEST: Allowance = { size: MIN_BATCH, isProbing: true }

/** The longest rests. They are long enough to measure what pings wait otherwise. */
const FLOOR: Allowance = { size: MIN_BATCH / MAX_REST, isProbing: true }

export interface Plan {
  readonly limit: number
  /** In units of the time that the batch takes. */
  readonly rest: number
  /** Whether the rest shows what pings usually wait. */
  readonly isUsual: boolean
}

/** What the evaluator does with an allowance. */
export function planBatch({ size }: Allowance): Plan {
  const limit = Math.min(MAX_BATCH, Math.max(MIN_BATCH, Math.floor(size)))
  return { limit, rest: Math.min(MAX_BATCH / size, Math.max(1, MIN_BATCH / size)), isUsual: size <= FLOOR.size }
}

/** The allowance after a batch that had as many deadlines as it may have. */
export function nextAllowance({ size, isProbing }: Allowance, { besideMs, usualMs, arePings }: Waits): Allowance {
  if (!arePings) return { size: bounded(size * 2), isProbing: true }
  if (usualMs === null) return FLOOR
  const tooLong = besideMs.filter((ms) => ms > usualMs * TOO_LONG).length
  const inTime = besideMs.length - tooLong
  if (isProbing && tooLong === 0) return { size: inTime > 0 ? bounded(size * 2) : size, isProbing: true }
  const factor = GROWTH ** inTime * SHRINKING ** tooLong
  return { size: bounded(size * Math.min(MOST.growth, Math.max(MOST.shrinking, factor))), isProbing: false }
}

const bounded = (size: number) => Math.min(MAX_BATCH * MAX_REST, Math.max(FLOOR.size, size))
