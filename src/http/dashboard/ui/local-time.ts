/** Times as a browser's field `datetime-local` has them: the clock of a zone, without the zone. */

import type { Instant } from '../../../domain/check.ts'
import { toIso } from '../../../domain/instant.ts'
import { findTimeZone, instantOfLocal } from '../../../domain/time-zone.ts'

/** As browsers write it. */
const LOCAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** As the API takes it. What is no time stays a text, which the API rejects. */
export function readLocal(text: string, zone: string): string {
  const local = LOCAL.test(text) ? Date.parse(`${text}Z`) : Number.NaN
  return Number.isNaN(local) ? text : toIso(instantOfLocal(local, zone))
}

/** 08:00 of the next day. */
export function nextMorning(now: Instant, zone: string): Instant {
  const local = now + offsetAt(now, zone)
  return instantOfLocal(local - (local % DAY_MS) + DAY_MS + 8 * HOUR_MS, zone)
}

const offsetAt = (at: Instant, zone: string): number => findTimeZone(zone)?.offsetAt(at) ?? 0
