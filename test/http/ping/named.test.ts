/** Pings by the ping key of a project and a slug, and pings without `/ping` in their address (design, section 3.3). */

import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { exchange, writeHead, writePost } from '../../support/http.ts'
import { use } from '../../support/use.ts'

let key: string
let slug: string
let id: string
let publicId: string
const lines: string[] = []
const write = (...parts: unknown[]) =>
  lines.push(JSON.stringify(parts, (_, value) => (value instanceof Error ? `${value.message} ${value.stack}` : value)))

const app = use(() => startTestApp({ log: { debug: write, info: write, warn: write, error: write } as never }))
beforeEach(async () => {
  key = (await app.client.post(`/projects/${app.projectId}/ping-key`)).body.ping_key
  slug = `job-${randomUUID()}`
  ;({ id, publicId } = await app.createCheck({ name: 'Job', slug }))
})

const send = (method: string, path: string, ...headers: string[]) =>
  exchange(app.pingUrl, writeHead(method, path, ...headers))
const get = (path: string) => send('GET', path)
const last = async (of = publicId) => (await app.storedPings(of)).at(-1)
const findBySlug = async (wanted: string) =>
  (await app.client.get(`/checks?project_id=${app.projectId}&slug=${wanted}`)).body.checks

const NOT_FOUND = { status: 404, text: 'no such check' }

describe('a ping by name', () => {
  it.each([
    ['', 'success', 0],
    ['/start', 'start', null],
    ['/warn', 'warn', null],
    ['/7/', 'fail', 7],
    ['?state=fail', 'fail', null],
    ['?state=warn', 'warn', null],
  ])('%j is stored as %s', async (rest, type, exitCode) => {
    for (const prefix of ['/ping', '']) {
      expect(await get(`${prefix}/${key}/${slug}${rest}`)).toMatchObject({ status: 200, text: 'OK' })
      expect(await last()).toMatchObject({ type, exitCode })
    }
    expect(await app.storedPings(publicId)).toHaveLength(2)
  })

  it.each(['GET', 'POST', 'HEAD'])('may be a %s', async (method) => {
    expect((await send(method, `/ping/${key}/${slug}`)).status).toBe(200)
    expect(await app.storedPings(publicId)).toHaveLength(1)
  })

  it('has duration, run id and text as any ping', async () => {
    const rid = randomUUID()
    const path = `/ping/${key}/${slug}/fail?rid=${rid}`
    const { status } = await exchange(app.pingUrl, writePost(path, 'disk full', 'X-Service-Duration: 1234'))
    expect(status).toBe(200)
    expect(await last()).toMatchObject({ type: 'fail', durationMs: 1_234, runId: rid, body: Buffer.from('disk full') })
  })

  it('keeps the end of a text that is too long, and says so', async () => {
    const { status } = await exchange(app.pingUrl, writePost(`/ping/${key}/${slug}`, 'x'.repeat(20_000)))
    expect(status).toBe(413)
    expect(await last()).toMatchObject({ isBodyTruncated: true })
  })

  it('has the responses of any ping to what is no signal, no method and no body', async () => {
    expect(await get(`/ping/${key}/${slug}/stop`)).toMatchObject({
      status: 404,
      text: expect.stringContaining('unknown signal "stop"'),
    })
    expect(await get(`/ping/${key}/${slug}/256`)).toMatchObject({ status: 400 })
    expect(await send('DELETE', `/ping/${key}/${slug}`)).toMatchObject({ status: 405 })
    expect(await send('OPTIONS', `/ping/${key}/${slug}`)).toMatchObject({ status: 204 })
    expect(await app.storedPings(publicId)).toHaveLength(0)
  })

  it('is rejected for an unknown key or slug, with the same response', async () => {
    const badgeKey = (await app.client.get(`/projects/${app.projectId}/badge-key`)).body.badge_key
    const swapped = key.replace(/[a-z]/i, (letter) =>
      letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
    )
    for (const path of [
      `/ping/${key}/unknown`,
      `/ping/${key}/unknown/stop`,
      `/ping/${'x'.repeat(22)}/${slug}`,
      `/ping/${'x'.repeat(22)}/${slug}/stop`,
      `/ping/${'x'.repeat(22)}/${slug}?create=1`,
      `/ping/${badgeKey}/${slug}`,
      `/ping/${swapped}/${slug}`,
      `/ping/${key}/${slug.toUpperCase()}`,
      `/ping/${key}`,
      `/${key}`,
      `/ping/${publicId}x`,
    ])
      expect(await get(path), path).toMatchObject(NOT_FOUND)
    expect(await app.storedPings(publicId)).toHaveLength(0)
  })

  it('belongs to the project of the key', async () => {
    const other = (await app.client.post('/projects', { name: `Other ${randomUUID()}` })).body.id
    const otherKey = (await app.client.post(`/projects/${other}/ping-key`)).body.ping_key
    expect(await get(`/ping/${otherKey}/${slug}`)).toMatchObject(NOT_FOUND)
    const theirs = await app.createCheck({ project_id: other, slug })
    expect((await get(`/ping/${otherKey}/${slug}`)).status).toBe(200)
    expect([await app.storedPings(publicId), await app.storedPings(theirs.publicId)]).toEqual([[], [expect.anything()]])
  })

  it('works with the newest key only', async () => {
    expect((await get(`/ping/${key}/${slug}`)).status).toBe(200)
    const next = (await app.client.post(`/projects/${app.projectId}/ping-key`)).body.ping_key
    expect(await get(`/ping/${key}/${slug}`)).toMatchObject(NOT_FOUND)
    expect((await get(`/ping/${next}/${slug}`)).status).toBe(200)
    await app.client.delete(`/projects/${app.projectId}/ping-key`)
    expect(await get(`/ping/${next}/${slug}`)).toMatchObject(NOT_FOUND)
    expect(await app.storedPings(publicId)).toHaveLength(2)
  })

  it('goes to the check that has the slug now', async () => {
    expect((await get(`/ping/${key}/${slug}`)).status).toBe(200)
    await app.client.delete(`/checks/${id}`)
    expect(await get(`/ping/${key}/${slug}`)).toMatchObject(NOT_FOUND)
    const next = await app.createCheck({ slug })
    expect((await get(`/ping/${key}/${slug}/fail`)).status).toBe(200)
    expect(await last(next.publicId)).toMatchObject({ type: 'fail' })
  })

  it('leaves its key in no line of the log and in no metric', async () => {
    for (const path of [
      `/${key}/${slug}`,
      `/ping/${key}/${slug}/256`,
      `/ping/${key}/${slug}?duration=x`,
      `/${key}/-?create=1`,
    ])
      await get(path)
    const metrics = await (await fetch(`${app.opsUrl}/metrics`)).text()
    expect(metrics).toContain('route="/ping/{ping_key}/{slug}"')
    for (const text of [lines.join('\n'), metrics]) expect(text).not.toContain(key)
  })
})

