import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Attempted, nextAttemptAt, PATIENCE_MS } from '../../../src/domain/retry.ts'
import { HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const attempted = (overrides: Partial<Attempted> = {}): Attempted => ({
  attempt: 1,
  giveUpAt: NOON + PATIENCE_MS,
  now: NOON,
  retryAfterMs: null,
  random: 0.5,
  ...overrides,
})
const waitMs = (overrides: Partial<Attempted>) => {
  const given = attempted(overrides)
  const at = nextAttemptAt(given)
  return at === null ? null : at - given.now
}

describe('the wait after an attempt', () => {
  it.each([
    [1, 5 * SECOND],
    [2, 15 * SECOND],
    [3, MINUTE],
    [4, 5 * MINUTE],
    [5, 15 * MINUTE],
    [6, 30 * MINUTE],
    [7, HOUR],
    [8, HOUR],
    [28, HOUR],
  ])('is, after the %s., %s ms', (attempt, expected) => {
    expect(waitMs({ attempt })).toBe(expected)
    expect(waitMs({ attempt, random: 0 })).toBeCloseTo(expected * 0.9)
    expect(waitMs({ attempt, random: 1 })).toBeCloseTo(expected * 1.1)
  })

  it('Retry-After counts when it is longer', () => {
    expect(waitMs({ retryAfterMs: 7 * SECOND })).toBe(7 * SECOND)
    expect(waitMs({ retryAfterMs: SECOND })).toBe(5 * SECOND)
  })

  it('no wait goes beyond the end, so that the last attempt is at the end', () => {
    const now = NOON + PATIENCE_MS - MINUTE
    expect(waitMs({ attempt: 20, now })).toBe(MINUTE)
    expect(waitMs({ attempt: 1, retryAfterMs: 48 * HOUR })).toBe(PATIENCE_MS)
  })
})

describe('giving up', () => {
  it('a delivery is given up at the end, and not a millisecond before', () => {
    expect(waitMs({ attempt: 30, now: NOON + PATIENCE_MS })).toBeNull()
    expect(waitMs({ attempt: 30, now: NOON + PATIENCE_MS - 1 })).toBe(1)
  })

  it('a delivery that is refused is given up an hour after the first refusal, and not a millisecond before', () => {
    const refusedAt = NOON + 5 * HOUR
    expect(waitMs({ attempt: 5, refusedAt, now: refusedAt + HOUR })).toBeNull()
    expect(waitMs({ attempt: 5, refusedAt, now: refusedAt + HOUR - 1 })).toBe(1)
    expect(waitMs({ attempt: 9, refusedAt, now: refusedAt })).toBe(HOUR)
    expect(waitMs({ attempt: 4, refusedAt, now: refusedAt + HOUR })).toBe(5 * MINUTE)
  })

  it('a refusal makes no delivery last longer', () => {
    const refusedAt = NOON + PATIENCE_MS - MINUTE
    expect(waitMs({ attempt: 30, refusedAt, now: refusedAt })).toBe(MINUTE)
    expect(waitMs({ attempt: 30, refusedAt, now: NOON + PATIENCE_MS })).toBeNull()
  })

  it('no delivery is given up before the fifth attempt, however old it is', () => {
    const now = NOON + 10 * PATIENCE_MS
    expect([1, 2, 3, 4].map((attempt) => waitMs({ attempt, now }))).toEqual([5_000, 15_000, 60_000, 300_000])
    expect(waitMs({ attempt: 5, now })).toBeNull()
  })

  it('the outcome is always a later attempt or none', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: -PATIENCE_MS, max: 2 * PATIENCE_MS }),
        fc.option(fc.integer({ min: 0, max: 10 * PATIENCE_MS })),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (attempt, ageMs, retryAfterMs, random) => {
          const given = attempted({ attempt, now: NOON + ageMs, retryAfterMs, random })
          const at = nextAttemptAt(given)
          if (at === null) expect(given.now >= given.giveUpAt && attempt >= 5).toBe(true)
          else expect(at).toBeGreaterThan(given.now)
        },
      ),
    )
  })
})
