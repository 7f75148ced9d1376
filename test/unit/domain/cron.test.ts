import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidSchedule, nextSlot, parseCron } from '../../../src/domain/cron.ts'
import { isTimeZone } from '../../../src/domain/time-zone.ts'
import { anyText } from '../../support/builders.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'

const read = (file: string) => readFileSync(new URL(`../../fixtures/cron-slots/${file}`, import.meta.url), 'utf8')
const show = (at: number | null) => (at === null ? 'none' : new Date(at).toISOString().replace(':00.000Z', 'Z'))

/** What Kubernetes computes; test/fixtures/cron-slots/README.md says where they come from. */
const ROWS = read('slots.tsv')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [group = '', expression = '', zone = '', after = '', slots = ''] = line.split('\t')
    return { group, expression, zone, after, slots: slots.split(' ') }
  })
const EXPRESSIONS: { accepted: string[]; refused: { expression: string; error: string }[] } = JSON.parse(
  read('expressions.json'),
)
const ZONES: { accepted: string[]; refused: string[] } = JSON.parse(read('zones.json'))

function rejectionOf(expression: string, zone = 'UTC'): string | null {
  try {
    parseCron(expression, zone, 'kubernetes')
    return null
  } catch (error) {
    if (error instanceof InvalidSchedule) return error.message
    throw error
  }
}

describe('slots', () => {
  it('are compared with a table of every group', () => {
    expect(ROWS.length).toBeGreaterThan(3_000)
    expect([...new Set(ROWS.map(({ group }) => group))]).toEqual(['change', 'calendar', 'random', 'odd'])
  })

  it.each(['change', 'calendar', 'random', 'odd'])('the slots are those of Kubernetes in the group %s', (group) => {
    const wrong = ROWS.filter((row) => row.group === group).flatMap((row) => {
      const cron = parseCron(row.expression, row.zone, 'kubernetes')
      let at: number | null = Date.parse(row.after)
      const found: string[] = []
      while (found.length < row.slots.length && at !== null) {
        at = nextSlot(cron, at)
        found.push(show(at))
      }
      return found.join() === row.slots.join() ? [] : [{ ...row, found }]
    })
    expect(wrong).toEqual([])
  })

  it('a slot in a skipped hour is left out, and one in a repeated hour comes twice', () => {
    const cron = parseCron('30 2 * * *', 'Europe/Berlin', 'kubernetes')
    const following = (after: string) => show(nextSlot(cron, Date.parse(after)))
    expect(following('2025-03-29T12:00Z')).toBe('2025-03-31T00:30Z')
    expect(following('2025-10-25T12:00Z')).toBe('2025-10-26T00:30Z')
    expect(following('2025-10-26T00:30Z')).toBe('2025-10-26T01:30Z')
  })

  it.each(['Pacific/Apia', 'Pacific/Fakaofo'])(
    'the day that %s skipped is stepped over, where robfig/cron would not return',
    (zone) => {
      const after = Date.parse('2011-12-28T00:00Z')
      const daily = parseCron('0 0 31 12 *', zone, 'kubernetes')
      expect(show(nextSlot(daily, after))).toBe(zone === 'Pacific/Apia' ? '2011-12-30T10:00Z' : '2011-12-30T11:00Z')
      expect(nextSlot(parseCron('0 0 30 12 *', zone, 'kubernetes'), after)).toBeGreaterThan(
        Date.parse('2012-12-01T00:00Z'),
      )
    },
  )

  // A blunder here would hang the ping path, and these go the longest way. The best of three: the first one also compiles.
  // The bound leaves room for `npm run mutate`, which counts every statement (29 ms measured).
  it.each([', * * * *', '0 , * * *', '0 0 , * ,', '0 0 * , *', '0 0 30 2 *', '0 0 31 2,4,6,9,11 *'])(
    'the search ends soon for %s, which never comes',
    (expression) => {
      const cron = parseCron(expression, 'America/Sao_Paulo', 'kubernetes')
      const took = [1, 2, 3].map(() => {
        const cpuMs = startCpuTimer()
        expect(nextSlot(cron, Date.parse('2018-06-01T00:00Z'))).toBeNull()
        return cpuMs()
      })
      expect(Math.min(...took)).toBeLessThan(100)
    },
  )
})

