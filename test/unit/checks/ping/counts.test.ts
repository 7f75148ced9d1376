import { expect, it } from 'vitest'
import { createPingCounts } from '../../../../src/checks/ping/counts.ts'

it('the checks with as many pings are found, until they begin again', () => {
  const counts = createPingCounts()
  for (const key of [1, 2, 2, 3, 3, 3]) counts.add(key)
  expect(counts.find(2)).toEqual([2, 3])
  counts.reset([3])
  counts.add(3)
  expect(counts.find(2)).toEqual([2])
})

it('all begin again when there are too many', () => {
  const counts = createPingCounts(2)
  for (const key of [1, 1, 2, 3]) counts.add(key)
  expect(counts.find(1)).toEqual([3])
})
