import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { isOpenedInClear, ownPath, whyForeign } from '../../../../src/http/dashboard/own-page.ts'

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
    // Below a path of the host these lead to what else the host serves.
    '/..',
    '/../other',
    '/checks/../../other',
    '/%2e%2E/other?q=a',
    'javascript:alert(1)',
    `/${'a'.repeat(2_000)}`,
  ])('%j leads nowhere', (next) => expect(ownPath(next)).toBe(null))
})

describe('a form', () => {
  const BASE_URL = 'https://heartbeat.example.com/api/v1'
  const found = (headers: IncomingHttpHeaders, baseUrl = BASE_URL) =>
    whyForeign({ headers } as IncomingMessage, baseUrl)

  it.each<[string, IncomingHttpHeaders, string?]>([
    ['says the browser', { 'sec-fetch-site': 'same-origin', origin: 'null', host: 'x' }],
    ['by its address', { origin: 'https://heartbeat.example.com', host: '10.0.0.1:8081' }],
    ['by a forwarded port', { origin: 'http://localhost:8081', host: 'localhost:8081' }],
    ['by a name with the standard port', { origin: 'http://a.example', host: 'a.example:80' }],
    ['by a name in capitals', { origin: 'http://a.example', host: 'A.example' }],
    ['below a path', { origin: 'http://a.example', host: 'b.example' }, 'http://a.example/heartbeat/api/v1'],
  ])('of our own page passes: %s', (_, headers, baseUrl) => expect(found(headers, baseUrl)).toBe(null))

  it.each<[string, IncomingHttpHeaders, RegExp]>([
    [
      'another site',
      { 'sec-fetch-site': 'cross-site', origin: 'https://heartbeat.example.com' },
      /^open the page here/,
    ],
    ['no page', { 'sec-fetch-site': 'none' }, /^open the page here/],
    ['no header Origin', { host: 'heartbeat.example.com' }, /^it has no header Origin/],
    ['no origin', { origin: 'null', host: 'a.example' }, /its page is of null \(Origin\)/],
    [
      'another name than the proxy passes on',
      { origin: 'http://a.example', host: '10.0.0.1:8081' },
      /^its page is of a\.example \(Origin\), and the request came to 10\.0\.0\.1:8081 \(Host\), while BASE_URL has heartbeat\.example\.com\..*proxy_set_header Host \$http_host/s,
    ],
    [
      'another port',
      { origin: 'http://a.example:81', host: 'a.example' },
      /of a\.example:81 .* to a\.example \(Host\)/,
    ],
    [
      'a page without TLS',
      { origin: 'http://heartbeat.example.com', host: 'heartbeat.example.com' },
      /opened by http, and BASE_URL is https: open https:\/\/heartbeat\.example\.com$/,
    ],
  ])('of %s does not, and the reason says why', (_, headers, why) => expect(found(headers)).toMatch(why))

  it('of a long name is answered with the beginning of it', () => {
    expect(found({ origin: `http://${'a'.repeat(5_000)}`, host: 'b'.repeat(5_000) })!.length).toBeLessThan(800)
  })
})

describe('a page', () => {
  it.each<[boolean, IncomingHttpHeaders]>([
    [true, {}],
    [true, { 'x-forwarded-proto': 'http' }],
    [true, { 'x-forwarded-proto': 'httpsx' }],
    [false, { 'x-forwarded-proto': 'https' }],
    [false, { 'x-forwarded-proto': 'https,http' }],
    [false, { 'sec-fetch-site': 'none' }],
    [false, { 'sec-fetch-site': 'same-origin', 'x-forwarded-proto': 'http' }],
  ])('was opened by http: %s, with %j', (is, headers) => expect(isOpenedInClear({ headers })).toBe(is))
})
