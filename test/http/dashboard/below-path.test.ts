/** The service below a path of its host, behind a proxy that removes the path or keeps it. */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { openEventStream } from '../../support/event-stream.ts'
import { readForm } from '../../support/form.ts'
import { CLIENT, startIdentityProvider, type TestProvider } from '../../support/identity-provider.ts'
import { type PathProxy, startPathProxy } from '../../support/path-proxy.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/until.ts'
import { createVisitor } from '../../support/visitor.ts'

const SITE = '/ops/heartbeat'

describe.each(['rest', 'all', 'two slashes'] as const)('behind a proxy that sends on: %s of the path', (sends) => {
  let proxy: PathProxy
  let provider: TestProvider
  let receiver: Receiver
  let app: TestApp
  let site: string

  beforeAll(async () => {
    proxy = await startPathProxy({ path: SITE, sends })
    site = proxy.origin + SITE
    receiver = await startReceiver()
    provider = await startIdentityProvider({ redirectUris: [`${site}/login/Example/callback`] })
    provider.account = { sub: 'admin', email: 'admin@example.com', email_verified: true }
    app = await startTestApp({
      environment: {
        BASE_URL: `${site}/api/v1`,
        ALLOWED_TARGETS: '127.0.0.0/8',
        SIGN_IN: JSON.stringify([{ ...CLIENT, issuer: provider.url, name: 'Example' }]),
      },
    })
    proxy.target = new URL(app.listeningApiUrl).origin
  })
  afterAll(async () => {
    await app?.close()
    await provider?.close()
    await receiver?.close()
    await proxy?.[Symbol.asyncDispose]()
  })

  /** Paths begin with that of the site, as a browser has them. */
  const visit = () => createVisitor(proxy.origin)
  async function logIn() {
    const visitor = visit()
    const { status } = await visitor.post(`${SITE}/login`, app.logIn)
    expect(status).toBe(303)
    return visitor
  }

  it('a visitor is led to the log-in, and from there to the page it asked for', async () => {
    const visitor = visit()
    for (const path of [SITE, `${SITE}/`]) expect((await visitor.get(path)).location, path).toMatch(`${SITE}/`)
    const asked = await visitor.get(`${SITE}/checks?status=down`)
    expect(asked).toMatchObject({ status: 303, location: expect.stringMatching(`^${SITE}/login\\?next=`) })
    const fields = readForm((await visitor.get(asked.location!)).text, `${SITE}/login`)
    const { headers, location } = await visitor.post(`${SITE}/login`, { ...fields, ...app.logIn })
    expect(location).toBe(`${SITE}/checks?status=down`)
    expect(headers.getSetCookie()[0]).toMatch(new RegExp(`^heartbeat_session=[\\w-]{43}; path=${SITE}; `))
    expect((await visitor.get(location!)).status).toBe(200)
    const again = await visit().post(`${SITE}/login`, { ...app.logIn, next: `${SITE}/service` })
    expect(again.location).toBe(`${SITE}/service`)
  })

  it('every address in every page is below the path, and leads to a page or a file', async () => {
    const { id } = await app.createCheck({ name: 'Nightly "backup" href="/x"' })
    const channel = await app.client.post('/channels', {
      name: 'Hook',
      kind: 'webhook',
      config: { url: receiver.url },
    })
    const visitor = await logIn()
    const seen = new Set<string>()
    const waiting = [
      ...['checks', 'checks/new', 'channels/new', 'deliveries', 'settings', 'service', 'nowhere'],
      ...[`checks/${id}`, `checks/${id}/how`, `checks/${id}/edit`, `checks/${id}/delete`],
      ...[`channels/${channel.body.id}`, `settings/projects/${app.projectId}`],
    ].map((path) => `${SITE}/${path}`)
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (seen.has(path)) continue
      seen.add(path)
      const { status, text, headers } = await visitor.get(path)
      expect(path.endsWith('/nowhere') ? 404 : 200, path).toBe(status)
      if (!headers.get('content-type')!.startsWith('text/html')) continue
      for (const [, name, address] of text.matchAll(/ (href|src|action|data-preview)="(\/[^"]*)"/g)) {
        expect(address, `${name} in ${path}`).toMatch(`${SITE}/`)
        if (name !== 'action' && seen.size < 60) waiting.push(address!.replaceAll('&amp;', '&').replace(/#.*/, ''))
      }
    }
    expect([...seen].filter((path) => path.includes('/assets/'))).toHaveLength(3)
  })

  it('forms are saved, and lead back to the page they belong to', async () => {
    const visitor = await logIn()
    const { text } = await visitor.get(`${SITE}/checks/new`)
    const fields = readForm(text, `${SITE}/checks/new`)
    const made = await visitor.post(`${SITE}/checks/new`, { ...fields, name: 'Below' })
    expect(made).toMatchObject({
      status: 303,
      location: expect.stringMatching(`^${SITE}/checks/[0-9a-f-]{36}/how\\?done=`),
    })
    const page = made.location!.replace(/\/how.*/, '')
    expect((await visitor.post(`${page}/pause`)).location).toBe(`${page}?done=check-paused`)
    expect((await visitor.post(`${SITE}/logout`)).location).toBe(`${SITE}/login?done=logged-out`)
    // The session has ended: the log-in leads back to the page of the form.
    const after = await visitor.post(`${page}/resume`, {}, { referer: `${proxy.origin}${page}` })
    const next = readForm((await visitor.get(after.location!)).text, `${SITE}/login`)
    expect((await visitor.post(`${SITE}/login`, { ...next, ...app.logIn })).location).toBe(page)
  })

  it('a page gets what changes, and what the script reads again is below the path', async () => {
    const { id, publicId } = await app.createCheck({ name: 'Watched' })
    const visitor = await logIn()
    await using stream = await openEventStream(proxy.origin, `${SITE}/live?since=${new Date().toISOString()}`, visitor)
    await eventually('the stream says hello', () => stream.events.some(({ event }) => event === 'hello'))
    await fetch(`${app.pingUrl}/ping/${publicId}/fail`)
    // The first stream of a process may also get the event that all must be read again.
    await eventually('the stream names the check', () =>
      stream.events.some(({ event, data }) => event === 'reload' || data.checks?.includes(id)),
    )
    const refreshed = await visitor.get(`${SITE}/checks`, { 'x-refresh': new Date().toISOString() })
    expect(refreshed.text).toContain(`href="${SITE}/checks/${id}"`)
    expect(refreshed.text).not.toMatch(/ (href|src|action)="\/(?!ops\/heartbeat\/)/)
  })

  it('a sign-in with an identity provider comes back', async () => {
    const visitor = visit()
    const begun = await visitor.get(`${SITE}/login/Example?next=${encodeURIComponent('/service')}`)
    const back = await provider.authorize(begun.location!)
    expect(back.origin + back.pathname).toBe(`${site}/login/Example/callback`)
    expect((await visitor.get(back.pathname + back.search)).location).toBe(`${SITE}/service`)
    expect((await visitor.get(`${SITE}/service`)).status).toBe(200)
  })

  it('the API, its document, the badges and the addresses of the API of healthchecks are below the path', async () => {
    const headers = { authorization: `Bearer ${app.apiKey}`, 'content-type': 'application/json' }
    const call = async (path: string, init: RequestInit = {}) => fetch(`${site}${path}`, { headers, ...init })
    // biome-ignore lint/suspicious/noExplicitAny: responses of every shape
    const read = async (path: string, init?: RequestInit): Promise<any> => (await call(path, init)).json()
    expect((await read('/api/v1/openapi.json')).servers).toEqual([{ url: `${site}/api/v1` }])
    const { badge_key } = await read(`/api/v1/projects/${app.projectId}/badge-key`)
    expect((await call(`/badge/${badge_key}.svg`)).status).toBe(200)
    const body = JSON.stringify({ name: 'hc', scope: 'write', project_id: app.projectId })
    const { key } = await read('/api/v1/api-keys', { method: 'POST', body })
    const theirs = { headers: { 'x-api-key': key }, redirect: 'manual' } as const
    for (const version of [1, 3])
      expect((await call(`/api/v${version}/checks?tag=a`, theirs)).headers.get('location')).toBe(
        `${SITE}/api/v${version}/checks/?tag=a`,
      )
    const made = await read('/api/v3/checks/', { ...theirs, method: 'POST', body: '{"name":"A"}' })
    expect(made).toMatchObject({
      update_url: `${site}/api/v3/checks/${made.uuid}`,
      badge_url: expect.stringContaining(`${site}/badge/${badge_key}/`),
    })
    expect((await fetch(made.update_url, theirs)).status).toBe(200)
    expect((await fetch(made.badge_url)).status).toBe(200)
  })

  it('messages have links that lead to the check', async () => {
    const name = `Linked ${randomUUID()}`
    await app.client.post('/channels', { name, kind: 'webhook', config: { url: receiver.url } })
    const { id, publicId } = await app.createCheck({ name })
    await fetch(`${app.pingUrl}/ping/${publicId}/fail`)
    await eventually('the message about the check', () => receiver.requests.some(({ body }) => body.includes(id)))
    const { links } = JSON.parse(receiver.requests.find(({ body }) => body.includes(id))!.body).data
    expect(links).toMatchObject({ dashboard: `${site}/checks/${id}`, check: `${site}/api/v1/checks/${id}` })
    expect((await (await logIn()).get(`${SITE}/checks/${id}`)).status).toBe(200)
  })
})
