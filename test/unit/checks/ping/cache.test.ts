import { expect, it } from 'vitest'
import { type CheckCache, createCheckCache } from '../../../../src/checks/ping/cache.ts'
import { newState } from '../../../../src/domain/transition.ts'
import type { LockedCheck } from '../../../../src/store/checks/states.ts'

const SPEC = {
  schedule: { kind: 'period', periodMs: 60_000 },
  graceMs: 0,
  maxRuntimeMs: null,
  awaits: 'completion',
  resumesOnPing: false,
} as const

function aCheck(key: number, stampedAt = 0): LockedCheck {
  return { key, spec: SPEC, state: newState(0), stampedAt, wakeAt: null }
}

function withRuns(check: LockedCheck, count: number): LockedCheck {
  const runs = Array.from({ length: count }, (_, index) => ({ id: `run ${index}`, startedAt: index, deadlineAt: null }))
  return { ...check, state: { ...check.state, runs } }
}

function createFilled(keys: readonly number[], limit?: number): CheckCache {
  const cache = createCheckCache(limit)
  cache.put({ checks: keys.map((key) => aCheck(key)), version: 7 })
  return cache
}

const keysIn = (cache: CheckCache) => [1, 2, 3, 4, 5, 6].filter((key) => cache.find([key]).length > 0)

it('checks are found as they were put last, with their version', () => {
  const cache = createFilled([1, 2])
  cache.put({ checks: [aCheck(1, 6)], version: 8 })
  expect(cache.find([1, 2])).toEqual([
    { ...aCheck(1, 6), version: 8 },
    { ...aCheck(2), version: 7 },
  ])
})

it.each([
  ['a number in each column', (value: number) => value],
  ['null in each column that may be null', () => null],
])('a check is found as it was put: with %s, to the microsecond', (_, of) => {
  const at = 1_795_000_000_000.123
  const state = {
    status: 'down',
    since: at,
    reason: of(0) === null ? null : 'paused',
    lastPingAt: of(at + 1),
    lastSuccessAt: of(at + 2),
    lastDurationMs: of(604_800_000),
    lastStartAt: of(at + 3),
    expectedAt: of(at + 4),
    dueAt: of(at + 5),
    runs: [{ id: null, startedAt: at, deadlineAt: null }],
    pingsTotal: 2 ** 40,
    incidentSince: of(at + 7),
    changes: [1, 2],
    notified: of(0) === null ? null : 'new',
    quietAt: of(at + 8),
  } as const
  const check: LockedCheck = { key: 2 ** 40, spec: SPEC, state, stampedAt: at + 0.001, wakeAt: of(at + 6) }
  const cache = createFilled([1])
  cache.put({ checks: [check], version: 2 ** 32 - 1 })
  expect(cache.find([check.key])).toEqual([{ ...check, version: 2 ** 32 - 1 }])
})

it('a dropped check leaves room, and may be put again', () => {
  const cache = createFilled([1, 2, 3], 3)
  cache.drop([2])
  cache.put({ checks: [aCheck(4)], version: 8 })
  expect(keysIn(cache)).toEqual([3, 4])
  cache.put({ checks: [aCheck(2)], version: 9 })
  expect(keysIn(cache)).toEqual([2, 3, 4])
  cache.put({ checks: [aCheck(5)], version: 10 })
  expect(keysIn(cache)).toEqual([2, 4, 5])
})

it('checks are found in the order of their keys, without those that are not cached', () => {
  const cache = createFilled([10, 2, 9, 1])
  expect(cache.find(new Set([10, 9, 2])).map(({ key }) => key)).toEqual([2, 9, 10])
  expect(cache.find([1, 2, 3]).map(({ key }) => key)).toEqual([1, 2])
  expect(cache.find([])).toEqual([])
})

it('a refresh changes what is cached, and adds nothing', () => {
  const cache = createFilled([1, 3])
  cache.refresh({ checks: [aCheck(1, 6), aCheck(2, 6)], version: 8 })
  expect(cache.find([1])).toEqual([{ ...aCheck(1, 6), version: 8 }])
  expect(keysIn(cache)).toEqual([1, 3])
})

it('dropped checks are gone, whether or not they were there', () => {
  const cache = createFilled([1, 2, 3])
  cache.drop(new Set([2, 4]))
  expect(keysIn(cache)).toEqual([1, 3])
})

it('a full cache drops the checks that were added first, also within one group', () => {
  const cache = createFilled([1, 2, 3], 2)
  expect(keysIn(cache)).toEqual([2, 3])
  cache.put({ checks: [aCheck(2)], version: 8 })
  cache.refresh({ checks: [aCheck(3)], version: 8 })
  expect(keysIn(cache)).toEqual([2, 3])
  cache.put({ checks: [aCheck(4)], version: 9 })
  expect(keysIn(cache)).toEqual([3, 4])
})

it.each(['put', 'refresh'] as const)('a check with more than two open runs is not cached: %s', (act) => {
  const cache = createFilled([1])
  cache[act]({ checks: [withRuns(aCheck(1), 2)], version: 8 })
  expect(keysIn(cache)).toEqual([1])
  cache[act]({ checks: [withRuns(aCheck(1), 3)], version: 9 })
  expect(keysIn(cache)).toEqual([])
})
