import { expect, it } from 'vitest'
import { stopTogether } from '../../../src/runtime/stop-together.ts'

it('runs all stops at the same time, and what was added to the stack before after all of them', async () => {
  const steps: string[] = []
  const slow = Promise.withResolvers<void>()
  const stack = new AsyncDisposableStack()
  stack.defer(() => void steps.push('before'))
  const defer = stopTogether(stack)
  defer(async () => {
    steps.push('slow begins')
    await slow.promise
    steps.push('slow ends')
  })
  defer(async () => {
    steps.push('quick')
    setImmediate(slow.resolve)
  })
  await stack.disposeAsync()
  expect(steps).toEqual(['slow begins', 'quick', 'slow ends', 'before'])
})

it('waits for all stops where one fails, and fails with its error', async () => {
  const steps: string[] = []
  const stack = new AsyncDisposableStack()
  const defer = stopTogether(stack)
  defer(() => Promise.reject(new Error('broken')))
  defer(async () => {
    await new Promise(setImmediate)
    steps.push('slow ends')
  })
  await expect(stack.disposeAsync()).rejects.toThrow('broken')
  expect(steps).toEqual(['slow ends'])
})
