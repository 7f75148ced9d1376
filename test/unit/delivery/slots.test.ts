import { expect, it } from 'vitest'
import { createSlots } from '../../../src/delivery/slots.ts'

it('gives a receiver more while it answers, one while it does not, and its own to each', () => {
  const slots = createSlots(16)
  const widths: number[] = []
  for (const isWell of [true, true, true, false, null, true]) {
    slots.acquire('a')
    slots.release('a', isWell)
    widths.push(slots.free('a'))
  }
  expect(widths).toEqual([8, 16, 16, 1, 1, 2])
  expect(slots.free('b')).toBe(4)
})

it('counts what is on the way, also when the width shrank below it', () => {
  const slots = createSlots(16)
  for (let i = 0; i < 4; i += 1) slots.acquire('a')
  expect(slots.free('a')).toBe(0)
  slots.release('a', false)
  expect(slots.free('a')).toBe(0)
  for (let i = 0; i < 3; i += 1) slots.release('a', false)
  expect(slots.free('a')).toBe(1)
})

it('never gives more than it may', () => {
  expect(createSlots(1).free('a')).toBe(1)
})

it('forgets channels when there are too many, and never one with something on the way', () => {
  const slots = createSlots(16)
  const use = (id: string, isWell: boolean) => {
    slots.acquire(id)
    slots.release(id, isWell)
  }
  slots.acquire('busy')
  use('dead', false)
  for (let i = 0; i < 998; i += 1) use(`channel ${i}`, false)
  expect(slots.free('dead')).toBe(1)
  use('one more', false)
  expect(slots.free('dead')).toBe(4)
  expect(slots.isIdle('busy')).toBe(false)
  expect(slots.free('busy')).toBe(3)
})
