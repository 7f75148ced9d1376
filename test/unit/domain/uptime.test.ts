import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Gap, StoredStatus } from '../../../src/domain/check.ts'
import { measureUptime, type StatusHistory, statusSpans } from '../../../src/domain/uptime.ts'
import { DAY, HOUR, MINUTE, NOON } from '../../support/builders.ts'

type Flip = StatusHistory['flips'][number]
const flip = (at: number, from: StoredStatus | null, to: StoredStatus, reason: Flip['reason']): Flip => ({
  at,
  from,
  to,
  reason,
})
const CREATED = flip(NOON, null, 'new', 'created')
const FIRST = flip(NOON + HOUR, 'new', 'up', 'first_success')
const DOWN = flip(NOON + 4 * HOUR, 'up', 'down', 'missed')
const UP = flip(NOON + 5 * HOUR, 'down', 'up', 'recovered')
const PAUSED = flip(NOON + 6 * HOUR, 'up', 'paused', 'paused')

/** Of flips in the order of time. */
function spansOf(flips: Flip[], now: number, completeFrom: number | null = null) {
  const last = flips.filter(({ from, to }) => from !== to).at(-1)
  const state = { status: last?.to ?? 'up', since: last?.at ?? NOON } as const
  return statusSpans({ flips: [...flips].reverse(), state, completeFrom }, now)
}
const gap = (startedAt: number, endedAt: number): Gap => ({ startedAt, endedAt })
const measure = (flips: Flip[], now: number, gaps: Gap[] = [], from = 0) =>
  measureUptime(spansOf(flips, now), gaps, { from, to: now })

describe('the spans of a status', () => {
  it('reach from each flip to the next, and to now', () => {
    expect(spansOf([CREATED, FIRST, DOWN, UP, PAUSED], NOON + 8 * HOUR)).toEqual([
      { status: 'new', from: NOON, to: NOON + HOUR },
      { status: 'up', from: NOON + HOUR, to: NOON + 4 * HOUR },
      { status: 'down', from: NOON + 4 * HOUR, to: NOON + 5 * HOUR },
      { status: 'up', from: NOON + 5 * HOUR, to: NOON + 6 * HOUR },
      { status: 'paused', from: NOON + 6 * HOUR, to: NOON + 8 * HOUR },
    ])
  })

  it.each(['outage', 'missed', 'overran'] as const)('an entry that changes no status is no change: %s', (reason) => {
    const up = flip(NOON + 2 * HOUR, 'up', 'up', reason)
    const down = flip(NOON + 4 * HOUR + 1, 'down', 'down', reason)
    const flips = [CREATED, FIRST, DOWN]
    expect(spansOf([CREATED, FIRST, up, DOWN, down], NOON + 5 * HOUR)).toEqual(spansOf(flips, NOON + 5 * HOUR))
    expect(measure([CREATED, FIRST, up, DOWN, down], NOON + 5 * HOUR).downs).toBe(1)
  })

  it('the status before the oldest flip is known as far back as no flip was pruned', () => {
    const now = NOON + 5 * HOUR
    expect(spansOf([DOWN], now)).toEqual([{ status: 'down', from: DOWN.at, to: now }])
    expect(spansOf([DOWN], now, NOON)).toEqual([
      { status: 'up', from: NOON, to: DOWN.at },
      { status: 'down', from: DOWN.at, to: now },
    ])
  })

  it('nothing is known before a check was created', () => {
    expect(spansOf([CREATED, FIRST], NOON + 2 * HOUR, NOON - DAY)[0]).toMatchObject({ status: 'new', from: NOON })
  })

  it('without a flip the state decides', () => {
    expect(spansOf([], NOON + DAY)).toEqual([{ status: 'up', from: NOON, to: NOON + DAY }])
  })

  it('the time between a flip and one that does not continue it is unknown', () => {
    const again = flip(NOON + 6 * HOUR, null, 'new', 'created')
    const spans = spansOf([CREATED, FIRST, again], NOON + 7 * HOUR)
    expect(spans.map(({ status }) => status)).toEqual(['new', 'new'])
  })

  it('the time since the last flip is unknown if the check has another status than it says', () => {
    const state = { status: 'paused', since: NOON + 9 * HOUR } as const
    const spans = statusSpans({ flips: [FIRST], state, completeFrom: null }, NOON + DAY)
    expect(spans).toEqual([])
  })

  it('a flip that is dated before the one before it takes no time from it', () => {
    const spans = spansOf([FIRST, { ...DOWN, at: NOON }], NOON + 2 * HOUR)
    expect(spans).toEqual([{ status: 'down', from: FIRST.at, to: NOON + 2 * HOUR }])
  })
})

