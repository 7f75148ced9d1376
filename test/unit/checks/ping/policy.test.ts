import { expect, it } from 'vitest'
import { nextPolicy, OPTIMISTIC } from '../../../../src/checks/ping/policy.ts'

/** The numbers of the first groups that are committed optimistically, when each of them ends as `results` says. */
function optimisticGroups(count: number, results: (attempt: number) => 'saved' | 'stale'): number[] {
  const groups: number[] = []
  let policy = OPTIMISTIC
  for (let group = 0; groups.length < count; group += 1) {
    const isOptimistic = policy.groupsToLock === 0
    policy = nextPolicy(policy, isOptimistic ? results(groups.length) : 'locked')
    if (isOptimistic) groups.push(group)
  }
  return groups
}

it('after each conflict twice as many groups are locked, at most 512', () => {
  const groups = optimisticGroups(12, () => 'stale')
  expect(groups.slice(1).map((group, index) => group - groups[index]! - 1)).toEqual([
    1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 512,
  ])
})

it('after one that is saved the back-off begins anew', () => {
  expect(optimisticGroups(6, (attempt) => (attempt === 2 ? 'saved' : 'stale'))).toEqual([0, 2, 5, 6, 8, 11])
})

it('a group that must be locked for its own reason changes nothing', () => {
  expect(nextPolicy(OPTIMISTIC, 'locked')).toEqual(OPTIMISTIC)
  expect(nextPolicy({ groupsToLock: 0, backOff: 8 }, 'locked')).toEqual({ groupsToLock: 0, backOff: 8 })
})
