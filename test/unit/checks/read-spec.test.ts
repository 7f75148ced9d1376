import { describe, expect, it } from 'vitest'
import { NO_SPEC, readSpec } from '../../../src/checks/read-spec.ts'
import { nextSlot } from '../../../src/domain/cron.ts'
import { type AppError, describeError } from '../../../src/domain/errors.ts'
import { describeInvalid } from '../../../src/operator/heartbeat-check.ts'

const PERIOD = {
  ...NO_SPEC,
  periodSeconds: 60,
  dialect: null,
  graceSeconds: 5,
  maxRuntimeSeconds: 7,
  failuresBeforeDown: 2,
  missesBeforeDown: 3,
  remindEverySeconds: 300,
  remindOnEachRun: true,
}
const CRON = { ...PERIOD, periodSeconds: null, schedule: '0 2 * * *', timeZone: 'Europe/Berlin' }

function errorOf(spec: typeof PERIOD | typeof CRON | object): AppError {
  try {
    readSpec({ ...PERIOD, ...spec })
  } catch (error) {
    return error as AppError
  }
  throw new Error('it was accepted')
}

/** As the management API names fields. */
const toApi = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

describe('a spec', () => {
  it('is read with a period', () => {
    expect(readSpec(PERIOD)).toEqual({
      schedule: { kind: 'period', periodMs: 60_000 },
      graceMs: 5_000,
      maxRuntimeMs: 7_000,
      awaits: 'completion',
      resumesOnPing: false,
      failuresBeforeDown: 2,
      missesBeforeDown: 3,
      remindEveryMs: 300_000,
      remindsOnEachRun: true,
    })
  })

  it('is read without both where it follows a source: it never comes', () => {
    const { schedule } = readSpec({ ...PERIOD, periodSeconds: null, jobArea: 'default' })
    expect(schedule.kind === 'cron' && nextSlot(schedule.cron, 0)).toBeNull()
    expect(errorOf({ schedule: ', * * * *', periodSeconds: null, timeZone: 'UTC', jobArea: 'default' })).toBeDefined()
  })

  it.each(['0 2 * * *', '0 0 29 2 *', '@daily'])('is read with the schedule %s', (schedule) => {
    expect(readSpec({ ...CRON, schedule })).toMatchObject({ schedule: { kind: 'cron' }, maxRuntimeMs: 7_000 })
  })

  it.each(['0 0 29 2 */3', '0 0 1 1 */7', '0 0 30 2 MON', '0 0 31 */2,2 *'])(
    'is read with the schedule %s, as cron runs it, however rarely',
    (schedule) =>
      expect(readSpec({ ...CRON, schedule, dialect: 'cron' })).toMatchObject({ schedule: { kind: 'cron' } }),
  )

  it.each(['0 0 30 2 *', '0 0 31 2,4 *', '0 0 31 4 */2', '0 0 30,31 2 */7'])('of cron is no date: %s', (schedule) =>
    expect(errorOf({ ...CRON, schedule, dialect: 'cron' }).message).toContain('names no real date'),
  )

  it.each([', * * * *', '* , * * *', '* * , * *', '* * * , *', '* * * * ,', '0 0 31 2,4 *', '0 0 30 2 ?', '0 0 , * ,'])(
    'of Kubernetes is no date: %s',
    (schedule) => expect(errorOf({ ...CRON, schedule, dialect: 'kubernetes' }).message).toContain('names no real date'),
  )

  it.each([
    [
      { periodSeconds: null },
      'period_seconds or schedule must be given',
      'spec.periodSeconds or schedule must be given',
    ],
    [
      { timeZone: 'UTC' },
      'time_zone goes with schedule; this check has period_seconds',
      'spec.timeZone goes with spec.schedule; this check has spec.periodSeconds',
    ],
    [
      { schedule: '0 2 * * *' },
      'schedule must be left out beside period_seconds: give one of them',
      'spec.schedule must be left out beside spec.periodSeconds: give one of them',
    ],
    [
      { ...CRON, timeZone: 'Mars/Olympus' },
      'time_zone must be an IANA time zone like Europe/Berlin, not "Mars/Olympus"',
      'spec.timeZone must be an IANA time zone like Europe/Berlin, not "Mars/Olympus"',
    ],
    [
      { ...CRON, schedule: 'TZ=UTC 0 2 * * *' },
      'schedule must not begin with TZ=: give the zone as time_zone, beside the schedule',
      'spec.schedule must not begin with TZ=: give the zone as spec.timeZone, beside the schedule',
    ],
    [
      { ...CRON, schedule: '@every 1h' },
      'schedule must not be @every, which has no fixed times of day: give a period (period_seconds) instead of a schedule',
      'spec.schedule must not be @every, which has no fixed times of day: give a period (spec.periodSeconds) instead of a schedule',
    ],
    [
      { ...CRON, schedule: '0 0 30 2 *' },
      'schedule must come at some time: "0 0 30 2 *" names no real date',
      'spec.schedule must come at some time: "0 0 30 2 *" names no real date',
    ],
  ])('is rejected in the words of each edge: %j', (spec, ofApi, ofResource) => {
    const error = errorOf(spec)
    expect(error.code).toBe('invalid_request')
    expect(describeError(error, toApi).text).toBe(ofApi)
    expect(describeInvalid(error)).toBe(ofResource)
  })
})
