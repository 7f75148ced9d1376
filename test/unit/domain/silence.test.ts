import { describe, expect, it } from 'vitest'
import { parseCron } from '../../../src/domain/cron.ts'
import { nextStart, type SilenceTimes, spanAt } from '../../../src/domain/silence.ts'
import { HOUR, MINUTE, NOON } from '../../support/builders.ts'

const inBerlin = (expression: string, durationMs: number): SilenceTimes => ({
  cron: parseCron(expression, 'Europe/Berlin', 'cron'),
  durationMs,
})
const at = (text: string) => Date.parse(`${text}Z`)
const shown = (times: SilenceTimes, text: string) => {
  const span = spanAt(times, at(text))
  return span === null ? null : [span.from, span.until].map((one) => new Date(one).toISOString().slice(5, 16))
}

describe('a silence that holds once', () => {
  const once = { from: NOON, until: NOON + HOUR }

  it('begins at its start, and ends before its end', () => {
    const times = [NOON - 1, NOON, NOON + HOUR - 1, NOON + HOUR]
    expect(times.map((now) => spanAt(once, now)?.until ?? null)).toEqual([null, NOON + HOUR, NOON + HOUR, null])
    expect(times.map((now) => nextStart(once, now))).toEqual([NOON, null, null, null])
  })
})

describe('a silence with a schedule', () => {
  it('holds from each slot on', () => {
    const sundays = inBerlin('0 3 * * 0', 2 * HOUR)
    // In winter.
    expect(shown(sundays, '2026-11-22T01:59:59.999')).toBeNull()
    expect(shown(sundays, '2026-11-22T02:00')).toEqual(['11-22T02:00', '11-22T04:00'])
    expect(shown(sundays, '2026-11-22T03:59:59.999')).toEqual(['11-22T02:00', '11-22T04:00'])
    expect(shown(sundays, '2026-11-22T04:00')).toBeNull()
    expect(nextStart(sundays, at('2026-11-22T02:00'))).toBe(at('2026-11-29T02:00'))
    // In summer.
    expect(shown(sundays, '2026-07-05T01:00')).toEqual(['07-05T01:00', '07-05T03:00'])
    expect(shown(sundays, '2026-07-05T03:00')).toBeNull()
  })

  it('lasts its duration in a night in which the clocks go back, or forward', () => {
    const nights = inBerlin('30 1 * * 0', 3 * HOUR)
    // 25 October 2026, 03:00 becomes 02:00 at 01:00 UTC.
    expect(shown(nights, '2026-10-25T02:29:59.999')).toEqual(['10-24T23:30', '10-25T02:30'])
    expect(shown(nights, '2026-10-25T02:30')).toBeNull()
    // 28 March 2027, 02:00 becomes 03:00 at 01:00 UTC.
    expect(shown(nights, '2027-03-28T03:29:59.999')).toEqual(['03-28T00:30', '03-28T03:30'])
    expect(shown(nights, '2027-03-28T03:30')).toBeNull()
  })

  it('that begins in the hour that is repeated holds once, in the one that is skipped nevertheless', () => {
    const nights = inBerlin('30 2 * * 0', 30 * MINUTE)
    expect(shown(nights, '2026-10-25T00:45')).toEqual(['10-25T00:30', '10-25T01:00'])
    expect(shown(nights, '2026-10-25T01:45')).toBeNull()
    // Debian's cron starts what was skipped right after the change.
    expect(shown(nights, '2027-03-28T01:10')).toEqual(['03-28T01:00', '03-28T01:30'])
  })

  it('is one where its windows overlap', () => {
    const hourly = inBerlin('0 8-10 * * *', 90 * MINUTE)
    expect(shown(hourly, '2026-11-22T08:15')).toEqual(['11-22T07:00', '11-22T09:30'])
    // A moment before the next window it is known until the end of the last one that has begun.
    expect(shown(hourly, '2026-11-22T09:45')).toEqual(['11-22T09:00', '11-22T10:30'])
    expect(shown(hourly, '2026-11-22T10:30')).toBeNull()
  })
})
