import { describe, expect, it } from 'vitest'
import { eventually } from '../../support/until.ts'

/** Looks that find each of these in turn, and the last one from then on; an error is thrown. */
function lookOf(...found: unknown[]) {
  let looks = 0
  const look = () => {
    const next = found[Math.min(looks, found.length - 1)]
    looks += 1
    if (next instanceof Error) throw next
    return next
  }
  return { look, count: () => looks }
}

describe('eventually', () => {
  it('resolves with the first thing that is found', async () => {
    const { look, count } = lookOf(null, undefined, false, new Error('not yet'), 0, 1)
    expect(await eventually('a number', look)).toBe(0)
    expect(count()).toBe(5)
  })

  it.each([
    [[false], 'not within 20 ms: two pages (last: false)'],
    [[undefined], 'not within 20 ms: two pages (last: undefined)'],
    [[new Error('refused')], 'not within 20 ms: two pages (last: Error: refused)'],
    [[new Error('refused'), null], 'not within 20 ms: two pages (last: null)'],
  ])('fails with a sentence and the last of %j', async (found, message) => {
    await expect(eventually('two pages', lookOf(...found).look, 20)).rejects.toThrow(new Error(message))
  })

  it('fails with the first error, as it is, where errors are not retried', async () => {
    const { look, count } = lookOf(null, new Error('refused'), 1)
    await expect(eventually('a number', look, { retryErrors: false })).rejects.toThrow(new Error('refused'))
    expect(count()).toBe(2)
  })
})
