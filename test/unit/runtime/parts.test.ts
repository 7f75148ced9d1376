import { beforeEach, describe, expect, it } from 'vitest'
import { startStages, stopTogether } from '../../../src/runtime/parts.ts'

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

describe('startStages', () => {
  const said: string[] = []
  const part = (name: string) => ({
    start: async () => void said.push(`start ${name}`),
    async stop() {
      said.push(`stop ${name}`)
      await Promise.resolve()
      said.push(`stopped ${name}`)
    },
  })
  beforeEach(() => said.splice(0))

  it('stops the last stage first, and the parts of a stage at the same time', async () => {
    await using stack = new AsyncDisposableStack()
    await startStages([[part('a')], [part('b'), { stop: part('c').stop }]], stack, undefined)
    expect(said.splice(0)).toEqual(['start a', 'start b'])
    await stack.disposeAsync()
    expect(said).toEqual(['stop b', 'stop c', 'stopped b', 'stopped c', 'stop a', 'stopped a'])
  })

  it('stops what has started when a start fails, and starts nothing more', async () => {
    await using stack = new AsyncDisposableStack()
    const failing = { ...part('b'), start: () => Promise.reject(new Error('no port')) }
    await expect(startStages([[part('a'), failing, part('c')], [part('d')]], stack, undefined)).rejects.toThrow(
      'no port',
    )
    await stack.disposeAsync()
    expect(said).toEqual(['start a', 'stop a', 'stopped a'])
  })
})
