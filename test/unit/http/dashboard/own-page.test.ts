import { describe, expect, it } from 'vitest'
import { ownPath } from '../../../../src/http/dashboard/own-page.ts'

describe('ownPath', () => {
  it.each([
    ['/checks', '/checks'],
    ['/checks?q=a%20b&status=down', '/checks?q=a%20b&status=down'],
    ['/a/../checks', '/checks'],
    [`/${'a'.repeat(1_999)}`, `/${'a'.repeat(1_999)}`],
  ])('%j leads to %j', (next, path) => expect(ownPath(next)).toBe(path))

  it.each([
    null,
    '',
    'checks',
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    '/a\\b',
    '/\t/evil.example/',
    '/\n/evil.example/',
    '/.//evil.example/',
    '/..//evil.example/',
    '/a/..//evil.example/',
    '/%2e//evil.example/',
    'javascript:alert(1)',
    `/${'a'.repeat(2_000)}`,
  ])('%j leads nowhere', (next) => expect(ownPath(next)).toBe(null))
})
