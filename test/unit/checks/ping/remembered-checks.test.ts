import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  createRememberedChecks,
  type RememberedCheck,
  type RememberedChecks,
} from '../../../../src/checks/ping/remembered-checks.ts'
import { newState } from '../../../../src/domain/transition.ts'
import type { LockedCheck } from '../../../../src/store/checks/states.ts'

const SPEC = { schedule: { kind: 'period', periodMs: 60_000 }, graceMs: 0, maxRuntimeMs: null } as const

function aCheck(key: number, stampedAt = 0): LockedCheck {
  return { key, spec: SPEC, state: newState(0), stampedAt, wakeAt: null }
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

  it.each([
    ['a number in each column', (value: number) => value],
    ['nothing where there may be nothing', () => null],
  ])('keeps %s, to the microsecond', (_, of) => {
    const remembered = createRememberedChecks()
    const at = 1_795_000_000_000.123
    const state = {
      status: 'down',
      since: at,
      lastPingAt: of(at + 1),
      lastSuccessAt: of(at + 2),
      lastDurationMs: of(604_800_000),
      lastStartAt: of(at + 3),
      expectedAt: of(at + 4),
      dueAt: of(at + 5),
      runs: [{ id: null, startedAt: at, deadlineAt: null }],
    } as const
    const check: LockedCheck = { key: 2 ** 40, spec: null, state, stampedAt: at + 0.001, wakeAt: of(at + 6) }
    remembered.remember([check], 2 ** 32 - 1)
    expect(remembered.find([check.key])).toEqual([{ ...check, version: 2 ** 32 - 1 }])
  })

  it.each([
    ['with room for all', 40, ['remember', 'renew', 'forget']],
    ['with room for a few', 5, ['remember', 'forget']],
  ])('is, among many, what was saved of each, %s', (_, limit, kinds) => {
    const keys = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 })
    const step = fc.record({ kind: fc.constantFrom(...kinds), keys })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const remembered = createRememberedChecks(limit)
        const saved = new Map<number, RememberedCheck>()
        steps.forEach(({ kind, keys }, version) => {
          const checks = keys.map((key) => aCheck(key, version))
          if (kind === 'forget') {
            remembered.forget(keys)
            for (const key of keys) saved.delete(key)
          } else {
            if (kind === 'remember') remembered.remember(checks, version)
            else remembered.renew(checks, version)
            for (const check of checks)
              if (kind === 'remember' || saved.has(check.key)) saved.set(check.key, { ...check, version })
          }
        })
        const found = Array.from({ length: 40 }, (_, index) => remembered.find([index + 1])?.[0]).filter(
          (row) => row !== undefined,
        )
        for (const row of found) expect(row).toEqual(saved.get(row.key))
        if (limit === 40) expect(found).toHaveLength(saved.size)
        else expect(found.length).toBeLessThanOrEqual(limit)
      }),
    )
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

  it('spares what is pinged again and again, and takes all in turn where everything is', () => {
    const remembered = createRememberedChecks(5)
    for (let key = 10; key < 1_000; key += 1) {
      remembered.remember([aCheck(1), aCheck(2)], key)
      remembered.remember([aCheck(key)], key)
      expect(keysIn(remembered)).toEqual([1, 2])
      expect(remembered.find([key])).not.toBeNull()
    }
    const all = createRememberedChecks(3)
    for (let round = 0; round < 3; round += 1) all.remember([aCheck(1), aCheck(2), aCheck(3)], round)
    all.remember([aCheck(4)], 9)
    expect(keysIn(all)).toHaveLength(3)
    expect(all.find([4])).not.toBeNull()
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
