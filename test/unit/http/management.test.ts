import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { routeManagement } from '../../../src/http/management.ts'

const routeOf = (url: string, headers: object = {}, hasDashboard = true) => {
  let seen = ''
  const note = (name: string) => () => {
    seen = name
  }
  const route = routeManagement({
    api: note('api'),
    dashboard: hasDashboard ? note('dashboard') : null,
    links: note('links'),
  })
  route({ url, headers } as IncomingMessage, {} as ServerResponse)
  return seen
}

it('the API has what is below /api, and the dashboard has the rest', () => {
  for (const url of ['/api/v1/checks', '/api', '/api?x', '/api/']) expect(routeOf(url), url).toBe('api')
  for (const url of ['/', '/checks', '/apis', '//api/v1']) expect(routeOf(url), url).toBe('dashboard')
})

it('the API responds to everything without a dashboard', () => {
  expect(routeOf('/checks', {}, false)).toBe('api')
})

it('the credentials of a proxy leave the dashboard where it is', () => {
  for (const authorization of ['Bearer x', 'bearer', 'Basic YTpi', 'Negotiate x', 'Digest username="a"', '']) {
    expect(routeOf('/checks', { authorization }), authorization).toBe('dashboard')
    expect(routeOf('/api/v1/me', { authorization }), authorization).toBe('api')
  }
})

it('the API has the badges, which are below /badge/, for every client, also without a dashboard', () => {
  for (const url of ['/badge/x.svg', '/badge/', '/badge/x/y.json?states=2'])
    for (const [headers, hasDashboard] of [
      [{}, true],
      [{ authorization: 'Bearer x' }, true],
      [{}, false],
    ] as const)
      expect(routeOf(url, headers, hasDashboard), url).toBe('api')
  for (const url of ['/badge', '/badges/x.svg', '/checks/badge/x', '//badge/x'])
    expect(routeOf(url), url).toBe('dashboard')
})

it('the links of messages have what is below /ack/, also without a dashboard', () => {
  for (const hasDashboard of [true, false])
    for (const url of ['/ack/x', '/ack/', '/ack/x?y']) expect(routeOf(url, {}, hasDashboard), url).toBe('links')
  for (const url of ['/ack', '/acks/x', '/checks/ack/x']) expect(routeOf(url), url).toBe('dashboard')
})

it('below a path, each has its own with the path and without it, and its handler sees the path without it', () => {
  const seen: string[] = []
  const note =
    (name: string) =>
    ({ url }: IncomingMessage) =>
      seen.push(`${name} ${url}`)
  const route = routeManagement(
    { api: note('api'), dashboard: note('dashboard'), links: note('links') },
    () => '/heartbeat',
  )
  for (const url of ['/api/v1/me', '/badge/x.svg', '/ack/x', '/checks?a=b', '/'])
    for (const sent of [url, `/heartbeat${url}`, `/${url}`]) {
      route({ url: sent, headers: {} } as IncomingMessage, {} as ServerResponse)
      expect(seen.pop(), sent).toMatch(new RegExp(`^(api|dashboard|links) ${url.replace('?', '\\?')}$`))
    }
  route({ url: '/heartbeats', headers: {} } as IncomingMessage, {} as ServerResponse)
  expect(seen.pop()).toBe('dashboard /heartbeats')
})
