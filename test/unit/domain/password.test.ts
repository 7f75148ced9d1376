import { describe, expect, it } from 'vitest'
import { COMMON_PASSWORDS } from '../../../src/domain/common-passwords.ts'
import { COMMON_PASSWORD_RULE, findPasswordFault } from '../../../src/domain/password.ts'

const LENGTH = 'must be text of 12 to 200 characters'

describe('a new password', () => {
  it.each([
    [11, 'a', LENGTH],
    [12, 'a', null],
    [200, 'a', null],
    [201, 'a', LENGTH],
    [11, '🔑', LENGTH],
    [12, '🔑', null],
    [200, '🔑', null],
    [201, '🔑', LENGTH],
    [5_000_000, 'a', LENGTH],
  ])('of %i times %s is counted in code points', (length, letter, fault) => {
    expect(findPasswordFault(letter.repeat(length), null)).toBe(fault)
  })

  it('is text that can be stored', () => expect(findPasswordFault('half a pair: \uD83D', null)).toBe(LENGTH))

  it.each([
    'password1234',
    'PassWord1234',
    'qwerty123456',
    'administrator',
    '123456789012',
    '\uFF11\uFF12\uFF13456789012',
  ])('%s is too common, in any capitals and forms', (password) =>
    expect(findPasswordFault(password, null)).toBe(COMMON_PASSWORD_RULE),
  )

  it('is not the e-mail address, in any capitals', () => {
    for (const password of ['ann@example.com', 'Ann@Example.COM'])
      expect(findPasswordFault(password, 'ann@example.com')).toBe('must not be the e-mail address')
    expect(findPasswordFault('ann@example.com', 'bob@example.com')).toBeNull()
    expect(findPasswordFault('ann@example.com!', 'ann@example.com')).toBeNull()
  })

  it('is compared with common ones that could pass the other rules', () => {
    expect(COMMON_PASSWORDS.size).toBeGreaterThan(400)
    for (const common of COMMON_PASSWORDS) expect(findPasswordFault(common, null)).toBe(COMMON_PASSWORD_RULE)
  })

  it('is compared with passwords as people type them, not as a spreadsheet or a web page wrote them', () => {
    const damaged = [...COMMON_PASSWORDS].filter((text) => /["&,]|^[\d.]+e\+?\d+$/.test(text) || text.length < 12)
    expect(damaged).toEqual([])
  })
})
