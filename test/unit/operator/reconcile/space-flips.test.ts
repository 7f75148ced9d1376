import { beforeEach, describe, expect, it } from 'vitest'
import { createFlipSpacer, FLIP_STEP_MS } from '../../../../src/operator/reconcile/space-flips.ts'

const KEY = 'shop/nightly'
let now: number
let asked: [key: string, afterMs: number][]
let flip: (key: string) => void

beforeEach(() => {
  now = 5_000
  asked = []
  const queue = {
    add: (key: string) => void asked.push([key, 0]),
    addAfter: (key: string, ms: number) => void asked.push([key, ms]),
  }
  flip = createFlipSpacer(queue, () => now)
})

describe('notices of flips', () => {
  it('the first notice of each resource is queued at once', () => {
    flip(KEY)
    flip('shop/other')
    now += FLIP_STEP_MS
    flip(KEY)
    expect(asked).toEqual([
      [KEY, 0],
      ['shop/other', 0],
      [KEY, 0],
    ])
  })

  it('notices of one resource cause one reconcile in a step, and the last one is never lost', () => {
    const looksAt = new Set<number>()
    const end = now + 10 * FLIP_STEP_MS
    for (; now < end; now += 10) {
      flip(KEY)
      const [, afterMs] = asked.at(-1)!
      looksAt.add(now + afterMs)
    }
    expect([...looksAt]).toEqual(Array.from({ length: 11 }, (_, step) => 5_000 + step * FLIP_STEP_MS))
  })

  it('remembers the resources that flipped last, and no more', () => {
    flip(KEY)
    for (let other = 0; other < 4_096; other += 1) flip(`shop/${other}`)
    asked.length = 0
    flip(KEY)
    flip('shop/4095')
    expect(asked).toEqual([
      [KEY, 0],
      ['shop/4095', FLIP_STEP_MS],
    ])
  })
})
