import { expect, it } from 'vitest'
import { createLostEvents } from '../../../../src/operator/status/lost-events.ts'

function aMemory() {
  const enqueued: string[] = []
  const recorder = { room: true, hasRoom: () => recorder.room }
  const lost = createLostEvents({ recorder, enqueue: (key) => enqueued.push(key) })
  return { lost, recorder, enqueued }
}

it('requests the reconciles of resources whose Events were lost, once for each loss', () => {
  const { lost, enqueued } = aMemory()
  for (const key of ['shop/a', 'shop/b', 'shop/a']) lost.add(key)
  lost.retry()
  lost.retry()
  expect(enqueued).toEqual(['shop/a', 'shop/b'])
  lost.add('shop/a')
  lost.retry()
  expect(enqueued).toEqual(['shop/a', 'shop/b', 'shop/a'])
})

it('waits while many Events wait, and requests fifty at a time, the oldest first', () => {
  const { lost, recorder, enqueued } = aMemory()
  const keys = Array.from({ length: 60 }, (_, index) => `shop/${index}`)
  for (const key of keys) lost.add(key)
  recorder.room = false
  lost.retry()
  expect(enqueued).toEqual([])
  recorder.room = true
  lost.retry()
  expect(enqueued).toEqual(keys.slice(0, 50))
  lost.retry()
  expect(enqueued).toEqual(keys)
})
