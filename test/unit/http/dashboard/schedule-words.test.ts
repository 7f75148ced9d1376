import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextSlot, parseCron } from '../../../../src/domain/cron.ts'
import { cityOf, nextSlots, scheduleWords, spellPlainly } from '../../../../src/http/dashboard/words/schedule-words.ts'
import { timeInZone } from '../../../../src/http/dashboard/words/time-words.ts'

const words = (schedule: string, timeZone: string | null = 'Europe/Berlin') =>
  scheduleWords({ periodSeconds: null, schedule, timeZone })

describe('a schedule in words', () => {
  it.each([
    ['0 2 * * *', 'At 02:00 every day, Berlin'],
    ['@daily', 'At 00:00 every day, Berlin'],
    ['0 2,14 * * *', 'At 02:00 and 14:00 every day, Berlin'],
    ['*/15 * * * *', 'Every 15 minutes, Berlin'],
    ['0 * * * *', 'Every hour, Berlin'],
    ['30 6 * * MON-FRI', 'At 06:30, Monday through Friday, Berlin'],
    ['0 2 * * 0', 'At 02:00, only on Sunday, Berlin'],
    ['30 18 1,15 * *', 'At 18:30, on day 1 and 15 of the month, Berlin'],
    ['0 9-17 * * *', 'Every hour, between 09:00 and 17:00, every day, Berlin'],
    ['0 0 1 JAN *', 'At 00:00, on day 1 of the month, only in January, Berlin'],
  ])('%s: %s', (schedule, expected) => expect(words(schedule)).toBe(expected))

  it.each([
    ['0 2 ? * *', 'At 02:00 every day, Berlin', 'a question mark is a star'],
    ['+5 +2 * * *', 'At 02:05 every day, Berlin', 'a sign'],
    ['*-5 2 * * *', 'Every minute, between 02:00 and 02:59, every day, Berlin', 'a range after a star'],
    ['1,, 2 * * *', 'At 02:01 every day, Berlin', 'empty parts'],
    ['*/61 2 * * *', 'At 02:00 every day, Berlin', 'a step beyond the field'],
    ['*/25 * * * *', 'At 0, 25, and 50 minutes past the hour, Berlin', 'a step that does not divide the hour'],
    ['0 2 *,5 * 1', 'At 02:00, only on Monday, Berlin', 'a star beside a day: both must hold'],
    ['0 2 1-31 * 1', 'At 02:00 every day, Berlin', 'all days beside a weekday: one is enough'],
    [
      '0 2 1 * 1',
      'At 02:00, on day 1 of the month; and at 02:00, only on Monday, Berlin',
      'a day beside a weekday: one is enough',
    ],
  ])('%s: %s (%s)', (schedule, expected) => expect(words(schedule)).toBe(expected))

  it.each([
    ['0 2 * * 7', 'At 02:00, only on Sunday, Berlin'],
    ['0 2 * * 5-7', 'At 02:00, only on Sunday, Friday, and Saturday, Berlin'],
    ['0 7 */100,1-7 * MON', 'At 07:00, between day 1 and 7 of the month, only on Monday, Berlin'],
    ['0 2 ? * *', 'Cron schedule 0 2 ? * *, Berlin'],
  ])('of cron %s: %s', (schedule, expected) =>
    expect(scheduleWords({ periodSeconds: null, schedule, timeZone: 'Europe/Berlin', dialect: 'cron' })).toBe(expected),
  )

  it.each([
    ['1,*/2 * * * *', 'Cron schedule 1,*/2 * * * *, Berlin', 'too long in words'],
    [', * * * *', 'Cron schedule , * * * *, Berlin', 'no time at all'],
    ['<script>', 'Cron schedule <script>, Berlin', 'no schedule at all: text, which the template escapes'],
  ])('%s is shown as it is written: %s (%s)', (schedule, expected) => expect(words(schedule)).toBe(expected))

  it.each([
    [900, 'Every 15 minutes'],
    [60, 'Every minute'],
    [3_600, 'Every hour'],
    [5_400, 'Every 1 hour 30 minutes'],
    [86_400, 'Every day'],
    [604_800, 'Every week'],
    [1_209_600, 'Every 2 weeks'],
    [864_000, 'Every 10 days'],
    [31_536_000, 'Every 365 days'],
  ])('%i seconds: %s', (periodSeconds, expected) =>
    expect(scheduleWords({ periodSeconds, schedule: null, timeZone: null })).toBe(expected),
  )

  it.each([
    ['America/New_York', 'New York'],
    ['America/Argentina/Buenos_Aires', 'Buenos Aires'],
    ['UTC', 'UTC'],
    ['Etc/UTC', 'UTC'],
    ['Etc/GMT+5', 'Etc/GMT+5'],
    ['US/Pacific', 'US/Pacific'],
    ['CET', 'CET'],
  ])('names the zone %s as %s', (zone, expected) => expect(cityOf(zone)).toBe(expected))

  it('is read in UTC without a zone', () => expect(words('0 2 * * *', null)).toBe('At 02:00 every day, UTC'))
})

