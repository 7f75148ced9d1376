import { describe, expect, it } from 'vitest'
import { isEmail } from '../../../src/domain/email.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'

describe('isEmail', () => {
  it.each([
    'a@b',
    'admin@example.com',
    'admin@localhost',
    'Ann.Lee+jobs@mail.example.org',
    "o'hara@example.com",
    'jürgen@müller.example',
    `${'a'.repeat(64)}@example.com`,
    `a@${'b'.repeat(252)}`,
  ])('takes %s', (text) => expect(isEmail(text)).toBe(true))

  it.each([
    '',
    'a',
    '@b',
    'a@',
    'a@b@c',
    'a b@c',
    'a@b c',
    ' a@b',
    'a@b\n',
    'a\u0000@b',
    'a\u200b@b',
    'a@.b',
    'a@b.',
    'a@b..c',
    '<a@b>',
    '"a"@b',
    `${'a'.repeat(65)}@example.com`,
    `a@${'b'.repeat(253)}`,
  ])('refuses %j', (text) => expect(isEmail(text)).toBe(false))

  it('is quick about a long text made to be slow', () => {
    const cpuMs = startCpuTimer()
    expect(isEmail(`a@${'b.'.repeat(500_000)}`)).toBe(false)
    expect(isEmail(`a@${'b.'.repeat(125)}!@`)).toBe(false)
    expect(cpuMs()).toBeLessThan(200)
  })
})
