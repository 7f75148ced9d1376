import { describe, expect, it } from 'vitest'
// @ts-expect-error plain JavaScript for browsers, with a configuration of its own
import { backOff, relativeWords as inBrowser, restMs } from '../../../../src/http/dashboard/assets/dashboard.js'
import { relativeWords } from '../../../../src/http/dashboard/words/time-words.ts'
import { DAY, SECOND } from '../../../support/builders.ts'

it('the script has the same words for times as the server', () => {
  const now = Date.UTC(2026, 10, 23)
  const sizes = [0, 1, 9_999, 10_000, 59_999, 60_000, 119_999, 3_599_999, 3_600_000, DAY - 1, DAY, 2 * DAY]
  const long = [59, 60, 61, 200, 729, 730, 731, 3_000].map((days) => days * DAY)
  for (const size of [...sizes, ...long])
    for (const at of [now - size, now + size]) expect(inBrowser(at, now)).toBe(relativeWords(at, now))
})

describe('the wait after failures', () => {
  it('doubles up to half a minute, and is never the same for all pages', () => {
    const most = [0, 1, 2, 3, 4, 5, 50].map((failures) => backOff(failures, 1) / SECOND)
    expect(most).toEqual([1, 2, 4, 8, 16, 30, 30])
    expect(backOff(3, 0)).toBe(4 * SECOND)
  })
})

it('a page rests for 25 seconds, and no longer than until its next check becomes late', () => {
  const now = Date.UTC(2026, 10, 23)
  const nexts = [Number.NaN, now + DAY, now + 25_001, now + 25_000, now + 24_999, now + 1, now, now - 1]
  expect(nexts.map((next) => restMs(next, now))).toEqual([25_000, 25_000, 25_000, 25_000, 24_999, 1, 0, 0])
})
