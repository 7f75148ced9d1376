/** When the next completion is expected (design, section 4). Pure arithmetic on a schedule; no state. */

import type { CheckSpec, Instant, Schedule } from './check.ts'
import { type Cron, matchesDay, nextSlot, parseCron } from './cron.ts'
import { LIMITS } from './limits.ts'

/** When a completion is expected and due; both null when nothing is expected, as after the last slot of a cron expression. */
export interface Expectation {
  readonly expectedAt: Instant | null
  readonly dueAt: Instant | null
}

/** It names no minute: of a check whose source has no schedule that can be read. */
export const NEVER: Schedule = { kind: 'cron', cron: parseCron(', * * * *', 'UTC', 'kubernetes') }

export const NOTHING_EXPECTED: Expectation = { expectedAt: null, dueAt: null }

function expectAt(expectedAt: Instant | null, graceMs: number): Expectation {
  return expectedAt === null ? NOTHING_EXPECTED : { expectedAt, dueAt: expectedAt + graceMs }
}

/** The expectation after a completion at `at`: one period later, or the first slot that the completion does not cover. */
export function expectAfterCompletion(spec: CheckSpec, at: Instant): Expectation {
  const { schedule, graceMs } = spec
  if (schedule.kind === 'period') return expectAt(at + schedule.periodMs, graceMs)
  const next = nextSlot(schedule.cron, at)
  if (next === null) return NOTHING_EXPECTED
  return expectAt(nextSlot(schedule.cron, at + toleranceAt(spec, next)), graceMs)
}

/** The expectation of a check that is armed at `now` without a completion: resumed, or declared by a HeartbeatCheck. */
export function expectFromNow(spec: CheckSpec, now: Instant): Expectation {
  const { schedule, graceMs } = spec
  return expectAt(schedule.kind === 'period' ? now + schedule.periodMs : nextSlot(schedule.cron, now), graceMs)
}

/**
 * What is expected of a check that is down: the next run, if its recipients are notified of each one that is missed.
 * `next`: what would be expected of it if it was up; where that is nothing, a run is expected from `now`.
 */
export function expectWhileDown(spec: CheckSpec, { expectedAt, dueAt }: Expectation, now: Instant): Expectation {
  if (!spec.remindsOnEachRun) return NOTHING_EXPECTED
  return dueAt === null ? expectFromNow(spec, now) : { expectedAt, dueAt }
}

/**
 * The expectation after `expectedAt` when every interval whose tolerance begins at or before `until` is excused. Closed form for
 * periods: a period of ten seconds and a gap of a week must not take 60,480 steps.
 */
export function expectAfterExcuse(spec: CheckSpec, expectedAt: Instant, until: Instant): Expectation {
  const { schedule, graceMs } = spec
  const tolerance = toleranceAt(spec, expectedAt)
  if (schedule.kind === 'period') {
    const intervals = Math.max(1, Math.floor((until + tolerance - expectedAt) / schedule.periodMs) + 1)
    return expectAt(expectedAt + intervals * schedule.periodMs, graceMs)
  }
  let slot = nextSlot(schedule.cron, Math.max(expectedAt, until))
  while (slot !== null && slot - toleranceAt(spec, slot) <= until) slot = nextSlot(schedule.cron, slot)
  return expectAt(slot, graceMs)
}

/**
 * How many of the runs after a completion at `since` should have been reported by `until` at the latest; at most
 * `most`.
 */
export function countDue(spec: CheckSpec, since: Instant, until: Instant, most: number): number {
  const { schedule, graceMs } = spec
  let { expectedAt } = expectAfterCompletion(spec, since)
  if (expectedAt === null) return 0
  if (schedule.kind === 'period')
    return Math.min(most, Math.max(0, Math.floor((until - graceMs - expectedAt) / schedule.periodMs) + 1))
  let count = 0
  for (; expectedAt !== null && expectedAt + graceMs <= until && count < most; count += 1)
    expectedAt = nextSlot(schedule.cron, expectedAt)
  return count
}

