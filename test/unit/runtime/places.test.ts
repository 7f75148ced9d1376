import { expect, it } from 'vitest'
import { createPlaces, createSharedPlaces } from '../../../src/runtime/places.ts'

it('places are taken by so many at a time; a place that is given back goes to the next in line, once', async () => {
  const places = createPlaces(2)
  const [first, second] = [(await places.take(1_000))!, (await places.take(1_000))!]
  expect(await places.take(1)).toBeNull()
  const third = places.take(10_000)
  const fourth = places.take(10_000)
  first()
  first()
  expect(await places.take(1)).toBeNull()
  const leave = (await third)!
  second()
  leave()
  ;(await fourth)!()
  const last = [await places.take(1), await places.take(1), await places.take(1)]
  expect(last.map((leave) => leave !== null)).toEqual([true, true, false])
})

it('a wait for a place ends, and does not take one later', async () => {
  const places = createPlaces(1)
  const leave = (await places.take(1))!
  expect(await places.take(1)).toBeNull()
  leave()
  expect(await places.take(1)).not.toBeNull()
})

it('H1: shared places are taken by so many of one key, and by so many in all', async () => {
  const places = createSharedPlaces(3, 2)
  const [first, second] = [(await places.take('a', 1))!, (await places.take('a', 1))!]
  expect(await places.take('a', 1)).toBeNull()
  const waiting = places.take('a', 10_000)
  const other = (await places.take('b', 1))!
  expect(await places.take('c', 1)).toBeNull()
  const late = places.take('c', 10_000)
  first()
  first()
  // In the line for all places before the one that waited for a place of its key.
  const third = (await late)!
  expect(await places.take('b', 1)).toBeNull()
  third()
  ;(await waiting)!()
  other()
  const fourth = (await places.take('a', 1))!
  expect(await places.take('a', 1)).toBeNull()
  second()
  fourth()
  expect(await places.take('a', 1)).not.toBeNull()
})
