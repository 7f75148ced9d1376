import { describe, expect, it } from 'vitest'
import { createRememberedChecks, type RememberedChecks } from '../../../src/checks/remembered-checks.ts'
import { initialState } from '../../../src/domain/transition.ts'
import type { LockedCheck } from '../../../src/store/states.ts'

const SPEC = { schedule: { kind: 'period', periodMs: 60_000 }, graceMs: 0, maxRuntimeMs: null } as const

function aCheck(key: number, stampedAt = 0): LockedCheck {
  return { key, spec: SPEC, state: initialState(SPEC, false, 0), stampedAt, wakeAt: null }
}

/** Those of keys 1 to 9. */
function keysIn(remembered: RememberedChecks): number[] {
  return [1, 2, 3, 4, 5, 6, 7, 8, 9].filter((key) => remembered.find([key]) !== null)
}

describe('what is remembered', () => {
  it('is found as it was saved, with its version', () => {
    const remembered = createRememberedChecks()
    remembered.remember([aCheck(1, 5), aCheck(2, 6)], 77)
    expect(remembered.find([1, 2])).toEqual([
      { ...aCheck(1, 5), version: 77 },
      { ...aCheck(2, 6), version: 77 },
    ])
  })

  it('is found all or not at all', () => {
    const remembered = createRememberedChecks()
    remembered.remember([aCheck(1), aCheck(3)], 7)
    expect(remembered.find([1, 2, 3])).toBeNull()
    expect(remembered.find([2])).toBeNull()
    expect(remembered.find([])).toEqual([])
  })

  it('is found in the order of the keys, whatever the order of the question and of the saving', () => {
    const remembered = createRememberedChecks()
    remembered.remember([aCheck(10), aCheck(2)], 7)
    remembered.remember([aCheck(9), aCheck(1)], 8)
    for (const keys of [
      [10, 9, 2, 1],
      [9, 1, 10, 2],
    ])
      expect(remembered.find(new Set(keys))!.map(({ key }) => key)).toEqual([1, 2, 9, 10])
  })

  it('is what was saved last', () => {
    const remembered = createRememberedChecks()
    remembered.remember([aCheck(1, 5)], 7)
    remembered.remember([aCheck(1, 6)], 8)
    expect(remembered.find([1])).toEqual([{ ...aCheck(1, 6), version: 8 }])
  })
})

describe('the limit', () => {
  it('makes the one go that was not saved for longest', () => {
    const remembered = createRememberedChecks(3)
    remembered.remember([aCheck(1), aCheck(2), aCheck(3)], 7)
    expect(keysIn(remembered)).toEqual([1, 2, 3])
    remembered.remember([aCheck(1)], 8)
    expect(keysIn(remembered)).toEqual([1, 2, 3])
    remembered.remember([aCheck(4)], 9)
    expect(keysIn(remembered)).toEqual([1, 3, 4])
    remembered.remember([aCheck(5), aCheck(6)], 10)
    expect(keysIn(remembered)).toEqual([4, 5, 6])
  })

  it('holds within one group too', () => {
    const remembered = createRememberedChecks(2)
    remembered.remember([aCheck(1), aCheck(2), aCheck(3)], 7)
    expect(keysIn(remembered)).toEqual([2, 3])
  })

  it('is no matter of what is only looked at or renewed', () => {
    const remembered = createRememberedChecks(2)
    remembered.remember([aCheck(1), aCheck(2)], 7)
    remembered.find([1])
    remembered.renew([aCheck(1)], 8)
    remembered.remember([aCheck(3)], 9)
    expect(keysIn(remembered)).toEqual([2, 3])
  })
})

describe('renewing', () => {
  it('changes what is there, and adds nothing', () => {
    const remembered = createRememberedChecks()
    remembered.remember([aCheck(1, 5), aCheck(3, 5)], 7)
    remembered.renew([aCheck(1, 6), aCheck(2, 6)], 8)
    expect(remembered.find([1, 3])).toEqual([
      { ...aCheck(1, 6), version: 8 },
      { ...aCheck(3, 5), version: 7 },
    ])
    expect(keysIn(remembered)).toEqual([1, 3])
  })
})

describe('forgetting', () => {
  it('is of those that are named, there or not', () => {
    const remembered = createRememberedChecks()
    remembered.remember([aCheck(1), aCheck(2), aCheck(3)], 7)
    remembered.forget(new Set([2, 4]))
    expect(keysIn(remembered)).toEqual([1, 3])
  })

  it('is nothing with more than two open runs, of which there may be a hundred', () => {
    const remembered = createRememberedChecks()
    const withRuns = (count: number): LockedCheck => {
      const runs = Array.from({ length: count }, (_, index) => ({ id: `run ${index}`, startedAt: index, dueAt: null }))
      const check = aCheck(1)
      return { ...check, state: { ...check.state, runs } as unknown as LockedCheck['state'] }
    }
    remembered.remember([withRuns(2)], 7)
    expect(keysIn(remembered)).toEqual([1])
    remembered.renew([withRuns(3)], 8)
    expect(keysIn(remembered)).toEqual([])
    remembered.remember([withRuns(2)], 9)
    remembered.remember([withRuns(3)], 10)
    expect(keysIn(remembered)).toEqual([])
  })
})