/**
 * How long before `slot` a completion still covers it, in milliseconds: a tenth of the interval, at most the grace time. With cron the
 * shorter of the intervals before and after the slot counts: `0 9-17 * * *` pauses for 16 hours after 17:00, and nevertheless the
 * completion of 16:00 must not cover 17:00.
 */
export function toleranceAt({ schedule, graceMs }: CheckSpec, slot: Instant): number {
  if (schedule.kind === 'period') return Math.min(graceMs, schedule.periodMs / 10)
  const following = nextSlot(schedule.cron, slot)
  const tolerance = following === null ? graceMs : Math.min(graceMs, (following - slot) / 10)
  // Only a slot within ten tolerances before this one can make it smaller.
  const previous = lastSlotBetween(schedule.cron, slot - tolerance * 10, slot)
  return previous === null ? tolerance : Math.min(tolerance, (slot - previous) / 10)
}

/** Slots are at least this far apart. */
const SLOT_MS = 60_000

/** The last slot after `from` and before `to`, or null. By bisection: there may be thousands, and each ping may need it. */
export function lastSlotBetween(cron: Cron, from: Instant, to: Instant): Instant | null {
  const isBeforeTo = (at: Instant) => (nextSlot(cron, at) ?? to) < to
  if (!isBeforeTo(from)) return null
  let before = from
  let after = to
  while (after - before > SLOT_MS) {
    const middle = Math.floor((before + after) / 2)
    if (isBeforeTo(middle)) before = middle
    else after = middle
  }
  return nextSlot(cron, before)
}

/** The grace time of a HeartbeatCheck that gives none: this share of the interval, from one minute to the default of the API. */
const GRACE_SHARE = 10
const SHORTEST_GRACE_SECONDS = 60

/** The grace time, in seconds, of a resource that gives none (design, section 6). */
export function graceSecondsFor(schedule: Schedule): number {
  const share = Math.floor(intervalMsOf(schedule) / GRACE_SHARE / 1_000)
  return Math.min(LIMITS.graceSeconds.default, Math.max(SHORTEST_GRACE_SECONDS, share))
}

/**
 * The interval of a job: its period, or with cron the shortest interval between two slots, as if clocks never changed. So it follows from the
 * expression alone, and is the same at every hour of the year.
 */
export function intervalMsOf(schedule: Schedule): number {
  return schedule.kind === 'period' ? schedule.periodMs : shortestIntervalMs(schedule.cron)
}

const MINUTES_A_DAY = 1_440
/** In 28 years each date falls on each weekday, leap days included. */
const CALENDAR = { from: Date.UTC(2000, 0, 1), to: Date.UTC(2028, 0, 1), dayMs: MINUTES_A_DAY * SLOT_MS }

/** A day for an expression that names one time of the day. */
function shortestIntervalMs(cron: Cron): number {
  const { minutes, hours } = cron
  const slots = hours.values.flatMap((hour) => minutes.values.map((minute) => hour * 60 + minute))
  let shortest = MINUTES_A_DAY
  for (const [index, slot] of slots.entries()) if (index > 0) shortest = Math.min(shortest, slot - slots[index - 1]!)
  const overnight = MINUTES_A_DAY - slots.at(-1)! + slots[0]!
  if (overnight < shortest && hasNeighbouringDays(cron)) shortest = overnight
  return shortest * SLOT_MS
}

/** Whether the expression names two days in a row. */
function hasNeighbouringDays(cron: Cron): boolean {
  let isNamedBefore = false
  for (let at = CALENDAR.from; at < CALENDAR.to; at += CALENDAR.dayMs) {
    const date = new Date(at)
    const isMonth = cron.months.values.includes(date.getUTCMonth() + 1)
    const isNamed = isMonth && matchesDay(cron, date.getUTCDate(), date.getUTCDay())
    if (isNamed && isNamedBefore) return true
    isNamedBefore = isNamed
  }
  return false
}
