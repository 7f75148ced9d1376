import { describe, expect, it } from 'vitest'
import { countByType, DIGEST, planDigest, subtractCounts, totalOf } from '../../../src/domain/digest.ts'
import { CHECK_EVENT_TYPES, type CheckEventType } from '../../../src/domain/event.ts'
import { aFlipEvent } from '../../support/events.ts'

let number = 0
/** Ids in the order of the calls. */
const anEntry = (check: number, type: CheckEventType = 'check.down') => {
  number += 1
  const id = `0197a000-0000-7000-8000-${String(number).padStart(12, '0')}`
  return aFlipEvent({ id, type, check: { id: `check ${check}` } })
}
const many = (count: number) => Array.from({ length: count }, (_, key) => anEntry(key))

describe('the plan of a digest', () => {
  it.each([21, DIGEST.named - 1, DIGEST.named])('names all of %i checks', (count) => {
    const entries = many(count)
    expect(planDigest(entries)).toEqual({ named: entries, counts: [{ type: 'check.down', checks: count }] })
  })

  it.each([DIGEST.named + 1, 1_000, DIGEST.deliveries])('names 50 of %i checks, and counts all', (count) => {
    const entries = many(count)
    const { named, counts } = planDigest(entries)
    expect(DIGEST.named).toBe(50)
    expect(named).toEqual(entries.slice(0, 50))
    expect(counts).toEqual([{ type: 'check.down', checks: count }])
  })

  it('names and counts events of every type, first what needs work', () => {
    const entries = CHECK_EVENT_TYPES.map((type, key) => anEntry(key, type))
    const { named, counts } = planDigest(entries)
    const types = named.map(({ type }) => type)
    expect(types).toEqual(counts.map(({ type }) => type))
    expect(types.toSorted()).toEqual(CHECK_EVENT_TYPES.toSorted())
    expect([types[0], types.at(-1)]).toEqual(['check.down', 'check.up'])
  })

  it('takes the newest event of each check, in whatever order they come', () => {
    const [down, up, other] = [anEntry(1), anEntry(1, 'check.up'), anEntry(2)]
    for (const entries of [
      [down, up, other],
      [other, up, down],
    ])
      expect(planDigest(entries)).toEqual({
        named: [other, up],
        counts: [
          { type: 'check.down', checks: 1 },
          { type: 'check.up', checks: 1 },
        ],
      })
  })

  it('begins with what needs work, and there with what happened first', () => {
    const types = [
      'check.up',
      'check.resumed',
      'check.paused',
      'check.unknown',
      'check.late',
      'check.warned',
      'check.flapping',
      'check.down',
    ] as const
    const first = types.map((type, index) => anEntry(index, type))
    const second = types.map((type, index) => anEntry(10 + index, type))
    const { named, counts } = planDigest([...second, ...first])
    const wanted = types.map((_, index) => [first[index], second[index]])
    expect(named).toEqual(wanted.toReversed().flat())
    expect(counts.map(({ type }) => type)).toEqual(types.toReversed())
  })
})

it('the rest is what the named ones leave of the counts', () => {
  const counts = countByType([...many(3), anEntry(9, 'check.up')])
  expect(totalOf(counts)).toBe(4)
  expect(subtractCounts(counts, [])).toEqual(counts)
  expect(subtractCounts(counts, many(2))).toEqual([
    { type: 'check.down', checks: 1 },
    { type: 'check.up', checks: 1 },
  ])
  expect(subtractCounts(counts, [...many(3), anEntry(9, 'check.up')])).toEqual([])
})

it('the numbers are those of the documents', () => {
  expect(DIGEST).toEqual({ crowd: 20, windowMs: 10_000, pauseMs: 5_000, named: 50, deliveries: 5_000 })
})
