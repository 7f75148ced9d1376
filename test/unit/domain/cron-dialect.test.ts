import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Dialect, InvalidSchedule, nextSlot, parseCron, readerOf } from '../../../src/domain/cron.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'
import { readClocks, runCron } from '../../support/debian-cron.ts'

const show = (at: number | null) => (at === null ? 'none' : new Date(at).toISOString().replace(':00.000Z', 'Z'))

function slotsOf(expression: string, zone: string, after: string, count: number, dialect: Dialect = 'cron'): string[] {
  const cron = parseCron(expression, zone, dialect)
  const slots: string[] = []
  for (let at = nextSlot(cron, Date.parse(after)); slots.length < count; at = nextSlot(cron, at!)) slots.push(show(at))
  return slots
}

function rejectionOf(expression: string, dialect: Dialect = 'cron'): string | null {
  try {
    parseCron(expression, 'UTC', dialect)
    return null
  } catch (error) {
    if (error instanceof InvalidSchedule) return error.message
    throw error
  }
}

describe('the slots of a line of a crontab', () => {
  it.each([
    // A fixed time in a repeated hour comes once, at its first occurrence; in a skipped hour right after the gap.
    ['30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['2026-10-25T00:30Z', '2026-10-26T01:30Z']],
    ['30 2 * * *', 'Europe/Berlin', '2026-10-25T00:30:08Z', ['2026-10-26T01:30Z', '2026-10-27T01:30Z']],
    ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29T01:00Z', '2026-03-30T00:30Z']],
    ['0,30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29T01:00Z', '2026-03-30T00:00Z']],
    ['0 3 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29T01:00Z', '2026-03-30T01:00Z']],
    [
      '59 1-3 * * *',
      'Europe/Berlin',
      '2026-10-24T20:00Z',
      ['2026-10-24T23:59Z', '2026-10-25T00:59Z', '2026-10-25T02:59Z'],
    ],
    // A job that names any hour or any minute runs each real hour.
    [
      '30 * * * *',
      'Europe/Berlin',
      '2026-10-24T23:59Z',
      ['2026-10-25T00:30Z', '2026-10-25T01:30Z', '2026-10-25T02:30Z'],
    ],
    [
      '*/30 2 * * *',
      'Europe/Berlin',
      '2026-10-24T12:00Z',
      ['2026-10-25T00:00Z', '2026-10-25T00:30Z', '2026-10-25T01:00Z'],
    ],
    ['*/30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-30T00:00Z', '2026-03-30T00:30Z']],
    ['0 */2 * * *', 'Europe/Berlin', '2026-03-29T00:30Z', ['2026-03-29T02:00Z', '2026-03-29T04:00Z']],
    [
      '@hourly',
      'America/New_York',
      '2026-11-01T04:30Z',
      ['2026-11-01T05:00Z', '2026-11-01T06:00Z', '2026-11-01T07:00Z'],
    ],
    // The hour that is repeated has the last times for months.
    ['*/30 1 */8 * 0', 'America/New_York', '2026-11-01T05:30Z', ['2026-11-01T06:00Z', '2026-11-01T06:30Z']],
    ['*/30 2 25 10 *', 'Europe/Berlin', '2026-10-25T00:30Z', ['2026-10-25T01:00Z', '2026-10-25T01:30Z']],
    // A window of offsets (domain/time-zone.ts) ends at 02:08:52, within the first of the two hours.
    ['*/60 23 21 3 *', 'America/Asuncion', '2020-03-22T02:00Z', ['2020-03-22T03:00Z', '2021-03-22T02:00Z']],
    ['@daily', 'America/Sao_Paulo', '2018-11-03T12:00Z', ['2018-11-04T03:00Z', '2018-11-05T02:00Z']],
    // Half an hour, at 02:00: 01:30 comes twice, and 02:15 not at all.
    ['45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T00:00Z', ['2026-04-04T14:45Z', '2026-04-05T15:15Z']],
    ['15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', ['2026-10-03T15:30Z', '2026-10-04T15:15Z']],
    // A change of more than three hours is followed without a look back.
    ['0 12 30 12 *', 'Pacific/Apia', '2011-12-01T00:00Z', ['2012-12-29T22:00Z']],
    // One of the fields of days begins with a star: a day that both name.
    [
      '0 7 */100,1-7 * MON',
      'UTC',
      '2026-11-27T00:00Z',
      ['2026-12-07T07:00Z', '2027-01-04T07:00Z', '2027-02-01T07:00Z'],
    ],
    ['0 0 */2 * 1', 'UTC', '2026-11-27T00:00Z', ['2026-12-07T00:00Z', '2026-12-21T00:00Z']],
    ['0 0 13 * */5', 'UTC', '2026-11-27T00:00Z', ['2026-12-13T00:00Z', '2027-06-13T00:00Z']],
    // None does: a day that either names, although one of them has a star behind a comma.
    ['0 0 13 * 5', 'UTC', '2026-11-27T12:00Z', ['2026-12-04T00:00Z', '2026-12-11T00:00Z', '2026-12-13T00:00Z']],
    ['0 0 1,* * 1', 'UTC', '2026-11-27T12:00Z', ['2026-11-28T00:00Z', '2026-11-29T00:00Z']],
    // 7 is Sunday.
    ['0 3 * * 7', 'UTC', '2026-11-27T00:00Z', ['2026-11-29T03:00Z', '2026-12-06T03:00Z']],
    [
      '0 3 * * 5-7',
      'UTC',
      '2026-11-26T12:00Z',
      ['2026-11-27T03:00Z', '2026-11-28T03:00Z', '2026-11-29T03:00Z', '2026-12-04T03:00Z'],
    ],
    ['0 3 * * 1,7', 'UTC', '2026-11-27T00:00Z', ['2026-11-29T03:00Z', '2026-11-30T03:00Z']],
    ['0 3 * * sat-7', 'UTC', '2026-11-27T00:00Z', ['2026-11-28T03:00Z', '2026-11-29T03:00Z', '2026-12-05T03:00Z']],
    ['0 3 * * 1-7/3', 'UTC', '2026-11-27T00:00Z', ['2026-11-29T03:00Z', '2026-11-30T03:00Z', '2026-12-03T03:00Z']],
    ['0 0 29 2 *', 'UTC', '2026-11-27T00:00Z', ['2028-02-29T00:00Z', '2032-02-29T00:00Z']],
  ])('%s in %s after %s', (expression, zone, after, slots) => {
    expect(slotsOf(expression, zone, after, slots.length)).toEqual(slots)
  })

  it('are others than those of Kubernetes', () => {
    expect(slotsOf('30 2 * * *', 'Europe/Berlin', '2026-10-25T00:30Z', 1, 'kubernetes')).toEqual(['2026-10-25T01:30Z'])
    expect(slotsOf('0 0 */2 * 1', 'UTC', '2026-11-27T00:00Z', 1, 'kubernetes')).toEqual(
      ['2026-11-27T00:00Z'].slice(1).concat('2026-11-29T00:00Z'),
    )
  })

  it('never end in an endless search', () => {
    for (const expression of ['0 0 30 2 *', '*/5 * 31 2,4,6,9,11 *', '0 0 31 4 */7']) {
      const cron = parseCron(expression, 'America/Sao_Paulo', 'cron')
      const took = [1, 2, 3].map(() => {
        const cpuMs = startCpuTimer()
        expect(nextSlot(cron, Date.parse('2018-06-01T00:00Z'))).toBeNull()
        return cpuMs()
      })
      expect(Math.min(...took)).toBeLessThan(20)
    }
  })

  it.each([
    ['0 0 29 2 */3', '2024-02-29T00:01Z', ['2032-02-29T00:00Z', '2040-02-29T00:00Z']],
    ['0 0 1 1 */7', '2023-01-01T00:01Z', ['2034-01-01T00:00Z', '2040-01-01T00:00Z']],
    // 2100 is no leap year: the longest wait of all.
    ['0 0 29 2 */7', '2088-02-29T00:00Z', ['2128-02-29T00:00Z', '2156-02-29T00:00Z']],
  ])('of a date on a weekday are found, however rare: %s', (expression, after, slots) => {
    expect(slotsOf(expression, 'UTC', after, 2)).toEqual(slots)
    const cron = parseCron(expression, 'Europe/Berlin', 'cron')
    const found = [after, slots[0]!].map((at) => nextSlot(cron, Date.parse(at))!)
    expect(found.map((at) => show(at + cron.zone.offsetAt(at)))).toEqual(slots)
    const took = [1, 2, 3].map(() => {
      const cpuMs = startCpuTimer()
      nextSlot(cron, Date.parse(after))
      return cpuMs()
    })
    expect(Math.min(...took)).toBeLessThan(5)
  })

  it('that are years away are searched once, not again from each change of clocks and each look-up of an offset', () => {
    const cron = parseCron('0 0 29 2 *', 'Europe/Berlin', 'cron')
    let looks = 0
    const includes = (month: number) => {
      looks += 1
      return cron.months.values.includes(month)
    }
    const months = { ...cron.months, values: Object.assign([...cron.months.values], { includes }) }
    expect(show(nextSlot({ ...cron, months }, Date.parse('2024-03-01T00:00Z')))).toBe('2028-02-28T23:00Z')
    expect(looks).toBeLessThan(200)
  })
})

