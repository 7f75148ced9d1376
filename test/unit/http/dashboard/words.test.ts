import { describe, expect, it } from 'vitest'
import { renderPreview } from '../../../../src/http/dashboard/pages/checks/check-fields.ts'
import { durationWords, relativeWords } from '../../../../src/http/dashboard/words/time-words.ts'
import { sentence } from '../../../../src/http/dashboard/words/words.ts'
import { DAY, HOUR, MINUTE, NOON, SECOND } from '../../../support/builders.ts'

describe('a length of time', () => {
  it.each([
    [0, '0 ms'],
    [999.4, '999 ms'],
    [999.7, '1 s'],
    [1_250, '1.3 s'],
    [9_940, '9.9 s'],
    [9_960, '10 s'],
    [59_400, '59 s'],
    [59_700, '1 min'],
    [MINUTE, '1 min'],
    [200 * SECOND, '3 min 20 s'],
    [HOUR - 1, '59 min 59 s'],
    [125 * MINUTE, '2 h 5 min'],
    [76 * HOUR, '3 d 4 h'],
  ])('of %d ms is %s', (ms, words) => {
    expect(durationWords(ms)).toBe(words)
  })
})

describe('a time relative to now', () => {
  it.each([
    [-1, 'just now'],
    [-DAY, '1 day ago'],
    [-2 * DAY + 1, '1 day ago'],
    [DAY, 'in 1 day'],
    [2 * DAY - 1, 'in 1 day'],
    [-60 * DAY, '2 months ago'],
    [-730 * DAY, '2 years ago'],
  ])('of %d ms is %s: yesterday is a day of the calendar', (ms, words) => {
    expect(relativeWords(NOON + ms, NOON)).toBe(words)
  })
})

it('a sentence begins with a capital and has a full stop', () => {
  expect(sentence('name is required')).toBe('Name is required.')
})

it('a schedule of a rare date has a list of times', () => {
  const typed = { schedule: '0 2 29 2 *', time_zone: 'UTC', period_seconds: '', grace_seconds: '' }
  expect(renderPreview(typed, NOON).toString()).toContain('Its next times, the first one <time')
  // 2100 is no leap year.
  expect(renderPreview(typed, Date.UTC(2097, 0)).toString()).toContain('2104')
})

it('a schedule of an hour that the clocks always skip has no list of times', () => {
  const typed = { schedule: '*/15 2 8-14 3 */7', time_zone: 'America/New_York', period_seconds: '', grace_seconds: '' }
  const text = renderPreview(typed, NOON).toString()
  expect(text).toContain('It has no further time.')
  expect(text).not.toMatch(/first one|<ol/)
})