describe('uptime', () => {
  it('is the part of the time that was up, of what was up or down', () => {
    const uptime = measure([CREATED, FIRST, DOWN, UP], NOON + 6 * HOUR)
    expect(uptime).toEqual({ share: 0.8, upMs: 4 * HOUR, downMs: HOUR, downs: 1, gapMs: 0, since: FIRST.at })
  })

  it('leaves out new and paused time', () => {
    const flips = [CREATED, FIRST, DOWN, UP, PAUSED]
    expect(measure(flips, NOON + 100 * DAY)).toEqual(measure(flips, PAUSED.at))
    expect(measure([CREATED], NOON + DAY)).toMatchObject({ share: null, since: null })
    expect(measure([CREATED, { ...PAUSED, from: 'new' }], NOON + DAY)).toMatchObject({ share: null, since: null })
  })

  it.each([
    ['while it is up', gap(NOON + 2 * HOUR, NOON + 3 * HOUR), { upMs: 3 * HOUR, downMs: HOUR, gapMs: HOUR }],
    ['while it is down', gap(DOWN.at + MINUTE, UP.at), { upMs: 4 * HOUR, downMs: MINUTE, gapMs: 59 * MINUTE }],
    ['over a flip', gap(DOWN.at - MINUTE, DOWN.at + MINUTE), { upMs: 4 * HOUR - MINUTE, gapMs: 2 * MINUTE }],
    ['before it was judged', gap(NOON, FIRST.at), { upMs: 4 * HOUR, downMs: HOUR, gapMs: 0 }],
    ['since before the window', gap(0, FIRST.at + MINUTE), { upMs: 4 * HOUR - MINUTE, gapMs: MINUTE }],
    ['that ends after now', gap(NOON + 5.5 * HOUR, NOON + DAY), { upMs: 3.5 * HOUR, gapMs: HOUR / 2 }],
  ])('leaves out an own gap %s', (_, one, expected) => {
    expect(measure([CREATED, FIRST, DOWN, UP], NOON + 6 * HOUR, [one])).toMatchObject(expected)
  })

  it('counts no time down that ended as the window began', () => {
    const downs = (from: number) => measure([CREATED, FIRST, DOWN, UP], NOON + 6 * HOUR, [], from).downs
    expect([downs(UP.at - 1), downs(UP.at)]).toEqual([1, 0])
  })

  it('counts gaps that overlap once', () => {
    const gaps = [
      gap(NOON + 2 * HOUR, NOON + 3 * HOUR),
      gap(NOON + 2.1 * HOUR, NOON + 2.2 * HOUR),
      gap(NOON + 2.5 * HOUR, NOON + 3.5 * HOUR),
    ]
    expect(measure([CREATED, FIRST], NOON + 4 * HOUR, gaps)).toMatchObject({ upMs: 1.5 * HOUR, gapMs: 1.5 * HOUR })
  })

  it('is null when gaps hid all of it', () => {
    expect(measure([CREATED, FIRST], NOON + 2 * HOUR, [gap(0, NOON + DAY)]).share).toBeNull()
  })

  it('looks at the window alone, and says since when', () => {
    const now = NOON + 10 * DAY
    const uptime = measure([CREATED, FIRST, DOWN], now, [], now - 7 * DAY)
    expect(uptime).toEqual({ share: 0, upMs: 0, downMs: 7 * DAY, downs: 1, gapMs: 0, since: now - 7 * DAY })
  })
})

const stories = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 3 * DAY }),
    to: fc.constantFrom<StoredStatus>('new', 'up', 'down', 'paused'),
  }),
  { maxLength: 30 },
)
const gapLists = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 30 * DAY }), fc.integer({ min: 5_000, max: DAY })), { maxLength: 20 })
  .map((pairs) => pairs.sort(([a], [b]) => a - b).map(([at, ms]) => gap(NOON + at, NOON + at + ms)))

/** The measure of a story, minute by minute. Times are whole minutes. */
const inMinutes = (ms: number) => Math.round(ms / MINUTE) * MINUTE

it('agrees with a count of each minute, and its parts add up', () => {
  fc.assert(
    fc.property(stories, gapLists, fc.integer({ min: 1, max: 20 }), (steps, gaps, days) => {
      const flips = [CREATED]
      for (const { afterMs, to } of steps) {
        const last = flips.at(-1)!
        if (to !== last.to) flips.push(flip(last.at + MINUTE + inMinutes(afterMs), last.to, to, 'recovered'))
      }
      const now = flips.at(-1)!.at + DAY
      const from = now - days * DAY
      const rounded = gaps.map(({ startedAt, endedAt }) => gap(inMinutes(startedAt), inMinutes(endedAt)))
      const uptime = measure(flips, now, rounded, from)
      const counts = { up: 0, down: 0, gap: 0 }
      const hidden = new Set<number>()
      for (const { startedAt, endedAt } of rounded) for (let at = startedAt; at < endedAt; at += MINUTE) hidden.add(at)
      let current = 0
      for (let at = Math.max(from, NOON); at < now; at += MINUTE) {
        while (current + 1 < flips.length && flips[current + 1]!.at <= at) current += 1
        const status = flips[current]!.to
        if (status !== 'up' && status !== 'down') continue
        counts[hidden.has(at) ? 'gap' : status] += MINUTE
      }
      expect(uptime).toMatchObject({ upMs: counts.up, downMs: counts.down, gapMs: counts.gap })
      expect(uptime.share).toBe(counts.up + counts.down === 0 ? null : counts.up / (counts.up + counts.down))
    }),
    { numRuns: 30 },
  )
})