describe('expressions', () => {
  it('an expression that Kubernetes accepts is accepted', () => {
    expect(EXPRESSIONS.accepted.length).toBeGreaterThan(100)
    expect(EXPRESSIONS.accepted.filter((expression) => rejectionOf(expression) !== null)).toEqual([])
  })

  it('an expression that Kubernetes rejects is rejected', () => {
    expect(EXPRESSIONS.refused.length).toBeGreaterThan(400)
    expect(EXPRESSIONS.refused.filter(({ expression }) => rejectionOf(expression) === null)).toEqual([])
  })

  it.each([
    ['', 'must have 5 fields (minute, hour, day of month, month, day of week) and has 0: give one like "30 2 * * *"'],
    [
      '0 0 2 * * *',
      'must have 5 fields (minute, hour, day of month, month, day of week) and has 6: give one like "30 2 * * *"',
    ],
    ['60 * * * *', 'has "60" as minute: 60 is too large; give values from 0 to 59, such as 0, 0,30 or */15'],
    ['0 5,24-30 * * *', 'has "24-30" as hour: 30 is too large; give values from 0 to 23, such as 2, 8-18 or */6'],
    ['0 0 0 * *', 'has "0" as day of month: 0 is too small; give values from 1 to 31, such as *, 1,15 or 1-7'],
    ['0 0 1 foo *', 'has "foo" as month: "foo" is not a number; give values from 1 to 12, such as *, JAN,JUL or 1-6'],
    [
      '0 0 * * 7',
      'has "7" as day of week: 7 is too large, and Sunday is 0 or SUN; give values from 0 to 6, such as *, MON-FRI or 0 (Sunday)',
    ],
    [
      '0 0 * * SAT-SUN',
      'has "SAT-SUN" as day of week: the range ends before it begins, so write it as two, joined by a comma; give values from 0 to 6, such as *, MON-FRI or 0 (Sunday)',
    ],
    [
      '1-2-3 * * * *',
      'has "1-2-3" as minute: a range has one hyphen; give values from 0 to 59, such as 0, 0,30 or */15',
    ],
    ['1/2/3 * * * *', 'has "1/2/3" as minute: a step has one slash; give values from 0 to 59, such as 0, 0,30 or */15'],
    ['*/0 * * * *', 'has "*/0" as minute: a step is 1 or more; give values from 0 to 59, such as 0, 0,30 or */15'],
    ['*/-5 * * * *', 'has "*/-5" as minute: -5 is out of range; give values from 0 to 59, such as 0, 0,30 or */15'],
    [
      '-5 * * * *',
      'has "-5" as minute: a number is missing beside the - or /; give values from 0 to 59, such as 0, 0,30 or */15',
    ],
    [
      '5\u0007 * * * *',
      'has "5\\u0007" as minute: "5\\u0007" is not a number; give values from 0 to 59, such as 0, 0,30 or */15',
    ],
    [
      '@reboot',
      'is "@reboot", which is no macro: give one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, in lower case and without spaces',
    ],
    [
      '@every 5m',
      'must not be @every, which has no fixed times of day: give a period ({periodSeconds}) instead of a schedule',
    ],
    [
      '@every',
      'must not be @every, which has no fixed times of day: give a period ({periodSeconds}) instead of a schedule',
    ],
    ['TZ=Europe/Berlin 0 2 * * *', 'must not begin with TZ=: give the zone as {timeZone}, beside the schedule'],
    [' CRON_TZ=UTC @daily', 'must not begin with CRON_TZ=: give the zone as {timeZone}, beside the schedule'],
    ['TZ=UTC', 'must not begin with TZ=: give the zone as {timeZone}, beside the schedule'],
    [`${'1,'.repeat(98)}1 * * * *`, 'must have at most 200 characters: shorten it'],
  ])('%j is rejected with what is wrong and what is right', (expression, message) => {
    expect(rejectionOf(expression)).toBe(message)
  })

  it('an expression has at most 200 characters', () => {
    expect(rejectionOf(`${'1,'.repeat(95)}10 * * * *`)).toBeNull()
  })

  it('an expression needs a zone', () => {
    expect(rejectionOf('0 2 * * *', 'Mars/Olympus')).toBe(
      'cannot be read in the time zone "Mars/Olympus": give a {timeZone} like Europe/Berlin',
    )
  })

  it('any text is parsed or rejected with InvalidSchedule', () => {
    const piece = fc.constantFrom(
      ...'0159*?-/,@ \tLW#+'.split(''),
      '0 ',
      '* ',
      '*/',
      'mon',
      'JAN',
      '@daily',
      '@every ',
      'TZ=',
      '\u00a0',
      '__proto__',
      'constructor',
    )
    const text = fc.oneof(
      anyText(30),
      fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join('')),
    )
    fc.assert(
      fc.property(text, (expression) => void rejectionOf(expression)),
      { numRuns: 500 },
    )
  })
})

describe('time zones', () => {
  it('the time zones are the names of the IANA database', () => {
    expect(ZONES.accepted.length).toBeGreaterThan(500)
    // `Factory` stands for a clock that was never set; Intl does not know it.
    expect(ZONES.accepted.filter((name) => !isTimeZone(name))).toEqual(['Factory'])
    expect(ZONES.accepted.filter((name) => isTimeZone(name) && rejectionOf('0 2 * * *', name) !== null)).toEqual([])
  })

  it('offsets, abbreviations, other spellings and the zone of the machine are no time zones', () => {
    expect([...ZONES.refused, '', 'Local', 'local'].filter(isTimeZone)).toEqual([])
  })
})
