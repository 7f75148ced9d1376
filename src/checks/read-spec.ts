/** From the configuration that people give to the spec that the state machine works with. */

import type { CheckSpec, Instant, Schedule } from '../domain/check.ts'
import { type Cron, InvalidSchedule, isTimeZone, nextSlot, parseCron } from '../domain/cron.ts'
import { AppError } from '../domain/errors.ts'
import type { StoredSpec } from '../store/checks/columns.ts'

export const DEFAULT_TIME_ZONE = 'UTC'

/** A schedule without a zone has the default one. */
export function withTimeZone(spec: StoredSpec): StoredSpec {
  return spec.schedule === null ? spec : { ...spec, timeZone: spec.timeZone ?? DEFAULT_TIME_ZONE }
}

/**
 * Throws AppError `invalid`, naming the field, unless it holds exactly one of a period and a schedule, and a schedule that
 * makes sense in its zone and has a slot after `now` (design, section 3.1). The lengths were checked where it came in.
 */
export function readSpec(
  { periodSeconds, schedule, timeZone, graceSeconds, maxRuntimeSeconds }: StoredSpec,
  now: Instant,
): CheckSpec {
  return {
    schedule: readSchedule(periodSeconds, schedule, timeZone, now),
    graceMs: graceSeconds * 1_000,
    maxRuntimeMs: maxRuntimeSeconds === null ? null : maxRuntimeSeconds * 1_000,
  }
}

function readSchedule(
  periodSeconds: number | null,
  schedule: string | null,
  timeZone: string | null,
  now: Instant,
): Schedule {
  if (schedule === null) {
    if (periodSeconds === null) throw invalid('period_seconds', 'or schedule must be given')
    if (timeZone !== null)
      throw invalid('time_zone', 'must be left out beside period_seconds: it belongs to a schedule')
    return { kind: 'period', periodMs: periodSeconds * 1_000 }
  }
  if (periodSeconds !== null) throw invalid('schedule', 'must be left out beside period_seconds: give one of them')
  const cron = readCron(schedule, timeZone ?? DEFAULT_TIME_ZONE)
  if (nextSlot(cron, now) === null)
    throw invalid('schedule', `must come at some time: "${schedule}" names no real date`)
  return { kind: 'cron', cron }
}

function readCron(schedule: string, timeZone: string): Cron {
  if (!isTimeZone(timeZone))
    throw invalid('time_zone', `must be an IANA time zone like Europe/Berlin, not "${timeZone}"`)
  try {
    return parseCron(schedule, timeZone)
  } catch (error) {
    if (error instanceof InvalidSchedule) throw invalid('schedule', error.message)
    throw error
  }
}

function invalid(field: string, message: string): AppError {
  return new AppError('invalid', `${field} ${message}`, { details: [{ path: `body.${field}`, message }] })
}
