import { describe, expect, it } from 'vitest'
import { createStatusTurns, type DueStatus } from '../../../../src/operator/status/status-turns.ts'

const POLL_MS = 15_000
/** Five a second. */
const SIZE = 75

const due = (key: string, since: number): DueStatus => ({ key, isTurned: false, since })
const turned = (key: string, since: number): DueStatus => ({ key, isTurned: true, since })
const many = (of: (key: string, since: number) => DueStatus, name: string) =>
  Array.from({ length: 10_000 }, (_, n) => of(`${name}/n${n}`, n))

describe('the turns of a round', () => {
  it('are for the oldest, and what the status never showed comes first', () => {
    const turns = createStatusTurns(600)
    const all = [due('c', 3), due('a', 1), due('never', Number.NEGATIVE_INFINITY), due('b', 2)]
    expect([...turns.begin(all)]).toEqual(['never', 'a', 'b'])
  })

  it('are no more than five a second in a short round, and one at least', () => {
    const sizeOf = (ms: number) => [...createStatusTurns(ms).begin(many(due, 'n'))].length
    expect([sizeOf(100), sizeOf(399), sizeOf(400), sizeOf(500)]).toEqual([1, 1, 2, 2])
  })

  it('are five a second, however many resources are due', () => {
    const turns = createStatusTurns(POLL_MS)
    const keys = [...turns.begin(many(due, 'n'))]
    expect(keys).toEqual(
      many(due, 'n')
        .map(({ key }) => key)
        .slice(0, SIZE),
    )
    expect(turns.add('more')).toBe(false)
    expect(keys.filter(turns.take)).toHaveLength(SIZE)
    // Those that were taken are not free again in this round.
    expect(turns.add('more')).toBe(false)
  })

  it.each([
    ['many of both', many(turned, 'late'), many(due, 'ping'), 37, 38],
    ['many late jobs and a few times of pings', many(turned, 'late'), [due('ping/a', 1)], 74, 1],
    ['a few late jobs and many times of pings', [turned('late/a', 9)], many(due, 'ping'), 1, 74],
    ['many late jobs alone', many(turned, 'late'), [], 75, 0],
  ])('leave each kind a half: %s', (_, late, pings, lateTurns, pingTurns) => {
    const keys = [...createStatusTurns(POLL_MS).begin([...late, ...pings])]
    expect(keys.filter((key) => key.startsWith('late/'))).toHaveLength(lateTurns)
    expect(keys.filter((key) => key.startsWith('ping/'))).toHaveLength(pingTurns)
  })

  it('are taken once each, and only by the resource that has one', () => {
    const turns = createStatusTurns(POLL_MS)
    turns.begin([due('a', 1)])
    expect([turns.take('b'), turns.take('a'), turns.take('a')]).toEqual([false, true, false])
  })

  it('end with it, so that a stalled API server gets no more of them when it goes on', () => {
    const turns = createStatusTurns(POLL_MS)
    turns.begin([due('a', 1)])
    turns.begin([due('b', 1)])
    expect([turns.take('a'), turns.take('b')]).toEqual([false, true])
  })

  it('that are left are given to what comes in between, once each', () => {
    const turns = createStatusTurns(POLL_MS)
    const first = Array.from({ length: SIZE - 2 }, (_, n) => due(`n${n}`, n))
    turns.begin(first)
    expect(['n0', 'x', 'x', 'y', 'z'].map(turns.add)).toEqual([false, true, false, true, false])
    expect(['x', 'y', 'z'].map(turns.take)).toEqual([true, true, false])
    turns.begin([])
    expect(turns.add('z')).toBe(true)
  })

  it('are there before the first poll', () => {
    const turns = createStatusTurns(POLL_MS)
    const given = many(due, 'n').filter(({ key }) => turns.add(key))
    expect(given).toHaveLength(SIZE)
  })
})
