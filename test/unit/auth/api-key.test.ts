import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { makeApiKey, parseApiKey, randomText } from '../../../src/auth/api-key.ts'
import { findBootstrapKeyFault } from '../../../src/domain/api-key.ts'
import { isSameHash } from '../../../src/runtime/hashes.ts'

const a = (length: number) => 'a'.repeat(length)

describe('the text of an API key', () => {
  it('has a prefix of 8 and a secret of 40 letters', () => {
    expect(makeApiKey()).toMatch(/^hbk_[0-9A-Za-z]{8}_[0-9A-Za-z]{40}$/)
    expect(makeApiKey()).not.toBe(makeApiKey())
  })

  it('is parsed into its prefix and the hash of the whole text', () => {
    const key = `hbk_${a(8)}_${a(40)}`
    expect(parseApiKey(key)).toEqual({ prefix: a(8), hash: createHash('sha256').update(key).digest() })
  })

  it.each([
    ['the shortest', `hbk_${a(1)}_${a(32)}`, true],
    ['the longest', `hbk_${a(32)}_${a(128)}`, true],
    ['no prefix', `hbk__${a(40)}`, false],
    ['a long prefix', `hbk_${a(33)}_${a(40)}`, false],
    ['a short secret', `hbk_${a(8)}_${a(31)}`, false],
    ['a long secret', `hbk_${a(8)}_${a(129)}`, false],
    ['another beginning', `hbx_${a(8)}_${a(40)}`, false],
    ['a letter in front', `xhbk_${a(8)}_${a(40)}`, false],
    ['a secret with dashes', `hbk_${a(8)}_${a(30)}-${a(4)}_`, true],
    ['another letter', `hbk_${a(8)}_${a(39)}é`, false],
    ['a line feed at the end', `hbk_${a(8)}_${a(40)}\n`, false],
    ['no secret', `hbk_${a(8)}`, false],
    ['nothing', '', false],
    ['a megabyte', `hbk_${a(8)}_${a(1_000_000)}`, false],
  ])('%s: is one of ours or not', (_, text, isOurs) => {
    expect(parseApiKey(text) !== null).toBe(isOurs)
  })

  it.each([
    [31, false],
    [32, true],
    [128, true],
    [129, false],
  ])('for BOOTSTRAP_API_KEY has a secret of 32 to 128 characters: %i', (length, isGood) => {
    expect(findBootstrapKeyFault(`hbk_demo_${a(length)}`) === null).toBe(isGood)
  })

  it('is compared by its hash, whatever the lengths', () => {
    expect(isSameHash(Buffer.from('one'), Buffer.from('one'))).toBe(true)
    expect(isSameHash(Buffer.from('one'), Buffer.from('two'))).toBe(false)
    expect(isSameHash(Buffer.from('one'), Buffer.from('once'))).toBe(false)
  })
})

describe('randomText', () => {
  it('returns a text of the given length', () => {
    for (const length of [0, 1, 8, 40, 1_000]) expect(randomText(length)).toHaveLength(length)
  })

  it('draws all letters equally often', () => {
    const drawn = 620_000
    const counts = new Map<string, number>()
    for (const letter of randomText(drawn)) counts.set(letter, (counts.get(letter) ?? 0) + 1)
    expect(counts.size).toBe(62)
    // With the bias of a plain modulo the first eight letters would come 25 % oftener; 6 % is six standard deviations.
    for (const count of counts.values()) expect(Math.abs(count / 10_000 - 1)).toBeLessThan(0.06)
  })
})