/** Changes of clocks of every kind: at night and at midnight, by 15 and 30 minutes, by two hours and three, by a day. */
const CHANGES = [
  ['Europe/Berlin', '2026-03-29T01:00Z'],
  ['Europe/Berlin', '2026-10-25T01:00Z'],
  ['America/New_York', '2026-03-08T07:00Z'],
  ['America/New_York', '2026-11-01T06:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30Z'],
  ['Asia/Kathmandu', '1985-12-31T18:30Z'],
  ['Asia/Pyongyang', '2015-08-14T15:00Z'],
  ['America/Caracas', '2016-05-01T07:00Z'],
  ['Africa/Casablanca', '2026-02-15T02:00Z'],
  ['Antarctica/Troll', '2026-03-29T01:00Z'],
  ['Antarctica/Troll', '2026-10-25T01:00Z'],
  ['Antarctica/Casey', '2009-10-17T18:00Z'],
  ['Antarctica/Casey', '2010-03-04T15:00Z'],
  ['Pacific/Apia', '2011-12-30T10:00Z'],
  ['Pacific/Kwajalein', '1993-08-21T12:00Z'],
] as const

const value = (min: number, max: number) => fc.integer({ min, max })
const range = (min: number, max: number) =>
  fc.tuple(value(min, max), value(min, max)).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
