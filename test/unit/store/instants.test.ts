import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseInstant, timestamp } from '../../../src/store/postgres/instants.ts'

it.each([
  ['2026-11-21 13:38:11.123456+00', Date.UTC(2026, 10, 21, 13, 38, 11) + 123.456],
  ['2026-11-21 13:38:11.1+00', Date.UTC(2026, 10, 21, 13, 38, 11) + 100],
  ['2026-11-21 13:38:11.000001+00', Date.UTC(2026, 10, 21, 13, 38, 11) + 0.001],
  ['2026-11-21 13:38:11+00', Date.UTC(2026, 10, 21, 13, 38, 11)],
  ['1999-12-31 23:59:59.999999+00', Date.UTC(1999, 11, 31, 23, 59, 59) + 999.999],
  ['2000-02-29 00:00:00+00', Date.UTC(2000, 1, 29)],
  ['0001-01-01 00:00:00+00', Date.parse('0001-01-01T00:00:00Z')],
  ['0099-12-31 23:59:59+00', Date.parse('0099-12-31T23:59:59Z')],
  ['0100-03-01 00:00:00+00', Date.parse('0100-03-01T00:00:00Z')],
])('%s is read to the microsecond', (text, ms) => {
  expect(parseInstant(text)).toBe(ms)
})

it('every microsecond is written and read as itself', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800_000_000 }), (us) => {
      const whole = new Date(Math.floor(us / 1_000_000) * 1_000).toISOString().slice(0, 19)
      const fraction = String(us % 1_000_000).padStart(6, '0')
      expect(timestamp(us / 1_000)).toBe(`${whole}.${fraction}Z`)
      const printed = `${whole}.${fraction}`.replace('T', ' ').replace(/\.?0*$/, '')
      expect(Math.round(parseInstant(`${us % 1_000_000 === 0 ? whole.replace('T', ' ') : printed}+00`) * 1_000)).toBe(
        us,
      )
    }),
  )
})

it('no time is null; NaN and infinity are rejected', () => {
  expect(timestamp(null)).toBeNull()
  expect(() => timestamp(Number.NaN)).toThrow(RangeError)
  expect(() => timestamp(Number.POSITIVE_INFINITY)).toThrow(RangeError)
})
