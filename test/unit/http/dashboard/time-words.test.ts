import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDuration, spellDuration } from '../../../../src/http/dashboard/words/time-words.ts'
import { startCpuTimer } from '../../../support/cpu-time.ts'

describe('a length of time that a user types', () => {
  it.each([
    ['15 min', 900],
    ['1h30m', 5_400],
    ['1 hour 30 minutes', 5_400],
    ['1 hour, 30 minutes', 5_400],
    ['1 hour and 30 minutes', 5_400],
    [' 90 ', 90],
    ['0', 0],
    ['1.5 h', 5_400],
    ['1.1h', 3_960],
    ['2 WEEKS', 1_209_600],
    ['1d', 86_400],
    ['45s', 45],
    ['0.5 s', null],
    ['', null],
    ['soon', null],
    ['15 fortnights', null],
    ['1h 30', null],
    ['-5 min', null],
    ['1h30m!', null],
    ['1h,', null],
    ['5 min <script>', null],
    [`${'9'.repeat(99)} h`, null],
  ])('%j is %j seconds', (text, seconds) => expect(parseDuration(text)).toBe(seconds))

  it('is read back from its words', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 31_536_000 }), (seconds) => {
        expect(parseDuration(spellDuration(seconds))).toBe(seconds)
      }),
    )
  })

  it('is read or rejected at once, whatever the text', () => {
    const cpuMs = startCpuTimer()
    for (const text of [`${'1'.repeat(99)}!`, `${'1 '.repeat(49)}!`, `${'1h'.repeat(49)}!`, `1${' '.repeat(98)}!`])
      expect(parseDuration(text)).toBe(null)
    const text = fc.string({ unit: fc.constantFrom(...'019. ,andhms'), maxLength: 200 })
    fc.assert(
      fc.property(text, (given) => void parseDuration(given)),
      { numRuns: 2_000 },
    )
    expect(cpuMs()).toBeLessThan(2_000)
  })
})
