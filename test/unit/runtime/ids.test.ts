import fc from 'fast-check'
import { expect, it } from 'vitest'
import { firstIdAt, newId, newIdBytes } from '../../../src/runtime/ids.ts'
import { NOON } from '../../support/builders.ts'

it('an id is a version 7 UUID that begins with its millisecond', () => {
  const id = newId(NOON)
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(NOON)
})

it('no two ids of one moment are the same', () => {
  const ids = Array.from({ length: 2_000 }, () => newIdBytes(NOON).toString('hex'))
  expect(new Set(ids).size).toBe(ids.length)
})

it('ids a microsecond apart are in order, whatever their random bits, and the first id of a moment is before them', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800_000_000 }), fc.integer({ min: 1, max: 5_000 }), (us, later) => {
      const id = newId(us / 1_000)
      expect(firstIdAt(us / 1_000) < id).toBe(true)
      expect(id < firstIdAt((us + later) / 1_000)).toBe(true)
    }),
  )
})

it('ids are in the order of moments that are no whole microseconds: the nearest one may be in the next millisecond', () => {
  const moments = fc.tuple(fc.double({ min: 0, max: 10, noNaN: true }), fc.double({ min: 0.001, max: 5, noNaN: true }))
  fc.assert(
    fc.property(moments, ([after, later]) => {
      expect(firstIdAt(NOON + after) <= firstIdAt(NOON + after + later)).toBe(true)
    }),
    { examples: [[[0.9985, 0.001]], [[0.9996, 0.0005]]] },
  )
})

it('the first id of a moment before 1970 is that of 1970', () => {
  expect(firstIdAt(-1)).toBe(firstIdAt(0))
})
