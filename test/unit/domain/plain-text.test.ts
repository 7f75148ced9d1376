/** Texts of others in so many bytes (their characters: test/unit/channels). */

import { describe, expect, it } from 'vitest'
import { firstBytes, lastBytes } from '../../../src/domain/plain-text.ts'

describe('firstBytes', () => {
  it('keeps a text that fits, and cuts between characters', () => {
    expect(firstBytes('abcdef', 6)).toBe('abcdef')
    expect(firstBytes('abcdefg', 6)).toBe('abc…')
    expect(firstBytes('ééé', 6)).toBe('ééé')
    expect(firstBytes('éééé', 6)).toBe('é…')
    expect(firstBytes('💾💾💾', 8)).toBe('💾…')
  })
})

describe('lastBytes', () => {
  it('keeps a text that fits, and otherwise whole lines of its end', () => {
    expect(lastBytes('one\ntwo', 7)).toBe('one\ntwo')
    expect(lastBytes('one\ntwo\nthree', 12)).toBe('two\nthree'.slice(4))
    expect(lastBytes('one\ntwo\nthree', 12)).not.toContain('…')
  })

  it('cuts a long last line between characters', () => {
    const cut = lastBytes('x'.repeat(50) + 'é'.repeat(50), 20)
    expect(cut).toBe(`…${'é'.repeat(8)}`)
    expect(Buffer.byteLength(lastBytes(`${'é'.repeat(99)}`, 20))).toBeLessThanOrEqual(20)
  })
})
