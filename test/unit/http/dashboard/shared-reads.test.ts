import { expect, it } from 'vitest'
import { createSharedReads } from '../../../../src/http/dashboard/shared-reads.ts'
import { createManualClock } from '../../../support/manual-clock.ts'

function setUp() {
  const clock = createManualClock(10_000)
  const share = createSharedReads<string>(clock)
  let reads = 0
  const read = (key: string, notBefore: number, made?: Promise<string>) =>
    share(key, notBefore, async (at) => {
      reads += 1
      return (await made) ?? `${key} of ${at}`
    })
  return { clock, read, count: () => reads }
}

it('those who ask within a second share a read, also one in progress', async () => {
  const { clock, read, count } = setUp()
  const { promise, resolve } = Promise.withResolvers<string>()
  const [first, second] = [read('a', 0, promise), read('a', 10_000)]
  resolve('done')
  expect(await Promise.all([first, second])).toEqual(['done', 'done'])
  await clock.advance(999)
  expect(await read('a', 0)).toBe('done')
  await clock.advance(1)
  expect(await read('a', 0)).toBe('a of 11000')
  expect(count()).toBe(2)
})

it('a read that began before the change is not shared with those who are to show it', async () => {
  const { clock, read } = setUp()
  expect(await read('a', 0)).toBe('a of 10000')
  await clock.advance(5)
  expect(await read('a', 10_001)).toBe('a of 10005')
  expect(await read('a', 0)).toBe('a of 10005')
})

it('other keys have other reads, and at most 50 are kept', async () => {
  const { read, count } = setUp()
  for (let i = 0; i < 51; i += 1) await read(`key ${i}`, 0)
  expect(count()).toBe(51)
  await read('key 50', 0)
  expect(count()).toBe(51)
  await read('key 0', 0)
  expect(count()).toBe(52)
})

it('a failed read fails for those who wait, and is tried again by the next', async () => {
  const { read } = setUp()
  const failing = Promise.reject(new Error('no database'))
  const both = [read('a', 0, failing), read('a', 0)]
  for (const each of both) await expect(each).rejects.toThrow('no database')
  expect(await read('a', 0)).toBe('a of 10000')
})
