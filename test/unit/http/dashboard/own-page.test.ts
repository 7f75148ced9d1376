import { describe, expect, it } from 'vitest'
import { ownPath } from '../../../../src/http/dashboard/own-page.ts'

describe('ownPath', () => {
  it.each([
    ['/checks', '/checks'],
    ['/checks?q=a%20b&status=down', '/checks?q=a%20b&status=down'],
    [`/checks?q=a'b%20c`, `/checks?q=a'b%20c`],
    ['/checks?q="<{|}>^`%zz', '/checks?q="<{|}>^`%zz'],
    ['/a/../checks', '/a/../checks'],
    ['/checks?q=a b', '/checks?q=a%20b'],
    ['/checks?q=ü\u{1f980}\u2028', '/checks?q=%C3%BC%F0%9F%A6%80%E2%80%A8'],
    ['/checks?q=\ud800', '/checks?q=%EF%BF%BD'],
    ['/checks?q=a#top', '/checks?q=a'],
    [`/${'a'.repeat(1_999)}`, `/${'a'.repeat(1_999)}`],
  ])('%j leads to %j', (next, path) => expect(ownPath(next)).toBe(path))

  it.each([
    null,
    '',
    'checks',
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    '/#\\',
    '/checks?q=\\',
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