const part = (min: number, max: number) =>
  fc.oneof(
    value(min, max).map(String),
    range(min, max),
    fc.tuple(range(min, max), value(1, 9)).map(([from, step]) => `${from}/${step}`),
    value(1, max + 3).map((step) => `*/${step}`),
  )
const field = (min: number, max: number, stars = 1) =>
  fc.oneof(
    { weight: stars, arbitrary: fc.constant('*') },
    fc.array(part(min, max), { minLength: 1, maxLength: 3 }).map((parts) => parts.join()),
  )
const line = fc
  .tuple(field(0, 59), field(0, 23), field(1, 31, 3), fc.constant('*'), field(0, 7, 3))
  .map((fields) => fields.join(' '))

describe.each(CHANGES)('in %s around %s', (zone, change) => {
  const from = Date.parse(change) - 30 * HOUR
  const to = Date.parse(change) + 30 * HOUR
  const clocks = readClocks(zone, from, to)

  it('the clocks change', () => {
    const shown = (at: number) => clocks[(at - from) / MINUTE]!
    expect(shown(Date.parse(change)) - shown(Date.parse(change) - MINUTE)).not.toBe(1)
  })

  it('any line has the slots at which cron runs it, whatever is asked for', () => {
    fc.assert(
      fc.property(line, value(0, 59), (expression, seconds) => {
        const cron = parseCron(expression, zone, 'cron')
        const runs = runCron(expression, clocks, from)
        const slots: number[] = []
        for (let at = nextSlot(cron, from - 1); at !== null && at <= to; at = nextSlot(cron, at)) slots.push(at)
        expect(slots.map(show)).toEqual(runs.map(show))
        // From any moment on, as from the slot before.
        const asked = from + 29 * HOUR + seconds * 150_000
        const next = runs.find((at) => at > asked)
        if (next !== undefined) expect(show(nextSlot(cron, asked))).toBe(show(next))
      }),
      { numRuns: 80 },
    )
  })
})

