import { describe, expect, it } from 'vitest'
import { belowSite, findSitePathFault, onSite, sitePathOf, siteUrlOf } from '../../../src/domain/site.ts'
import { PAGES } from '../../../src/http/dashboard/routes.ts'

it.each([
  ['https://a.example/api/v1', 'https://a.example', ''],
  ['https://a.example/api/v1//', 'https://a.example', ''],
  ['https://a.example/api/v1/x', 'https://a.example/api/v1/x', '/api/v1/x'],
  ['http://a.example:81/heartbeat/api/v1', 'http://a.example:81/heartbeat', '/heartbeat'],
  ['http://a.example/ops/heartbeat/api/v1', 'http://a.example/ops/heartbeat', '/ops/heartbeat'],
])('%s: the site is %s', (baseUrl, url, path) => {
  expect([siteUrlOf(baseUrl), sitePathOf(baseUrl)]).toEqual([url, path])
})

describe('a path', () => {
  it.each([
    ['/checks?a=b', '/checks?a=b'],
    ['/heartbeat/checks?a=b', '/checks?a=b'],
    ['/heartbeat', '/'],
    ['/heartbeat/', '/'],
    ['/heartbeat?a=b', '/?a=b'],
    ['//checks', '/checks'],
    ['/heartbeat//checks//x', '/checks//x'],
    ['/heartbeats/checks', '/heartbeats/checks'],
    ['', '/'],
  ])('%j is %j below the site', (path, below) => expect(belowSite('/heartbeat', path)).toBe(below))

  it('stays as it is where the site is at the root of its host', () => {
    for (const path of ['/checks', '//checks', ''])
      expect([belowSite('', path), onSite('', path)]).toEqual([path, path])
  })

  it.each([
    ['/checks', '/heartbeat/checks'],
    ['/heartbeat/checks', '/heartbeat/checks'],
    ['/heartbeat#top', '/heartbeat#top'],
    ['/heartbeats', '/heartbeat/heartbeats'],
    ['/', '/heartbeat/'],
  ])('%j is %j for a browser', (path, shown) => expect(onSite('/heartbeat', path)).toBe(shown))
})

describe('BASE_URL', () => {
  const faultOf = (path: string) => findSitePathFault(`https://a.example${path}/api/v1`)

  it('may have a path', () => {
    for (const path of ['', '/heartbeat', '/ops/checks', '/a-b_c.d~e%20f', '/apis'])
      expect(faultOf(path), path).toBe(null)
  })

  it('has no path that browsers or cookies would read in another way', () => {
    for (const path of ['//evil.example', '/a//b', '/a;b', '/a$&b', "/a'b", '/a&b'])
      expect(faultOf(path), path).toMatch(/empty/)
  })

  it('has no path that begins like one of ours', () => {
    const own = new Set(['/api', '/assets', '/badge', '/live', ...PAGES.map(({ path }) => `/${path.split('/')[1]}`)])
    own.delete('/')
    for (const path of own) {
      expect(faultOf(path), path).toContain(path)
      expect(faultOf(`${path}/heartbeat`), path).toContain(path)
    }
  })
})
