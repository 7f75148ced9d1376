import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { waitAtMost } from '../../../src/runtime/clock.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('ends with the work, whose error it passes on, and leaves no timer', async () => {
  await waitAtMost(1_000, Promise.resolve())
  await expect(waitAtMost(1_000, Promise.reject(new Error('of the work')))).rejects.toThrow('of the work')
  expect(vi.getTimerCount()).toBe(0)
})

it('ends after its time, and not before, where the work does not end', async () => {
  const ended = vi.fn()
  void waitAtMost(1_000, new Promise(() => {})).then(ended)
  await vi.advanceTimersByTimeAsync(999)
  expect(ended).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(ended).toHaveBeenCalled()
})
