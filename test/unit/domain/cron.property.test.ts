import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextSlot, parseCron } from '../../../src/domain/cron.ts'
import { findTimeZone } from '../../../src/domain/time-zone.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../support/builders.ts'

const formats = new Map<string, Intl.DateTimeFormat>()
/** The local time in the zone, as if it were UTC: from Intl, not from our table of offsets. */
function localTime(zone: string, at: number): number {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  formats.set(zone, format)
  const [month, day, year, hour, minute, second] = format.format(at).split(/\D+/).map(Number)
  return Date.UTC(year!, month! - 1, day!, hour!, minute!, second!)
}

describe('a time zone', () => {
  it('has the seconds of an offset: Monrovia was 44 minutes and 30 seconds behind until 1972', () => {
    expect(findTimeZone('Africa/Monrovia')!.offsetAt(Date.UTC(1971, 0))).toBe(-(44 * MINUTE + 30 * SECOND))
  })

  it('has the offsets of Intl', () => {
    const name = fc.constantFrom(
      'Europe/Berlin',
      'America/St_Johns',
      'Australia/Lord_Howe',
      'Pacific/Chatham',
      'Africa/Cairo',
      'America/Recife',
      'Asia/Gaza',
      'Etc/GMT+5',
    )
    fc.assert(
      fc.property(name, fc.integer({ min: Date.UTC(1996), max: Date.UTC(2044) }), (zone, atMs) => {
        const at = atMs - (atMs % SECOND)
        expect(findTimeZone(zone)!.offsetAt(at)).toBe(localTime(zone, at) - at)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('any schedule', () => {
  type Part = { text: string; values: Set<number>; isStar: boolean }
  const part = (min: number, max: number): fc.Arbitrary<Part> => {
    const value = fc.integer({ min, max })
    const list = (from: number, to: number, step = 1) => {
      const values = new Set<number>()
      for (let one = from; one <= to; one += step) values.add(one)
      return values
    }
    return fc.oneof(
      fc.constantFrom('*', '?').map((text) => ({ text, values: list(min, max), isStar: true })),
      fc
        .integer({ min: 1, max: max + 2 })
        .map((step) => ({ text: `*/${step}`, values: list(min, max, step), isStar: step === 1 })),
      value.map((one) => ({ text: `${one}`, values: list(one, one), isStar: false })),
      fc.tuple(value, value).map(([a, b]) => ({ text: `${a},${b}`, values: new Set([a, b]), isStar: false })),
      fc.tuple(value, value, fc.integer({ min: 1, max: 9 })).map(([a, b, step]) => {
        const [from, to] = a < b ? [a, b] : [b, a]
        return { text: `${from}-${to}/${step}`, values: list(from, to, step), isStar: false }
      }),
    )
  }
  const parts = fc.tuple(part(0, 59), part(0, 23), part(1, 31), part(1, 12), part(0, 6))
  const instant = fc.integer({ min: Date.UTC(2015), max: Date.UTC(2026) })
  /** A moment within two days before a change of clocks, or any. */
  const after = fc.oneof(
    instant,
    fc
      .tuple(
        fc.constantFrom('2025-03-30T01:00Z', '2025-10-26T01:00Z', '2024-11-03T06:00Z', '2025-04-05T16:00Z'),
        fc.nat(2 * DAY),
      )
      .map(([change, before]) => Date.parse(change) - before),
  )
  const textOf = (five: Part[]) => five.map(({ text }) => text).join(' ')

  it('has its slots strictly after, and the same one from every moment before it', () => {
    const zone = fc.constantFrom('UTC', 'Asia/Kathmandu', 'Europe/Berlin', 'America/New_York', 'Australia/Sydney')
    fc.assert(
      fc.property(
        parts,
        zone,
        after,
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        (five, name, from, share) => {
          const cron = parseCron(textOf(five), name, 'kubernetes')
          const slot = nextSlot(cron, from)
          if (slot === null) return
          expect(slot).toBeGreaterThan(from)
          expect(slot % MINUTE).toBe(0)
          expect(nextSlot(cron, from + Math.floor((slot - from) * share))).toBe(slot)
          expect(nextSlot(cron, slot - 1)).toBe(slot)
          expect(nextSlot(cron, slot) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(slot)
        },
      ),
      { numRuns: 1_000 },
    )
  })

  // Half-hour and midnight changes are left to the table: there robfig/cron skips slots that this search would find.
  it('has the slots that a search minute by minute finds', () => {
    const zone = fc.constantFrom('UTC', 'Asia/Kathmandu', 'Europe/Berlin', 'America/New_York', 'Australia/Sydney')
    fc.assert(
      fc.property(parts, zone, after, (five, name, from) => {
        const [minutes, hours, days, months, weekdays] = five
        const matches = (at: number): boolean => {
          const local = new Date(localTime(name, at))
          const isDay = days.values.has(local.getUTCDate())
          const isWeekday = weekdays.values.has(local.getUTCDay())
          const suits = days.isStar || weekdays.isStar ? isDay && isWeekday : isDay || isWeekday
          return (
            suits &&
            minutes.values.has(local.getUTCMinutes()) &&
            hours.values.has(local.getUTCHours()) &&
            months.values.has(local.getUTCMonth() + 1)
          )
        }
        const end = from + 36 * HOUR
        let expected = (Math.floor(from / MINUTE) + 1) * MINUTE
        while (expected < end && !matches(expected)) expected += MINUTE
        const found = nextSlot(parseCron(textOf(five), name, 'kubernetes'), from) ?? Number.POSITIVE_INFINITY
        if (expected < end) expect(found).toBe(expected)
        else expect(found).toBeGreaterThanOrEqual(end)
      }),
      { numRuns: 60 },
    )
  })

  it('ends, and never before it began, in the zones with the oddest changes too', () => {
    const zone = fc.constantFrom(
      'Australia/Lord_Howe',
      'America/Sao_Paulo',
      'America/Havana',
      'Antarctica/Troll',
      'Asia/Pyongyang',
      'Pacific/Chatham',
      'Pacific/Apia',
      'Africa/Monrovia',
    )
    fc.assert(
      fc.property(parts, zone, fc.integer({ min: Date.UTC(1971), max: Date.UTC(2040) }), (five, name, from) => {
        expect(nextSlot(parseCron(textOf(five), name, 'kubernetes'), from) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(
          from,
        )
      }),
      { numRuns: 1_000 },
    )
  })
})