describe('a ping by name that asks for its check', () => {
  it('creates it with the slug as its name and the defaults, and arms it', async () => {
    const made = `made-${randomUUID()}`
    const first = await exchange(app.pingUrl, writePost(`/ping/${key}/${made}/fail?create=1`, 'disk full'))
    expect(first).toMatchObject({ status: 201, text: 'Created' })
    expect(first.headers).toMatchObject({ 'content-length': '7', 'cache-control': 'no-store' })
    expect(await get(`/ping/${key}/${made}?create=1`)).toMatchObject({ status: 200, text: 'OK' })
    expect(await get(`/ping/${key}/${made}`)).toMatchObject({ status: 200, text: 'OK' })
    const [check] = await findBySlug(made)
    expect(check).toMatchObject({
      name: made,
      status: 'up',
      period_seconds: 86_400,
      grace_seconds: 3_600,
      managed_by: 'api',
    })
    expect(check.due_at).not.toBeNull()
    const { public_id } = (await app.client.get(`/checks/${check.id}`)).body
    expect(await app.storedPings(public_id)).toMatchObject([
      { type: 'fail', body: Buffer.from('disk full') },
      { type: 'success' },
      { type: 'success' },
    ])
    const { entries } = (await app.client.get(`/audit?target_id=${check.id}`)).body
    expect(entries).toMatchObject([
      { action: 'check.created', actor: { kind: 'system', name: 'pings by name' }, target: { name: made } },
    ])
  })

  it('says in a HEAD, too, that it created the check', async () => {
    const made = `made-${randomUUID()}`
    expect(await send('HEAD', `/${key}/${made}/start?create=1`)).toMatchObject({ status: 201, text: '' })
    expect(await findBySlug(made)).toHaveLength(1)
  })

  it('finds the one that is there', async () => {
    expect(await get(`/ping/${key}/${slug}?create=1`)).toMatchObject({ status: 200, text: 'OK' })
    expect(await findBySlug(slug)).toMatchObject([{ id }])
  })

  it.each(['', '?create=0', '?create=true', '?create=', '?create=1&create=0'])(
    'asks with create=1 only, not with %j',
    async (query) => {
      const made = `made-${randomUUID()}`
      expect(await get(`/ping/${key}/${made}${query}`)).toMatchObject(NOT_FOUND)
      expect(await findBySlug(made)).toEqual([])
    },
  )

  it('creates none for a signal or an exit code that is none, nor with a key that is revoked', async () => {
    const made = `made-${randomUUID()}`
    await get(`/ping/${key}/${made}/stop?create=1`)
    await get(`/ping/${key}/${made}/256?create=1`)
    await app.client.delete(`/projects/${app.projectId}/ping-key`)
    expect(await get(`/ping/${key}/${made}?create=1`)).toMatchObject(NOT_FOUND)
    expect(await findBySlug(made)).toEqual([])
  })

  it.each(['-job', 'job-', 'Job', 'j.b', 'a%20b', 'x'.repeat(101)])('does not take %s for a slug', async (wanted) => {
    expect(await get(`/ping/${key}/${wanted}`)).toMatchObject(NOT_FOUND)
    expect(await get(`/ping/${key}/${wanted}?create=1`)).toMatchObject({
      status: 400,
      text: 'the check was not created: its slug must be 1 to 100 characters of a-z, 0-9, - and _, and begin and end with a letter or digit',
    })
  })

  it('takes a slug of 100 characters', async () => {
    const made = `m${randomUUID()}`.padEnd(100, 'x')
    expect((await get(`/ping/${key}/${made}?create=1`)).status).toBe(201)
  })
})

