import { expect, it } from 'vitest'
import { describeRing, findRing, reach } from '../../../src/domain/dependencies.ts'

const GRAPH: Readonly<Record<string, string[]>> = { a: ['b', 'c'], b: ['d'], c: ['e'], d: ['f'], e: ['a'], f: ['d'] }
const edgesOf = (node: string) => GRAPH[node] ?? []
const ring = (start: string, limit?: number) => findRing(start, edgesOf(start), edgesOf, limit)

it('reaches each node once, the nearest first, up to the limit', () => {
  expect([...reach(['a'], edgesOf)]).toEqual([
    ['a', null],
    ['b', 'a'],
    ['c', 'a'],
    ['d', 'b'],
    ['e', 'c'],
    ['f', 'd'],
  ])
  expect([...reach(['a', 'f'], edgesOf, 3).keys()]).toEqual(['a', 'f', 'b'])
})

it('finds the shortest ring of a node, and none of one that only leads to a ring', () => {
  expect(ring('a')).toEqual(['a', 'c', 'e'])
  expect(ring('f')).toEqual(['f', 'd'])
  expect(ring('b')).toBeNull()
  expect(findRing('g', ['g'], edgesOf)).toEqual(['g'])
  expect(findRing('a', ['b'], edgesOf)).toBeNull()
})

it('finds no ring beyond the limit', () => {
  expect(ring('a', 6)).toEqual(['a', 'c', 'e'])
  expect(ring('a', 5)).toBeNull()
})

it('names a ring, and of a long one its beginning', () => {
  expect(describeRing(['a'])).toBe('a -> a')
  const names = Array.from({ length: 11 }, (_, place) => `n${place}`)
  expect(describeRing(names.slice(0, 10))).toBe('n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> n8 -> n9 -> n0')
  expect(describeRing(names)).toBe('n0 -> n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> n8 -> n9 -> 1 more -> n0')
})
