import fc from 'fast-check'
import { expect, it } from 'vitest'
import { parseInstant } from '../../../src/store/postgres/database.ts'

it.each([
  ['2026-11-21 13:38:11.123456+00', Date.UTC(2026, 10, 21, 13, 38, 11) + 123.456],
  ['2026-11-21 13:38:11.1+00', Date.UTC(2026, 10, 21, 13, 38, 11) + 100],
  ['2026-11-21 13:38:11.000001+00', Date.UTC(2026, 10, 21, 13, 38, 11) + 0.001],
  ['2026-11-21 13:38:11+00', Date.UTC(2026, 10, 21, 13, 38, 11)],
  ['1999-12-31 23:59:59.999999+00', Date.UTC(1999, 11, 31, 23, 59, 59) + 999.999],
  ['2000-02-29 00:00:00+00', Date.UTC(2000, 1, 29)],
])('%s', (text, ms) => {
  expect(parseInstant(text)).toBe(ms)
})

it('every microsecond comes back as it was printed', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800_000_000 }), (us) => {
      const whole = new Date(Math.floor(us / 1_000_000) * 1_000).toISOString()
      const fraction = String(us % 1_000_000)
        .padStart(6, '0')
        .replace(/0+$/, '')
      const text = `${whole.slice(0, 10)} ${whole.slice(11, 19)}${fraction === '' ? '' : `.${fraction}`}+00`
      expect(Math.round(parseInstant(text) * 1_000)).toBe(us)
    }),
  )
})
