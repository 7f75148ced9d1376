/** The interval of a job, and the grace time of a HeartbeatCheck that gives none (design, section 6). */

import { expect, it } from 'vitest'
import { parseCron } from '../../../src/domain/cron.ts'
import { graceSecondsFor, intervalMsOf } from '../../../src/domain/schedule.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../support/builders.ts'

const cron = (expression: string) =>
  ({ kind: 'cron', cron: parseCron(expression, 'America/New_York', 'kubernetes') }) as const
const period = (periodMs: number) => ({ kind: 'period', periodMs }) as const

it.each([
  ['* * * * *', MINUTE],
  ['0 * * * *', HOUR],
  ['7,20,50 * * * *', 13 * MINUTE],
  ['50 * * * *', HOUR],
  ['5 0,23 * * *', HOUR],
  ['0 2 * * *', DAY],
  // Over midnight only where the next day has slots, too.
  ['0 1,23 * * *', 2 * HOUR],
  ['0 1,23 * * 1', 22 * HOUR],
  ['0 1,23 * * 1,2', 2 * HOUR],
  ['0 1,23 28,1 2,3 *', 2 * HOUR],
  ['0 1,23 30,1 4,6 *', 22 * HOUR],
  ['0 0 31 12 *', DAY],
])('the interval of %s is %i ms', (expression, ms) => {
  expect(intervalMsOf(cron(expression))).toBe(ms)
})

it.each([
  [period(10 * SECOND), 60],
  [period(600 * SECOND), 60],
  [period(610 * SECOND), 61],
  [period(36_000 * SECOND), 3_600],
  [period(7 * DAY), 3_600],
  [cron('0 * * * *'), 360],
])('a tenth of the interval, a minute at least and an hour at most', (schedule, seconds) => {
  expect(graceSecondsFor(schedule)).toBe(seconds)
})