describe('the expressions of a crontab', () => {
  it.each([
    '  0 3 * * *',
    '0\t3 *  * *\t',
    '0 3 * * *\n',
    '0 3 * * *\r\n',
    '@daily ',
    '00 03 * * 07',
    '*/100 * * * *',
    '0 0 1 jAn SuN',
  ])('has %j', (expression) => expect(rejectionOf(expression)).toBeNull())

  it.each([
    [
      '0 0 * * 8',
      'has "8" as day of week: 8 is too large; give values from 0 to 7, such as *, MON-FRI or 0 or 7 (Sunday)',
    ],
    [
      '0 0 ? * *',
      'has "?" as day of month: cron has no ?, so write *; give values from 1 to 31, such as *, 1,15 or 1-7',
    ],
    [
      '5/15 * * * *',
      'has "5/15" as minute: a step goes with * or a range, so write 5-59/15; give values from 0 to 59, such as 0, 0,30 or */15',
    ],
    [
      '0 0 * * FRI-SUN',
      'has "FRI-SUN" as day of week: the range ends before it begins, so write it as two, joined by a comma, and Sunday at its end is 7; give values from 0 to 7, such as *, MON-FRI or 0 or 7 (Sunday)',
    ],
    [
      '1,,2 * * * *',
      'has "" as minute: a comma has a value on each side; give values from 0 to 59, such as 0, 0,30 or */15',
    ],
    ['+5 * * * *', 'has "+5" as minute: "+5" is not a number; give values from 0 to 59, such as 0, 0,30 or */15'],
    [
      '*-5 * * * *',
      'has "*-5" as minute: a star is no end of a range; give values from 0 to 59, such as 0, 0,30 or */15',
    ],
    [
      '0 0 L * *',
      'has "L" as day of month: "L" is not cron\'s: it has no L, W or #; give values from 1 to 31, such as *, 1,15 or 1-7',
    ],
    [
      '0 0 15W * *',
      'has "15W" as day of month: "15W" is not cron\'s: it has no L, W or #; give values from 1 to 31, such as *, 1,15 or 1-7',
    ],
    [
      '0 0 * * 1#1',
      'has "1#1" as day of week: "1#1" is not cron\'s: it has no L, W or #; give values from 0 to 7, such as *, MON-FRI or 0 or 7 (Sunday)',
    ],
    [
      '0 0 2 * * *',
      'must have 5 fields (minute, hour, day of month, month, day of week) and has 6: give one like "30 2 * * *", without a field of seconds and without a command',
    ],
    [
      '0 2 * * * /usr/bin/backup --all',
      'must have 5 fields (minute, hour, day of month, month, day of week) and has 7: give one like "30 2 * * *", without a field of seconds and without a command',
    ],
    ['@reboot', 'must not be @reboot, which has no times: give a period ({periodSeconds}) within which the job pings'],
    [
      '@every 5m',
      'must not be @every, which has no fixed times of day: give a period ({periodSeconds}) instead of a schedule',
    ],
    ['CRON_TZ=UTC 0 2 * * *', 'must not begin with CRON_TZ=: give the zone as {timeZone}, beside the schedule'],
    [
      '0 3 * *\n* *',
      'has U+000A as character 8, after "0 3 * *": only A-Z, a-z, 0-9, * , - / @ and plain spaces are allowed, so remove or replace it',
    ],
  ])('do not have %j', (expression, message) => expect(rejectionOf(expression)).toBe(message))

  it('7 is a Sunday, and no day of its own', () => {
    const { weekdays } = parseCron('0 0 * * 5-7', 'UTC', 'cron')
    expect(weekdays.values).toEqual([0, 5, 6])
    expect(rejectionOf('0 0 * * 7', 'kubernetes')).toMatch(/7 is too large, and Sunday is 0 or SUN/)
  })
})

describe.each(['cron', 'kubernetes'] as const)('an expression of %s with a character that nobody sees', (dialect) => {
  it.each([
    ['*/5 6-23\u034f * * *', 'U+034F', 9, '*/5 6-23'],
    ['*/5 6-23\u200b * * *', 'U+200B', 9, '*/5 6-23'],
    ['\ufeff0 3 * * *', 'U+FEFF', 1, null],
    ['0 3 \u2060* * *', 'U+2060', 5, '0 3 '],
    ['0 3 * * *\u00ad', 'U+00AD', 10, '0 3 * * *'],
    ['0 3 * * *\u{e0020}', 'U+E0020', 10, '0 3 * * *'],
    ['0 3 * * \ud800*', 'U+D800', 9, '0 3 * * '],
    ['0 3 * * \u009b*', 'U+009B', 9, '0 3 * * '],
    ['  0 3 * * *\u200e', 'U+200E', 12, null],
  ])('%j is rejected with its code and its place', (expression, code, place, before) => {
    const message = rejectionOf(expression, dialect)!
    expect(message.startsWith(`has ${code} as character ${place}`)).toBe(true)
    if (before !== null) expect(message).toContain(`, after ${JSON.stringify(before)}: `)
    expect(message).toMatch(/^[\x20-\x7e]*$/)
  })

  it.each([
    ['0 9\u201317 * * *', '"–" (U+2013)'],
    ['0 3 * * \uff0a', '"＊" (U+FF0A)'],
    ['0 \u0663 * * *', '"٣" (U+0663)'],
  ])('%j is rejected with the character that looks alike', (expression, shown) =>
    expect(rejectionOf(expression, dialect)).toContain(`has ${shown} as character`),
  )

  it('a space that does not break is one for Kubernetes alone', () => {
    const message = rejectionOf('0 3\u00a0* * *', dialect)
    if (dialect === 'kubernetes') expect(message).toBeNull()
    else expect(message).toMatch(/^has U\+00A0 as character 4, after "0 3": /)
  })
})

it.each([
  ['0 2 ? * *', 'kubernetes'],
  ['+0 2 * * *', 'kubernetes'],
  ['0\r2 * * *', 'kubernetes'],
  ['0 2 30 2 */2', 'kubernetes'],
  ['\t0 2 */2 * 1\n', 'cron'],
  ['0 2 * * *', 'cron'],
])('the line %j of a check that was declared is read by %s: cron where cron would run the line', (line, reader) => {
  expect(readerOf(line)).toBe(reader)
})
