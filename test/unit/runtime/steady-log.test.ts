import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSteadyLog } from '../../../src/runtime/steady-log.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('writes the first line of a key at once, and one line a second for what follows, with its number', () => {
  const lines: string[] = []
  const log = createSteadyLog<string>((key, what, count) => lines.push(`${key} ${what} ${count}`))
  log('a', 'first')
  for (let index = 0; index < 10_000; index += 1) log('a', `more ${index}`)
  log('b', 'other')
  expect(lines).toEqual(['a first 1', 'b other 1'])
  vi.advanceTimersByTime(999)
  expect(lines).toHaveLength(2)
  vi.advanceTimersByTime(1)
  expect(lines.slice(2)).toEqual(['a more 9999 10000'])
  log('a', 'again')
  log('a', 'again')
  vi.advanceTimersByTime(1_000)
  expect(lines.slice(3)).toEqual(['a again 2'])
})

it('begins anew after a second without any, and keeps nothing of that key', () => {
  const lines: number[] = []
  const log = createSteadyLog<null>((_, __, count) => lines.push(count))
  log('a', null)
  vi.advanceTimersByTime(1_000)
  expect(vi.getTimerCount()).toBe(0)
  log('a', null)
  expect(lines).toEqual([1, 1])
})