describe('creation by pings', () => {
  it('has limits of its own: 429 in a minute, 403 for the number of checks; pings of checks that exist go on', async () => {
    await using limited = await startTestApp({
      environment: { PING_CREATE_PER_MINUTE: '3', PING_CREATE_MAX_CHECKS: '2', RATE_LIMIT_PER_MINUTE: '100' },
    })
    const { ping_key } = (await limited.client.post(`/projects/${limited.projectId}/ping-key`)).body
    const create = (made: string, headers = {}) =>
      fetch(`${limited.pingUrl}/ping/${ping_key}/${made}?create=1`, { headers })
    for (const made of ['one', 'two']) expect((await create(made)).status).toBe(201)

    const full = await create('three', { accept: 'application/json' })
    expect([full.status, full.headers.get('retry-after'), await full.json()]).toEqual([
      403,
      null,
      { error: expect.stringMatching(/^the check was not created: the project has 2 checks or more/) },
    ])
    const often = await create('four')
    expect([often.status, await often.text()]).toEqual([
      429,
      expect.stringMatching(/^the check was not created: pings have created 3 checks .* try again in \d+ s$/),
    ])
    expect(Number(often.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const made of ['one', 'two']) expect((await create(made)).status).toBe(200)

    await limited.createCheck()
    expect(await (await fetch(`${limited.opsUrl}/metrics`)).text()).toMatch(/result="not_created"[^}]*} 2\n/)
  })
})

describe('an address without /ping', () => {
  it.each(['', '/start', '/255'])('%j is a ping of a public id', async (rest) => {
    expect(await get(`/${publicId}${rest}`)).toMatchObject({ status: 200, text: 'OK' })
    expect(await app.storedPings(publicId)).toHaveLength(1)
  })

  it('has the same responses', async () => {
    expect(await get(`/${publicId}/stop`)).toMatchObject({
      status: 404,
      text: expect.stringContaining('unknown signal'),
    })
    expect(await get(`/${randomUUID()}`)).toMatchObject(NOT_FOUND)
    expect(await get(`/${randomUUID()}?create=1`)).toMatchObject(NOT_FOUND)
    expect(await get(`//${publicId}`)).toMatchObject(NOT_FOUND)
  })
})