/** Spellings of all kinds that the engine accepts, and such as it rejects. */
const part = (min: number, max: number) => {
  const value = fc.integer({ min, max })
  return fc.oneof(
    fc.constantFrom('*', '?', '*/1', '*-1', ''),
    value.map(String),
    fc.integer({ min: 1, max: max + 3 }).map((step) => `*/${step}`),
    fc.tuple(value, fc.integer({ min: 1, max: 20 })).map(([from, step]) => `${from}/${step}`),
    fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
    fc
      .tuple(value, value, fc.integer({ min: 1, max: 9 }))
      .map(([a, b, n]) => `${Math.min(a, b)}-${Math.max(a, b)}/${n}`),
    value.map((one) => `+0${one}`),
  )
}
const field = (min: number, max: number) =>
  fc.array(part(min, max), { minLength: 1, maxLength: 3 }).map((parts) => parts.join(',') || '*')
const expression = fc
  .tuple(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))
  .map((fields) => fields.join(' '))

describe('any schedule', () => {
  it('has the slots of its plain spelling', () => {
    const from = fc.integer({ min: Date.UTC(2015), max: Date.UTC(2035) })
    fc.assert(
      fc.property(expression, from, (text, at) => {
        const cron = parseCron(text, 'UTC', 'kubernetes')
        const slots = spellPlainly(cron).map((fields) => nextSlot(parseCron(fields.join(' '), 'UTC', 'kubernetes'), at))
        const found = slots.filter((slot) => slot !== null)
        expect(found.length === 0 ? null : Math.min(...found)).toBe(nextSlot(cron, at))
      }),
      { numRuns: 1_000 },
    )
  })

  it('has words of its own: two schedules that differ read differently', () => {
    const meanings = new Map<string, string>()
    fc.assert(
      fc.property(expression, (text) => {
        const meaning = JSON.stringify(spellPlainly(parseCron(text, 'UTC', 'kubernetes')))
        const read = words(text, 'UTC')
        if (read.startsWith('Cron schedule')) return
        expect(read).not.toMatch(/[*?/+]|undefined|NaN|null/)
        expect([read, meanings.get(read) ?? meaning]).toEqual([read, meaning])
        meanings.set(read, meaning)
      }),
      { numRuns: 3_000 },
    )
    expect(meanings.size).toBeGreaterThan(500)
  })

  it('has words or is shown as it is, whatever the text', () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'0123456789*?/,-LW#@ ') }))
    fc.assert(
      fc.property(text, fc.string(), (schedule, zone) => {
        expect(words(schedule, zone)).toMatch(/\S/)
      }),
    )
  })
})

describe('the next times', () => {
  const at = Date.parse('2026-10-24T12:00:00Z')
  it('are in the zone of the schedule, with the name of the offset, across a change of clocks', () => {
    const slots = nextSlots(parseCron('30 2 * * *', 'Europe/Berlin', 'kubernetes'), at, 4)
    expect(slots.map((slot) => timeInZone(slot, 'Europe/Berlin'))).toEqual([
      'Sun, 25 Oct 2026, 02:30 CEST',
      'Sun, 25 Oct 2026, 02:30 CET',
      'Mon, 26 Oct 2026, 02:30 CET',
      'Tue, 27 Oct 2026, 02:30 CET',
    ])
  })
  it('are fewer where there are no more', () => {
    expect(nextSlots(parseCron('0 0 31 2 *', 'UTC', 'kubernetes'), at, 5)).toEqual([])
    expect(nextSlots(parseCron('0 0 29 2 *', 'UTC', 'kubernetes'), at, 5)).toHaveLength(5)
  })
})
