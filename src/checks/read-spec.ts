/** From the configuration that people give to the spec that the state machine reads. */

import type { CheckSpec, Manager, Schedule } from '../domain/check.ts'
import { type Cron, comes, type Dialect, InvalidSchedule, parseCron } from '../domain/cron.ts'
import { invalidField } from '../domain/errors.ts'
import { LIMITS } from '../domain/limits.ts'
import { NEVER } from '../domain/schedule.ts'
import { isTimeZone } from '../domain/time-zone.ts'
import { type GivenSpec, type StoredSpec, withSchedule } from '../store/checks/columns.ts'

export const DEFAULT_TIME_ZONE = 'UTC'

/** The configuration of which nothing was given, not even a period or a schedule. */
export const NO_SPEC: GivenSpec = {
  periodSeconds: null,
  schedule: null,
  timeZone: null,
  graceSeconds: LIMITS.graceSeconds.default,
  maxRuntimeSeconds: null,
  warnExitCodes: [],
  failuresBeforeDown: 1,
  missesBeforeDown: 1,
  remindEverySeconds: null,
  remindOnEachRun: false,
  jobArea: null,
  resumeOnPing: false,
}

/** Those of these fields that are of a spec, and those that are not. */
export function splitSpec<Fields extends object>(
  fields: Fields,
): { readonly given: Partial<GivenSpec>; readonly others: Omit<Fields, keyof GivenSpec> } {
  const isOfSpec = ([name]: [string, unknown]) => Object.hasOwn(NO_SPEC, name)
  const entries = Object.entries(fields)
  return {
    given: Object.fromEntries(entries.filter(isOfSpec)),
    others: Object.fromEntries(entries.filter((entry) => !isOfSpec(entry))) as Omit<Fields, keyof GivenSpec>,
  }
}

/** Cron starts the job of a check of the API, Kubernetes that of a HeartbeatCheck: each reads a schedule in its own way. */
const DIALECT_OF: Readonly<Record<Manager, Dialect>> = { api: 'cron', kubernetes: 'kubernetes' }

/** A schedule without a zone has the default one, and the dialect of its manager. */
export function completeSpec(given: GivenSpec, managedBy: Manager): StoredSpec {
  if (given.schedule === null) return { ...given, dialect: null }
  return { ...given, timeZone: given.timeZone ?? DEFAULT_TIME_ZONE, dialect: DIALECT_OF[managedBy] }
}

/**
 * Throws AppError `invalid_request`, with the field, unless the spec holds either a period or a schedule, and a
 * schedule that makes sense in its zone and names a date that exists (design, section 3.1). The spec of a check that
 * follows a source may hold none of both. Numbers and lengths were checked at the edge.
 */
export function readSpec(spec: StoredSpec): CheckSpec {
  return withSchedule(spec, readSchedule(spec))
}

function readSchedule({ periodSeconds, schedule, timeZone, jobArea, dialect }: StoredSpec): Schedule {
  if (schedule === null) {
    if (periodSeconds === null && jobArea !== null) return NEVER
    if (periodSeconds === null) throw invalidField('periodSeconds', 'or schedule must be given')
    if (timeZone !== null) throw invalidField('timeZone', 'goes with {schedule}; this check has {periodSeconds}')
    return { kind: 'period', periodMs: periodSeconds * 1_000 }
  }
  if (periodSeconds !== null)
    throw invalidField('schedule', 'must be left out beside {periodSeconds}: give one of them')
  const cron = readCron(schedule, timeZone ?? DEFAULT_TIME_ZONE, dialect ?? 'kubernetes')
  if (!comes(cron)) throw invalidField('schedule', `must come at some time: "${schedule}" names no real date`)
  return { kind: 'cron', cron }
}

function readCron(schedule: string, timeZone: string, dialect: Dialect): Cron {
  if (!isTimeZone(timeZone))
    throw invalidField('timeZone', `must be an IANA time zone like Europe/Berlin, not "${timeZone}"`)
  try {
    return parseCron(schedule, timeZone, dialect)
  } catch (error) {
    if (error instanceof InvalidSchedule) throw invalidField('schedule', error.message)
    throw error
  }
}
