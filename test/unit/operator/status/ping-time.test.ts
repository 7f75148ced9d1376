/** F7: when the time of the last ping is written. */

import { describe, expect, it } from 'vitest'
import { type Interval, isPingTimeDue } from '../../../../src/operator/status/ping-time.ts'
import { HOUR, SECOND } from '../../../support/builders.ts'

const NOW = Date.UTC(2026, 0, 1)

describe('the time of a ping is due after max(60 s, half the interval)', () => {
  it.each<[string, Interval, number]>([
    ['a period of 10 s', { periodSeconds: 10 }, 60 * SECOND],
    ['a period of 120 s', { periodSeconds: 120 }, 60 * SECOND],
    ['a period of 122 s', { periodSeconds: 122 }, 61 * SECOND],
    ['a period of a day', { periodSeconds: 86_400, schedule: null, timeZone: null }, 12 * HOUR],
    ['a schedule of each minute', { schedule: '* * * * *' }, 60 * SECOND],
    ['a schedule of each day', { schedule: '0 2 * * *', timeZone: 'Europe/Berlin' }, 12 * HOUR],
    ['a schedule whose shortest gap is an hour', { schedule: '0 5,6 1 * *', timeZone: 'UTC' }, HOUR / 2],
    [
      'a schedule whose next gap is longer than its shortest',
      { schedule: '0 2,13,23 * * *', timeZone: 'UTC' },
      1.5 * HOUR,
    ],
    ['a schedule that is not valid', { schedule: '0 99 * * *' }, 60 * SECOND],
    ['a job whose interval is unknown', {}, 60 * SECOND],
  ])('%s', (_, job, stepMs) => {
    expect(isPingTimeDue(NOW, NOW + stepMs - 1, job)).toBe(false)
    expect(isPingTimeDue(NOW, NOW + stepMs, job)).toBe(true)
    expect(isPingTimeDue(null, NOW, job)).toBe(true)
  })
})
