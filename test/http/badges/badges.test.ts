/** Badges over HTTP (design, section 3.7): what they show, to whom, and what they do not. */

import { randomUUID } from 'node:crypto'
import Koa from 'koa'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createFindBadge } from '../../../src/checks/find-badge.ts'
import { serveBadges } from '../../../src/http/badges/app.ts'
import { renderErrors } from '../../../src/http/middleware/errors.ts'
import { serve } from '../../support/servers.ts'
import { startTestApi } from '../../support/service.ts'
import { silentLog } from '../../support/silent-log.ts'
import { use } from '../../support/use.ts'

let origin: string
let project: string
let key: string

const api = use(startTestApi)
beforeAll(async () => {
  origin = new URL(api.url).origin
})
beforeEach(async () => {
  project = (await api.client.post('/projects', { name: `Shop & <b>${randomUUID()}` })).body.id
  key = (await api.client.get(`/projects/${project}/badge-key`)).body.badge_key
})

const create = (slug: string, fields: object = {}) =>
  api.addCheck({ project_id: project, name: `The ${slug}`, slug, ...fields })
const get = async (rest: string, init: RequestInit = {}) => fetch(`${origin}/badge/${rest}`, init)
const read = async (rest: string) => (await get(rest)).json()

describe('the badge of a check', () => {
  it('shows its name and its status, in three forms', async () => {
    const { public_id, id } = await create('job', { description: 'secret' })
    await api.ping(public_id, { body: Buffer.from('text of the ping') })
    const svg = await get(`${key}/job.svg`)
    const text = await svg.text()
    expect(svg.status).toBe(200)
    expect(Object.fromEntries(svg.headers)).toMatchObject({
      'content-type': 'image/svg+xml; charset=utf-8',
      'cache-control': 'public, max-age=60',
      'access-control-allow-origin': '*',
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining('sandbox'),
    })
    expect(text).toContain('aria-label="The job: up"')
    for (const hidden of [id, public_id, project, key, 'text of the ping', 'secret']) expect(text).not.toContain(hidden)
    expect(await read(`${key}/job.json`)).toEqual({ status: 'up', total: 1, grace: 0, down: 0 })
    const shields = { schemaVersion: 1, label: 'The job', message: 'up', color: 'success' }
    expect(await read(`${key}/job.shields`)).toEqual(shields)
  })

  it('follows the status; late counts as up with two states', async () => {
    const { public_id, id } = await create('job', { period_seconds: 60, grace_seconds: 600 })
    expect(await read(`${key}/job.shields`)).toMatchObject({ message: 'new', color: 'inactive' })
    await api.ping(public_id, { type: 'warn', exitCode: null })
    expect(await read(`${key}/job.shields`)).toMatchObject({ message: 'up', color: 'success' })
    await api.ping(public_id)
    api.moveClock(120_000)
    expect(await read(`${key}/job.shields`)).toMatchObject({ message: 'late', color: 'important' })
    expect(await read(`${key}/job.json`)).toEqual({ status: 'late', total: 1, grace: 1, down: 0 })
    expect(await read(`${key}/job.json?states=2`)).toEqual({ status: 'up', total: 1, grace: 1, down: 0 })
    expect(await read(`${key}/job.json?states=3`)).toMatchObject({ status: 'late' })
    expect(await (await get(`${key}/job.svg?states=2`)).text()).toContain('The job: up')
    await api.ping(public_id, { type: 'fail', exitCode: 1 })
    expect(await read(`${key}/job.json?states=2`)).toEqual({ status: 'down', total: 1, grace: 0, down: 1 })
    expect(await read(`${key}/job.shields`)).toMatchObject({ message: 'down', color: 'critical' })
    await api.client.patch(`/checks/${id}/pause`)
    expect(await read(`${key}/job.shields`)).toMatchObject({ message: 'paused', color: 'inactive' })
  })
})

describe('the badge of several checks', () => {
  it('shows the worst status of the project, or of the checks with a tag', async () => {
    const one = await create('one', { tags: ['team:a', 'nightly'] })
    const two = await create('two', { tags: ['nightly'] })
    await create('three', { tags: ['team:a'] })
    await api.ping(one.public_id)
    await api.ping(two.public_id, { type: 'fail', exitCode: 1 })
    expect(await read(`${key}.json`)).toEqual({ status: 'down', total: 3, grace: 0, down: 1 })
    expect(await read(`${key}/tag/team:a.json`)).toEqual({ status: 'up', total: 2, grace: 0, down: 0 })
    expect(await read(`${key}/tag/team%3Aa.shields`)).toMatchObject({ label: 'team:a', message: 'up' })
    expect(await read(`${key}/tag/nightly.shields`)).toMatchObject({ label: 'nightly', message: 'down' })
    expect(await read(`${key}.shields`)).toMatchObject({
      label: expect.stringContaining('Shop & <b>'),
      message: 'down',
    })
    expect(await (await get(`${key}.svg`)).text()).toContain('Shop &amp; &lt;b&gt;')
  })

  it('of a project without checks is new', async () => {
    expect(await read(`${key}.json`)).toEqual({ status: 'new', total: 0, grace: 0, down: 0 })
  })

  it('counts the checks of its project only', async () => {
    await create('job', { tags: ['shared'] })
    const other = await api.addOrganization()
    const theirs = { project_id: other.project, name: 'Theirs', slug: 'theirs', tags: ['shared', 'own'] }
    const { public_id } = (await api.client.post('/checks', theirs, { key: other.keys.admin })).body
    await api.ping(public_id, { type: 'fail', exitCode: 1 })
    expect(await read(`${key}.json`)).toMatchObject({ total: 1, down: 0 })
    expect(await read(`${key}/tag/shared.json`)).toMatchObject({ total: 1, down: 0 })
    for (const rest of ['theirs', 'tag/own']) expect((await get(`${key}/${rest}.svg`)).status).toBe(404)
  })
})

describe('an address of a badge', () => {
  it('has the same response for an unknown key, slug and tag, and for what is none', async () => {
    await create('job')
    const pingKey = (await api.client.post(`/projects/${project}/ping-key`)).body.ping_key
    const unknown = 'x'.repeat(22)
    for (const rest of [
      `${unknown}.svg`,
      `${unknown}/job.svg`,
      `${unknown}/tag/job.json`,
      `${pingKey}/job.svg`,
      `${key}/jobs.svg`,
      `${key}/tag/none.svg`,
      `${key}/job.png`,
      `${key}/job`,
      '',
    ]) {
      const response = await get(rest)
      expect([rest, response.status, await response.json()]).toEqual([rest, 404, { error: 'badge not found' }])
      expect(response.headers.get('cache-control')).toBe('no-store')
    }
  })

  it('works with the newest key only', async () => {
    await create('job')
    const { badge_key: next } = (await api.client.post(`/projects/${project}/badge-key`)).body
    expect([(await get(`${key}/job.svg`)).status, (await get(`${next}/job.svg`)).status]).toEqual([404, 200])
    await api.client.delete(`/projects/${project}/badge-key`)
    expect((await get(`${next}/job.svg`)).status).toBe(404)
  })

  it('is read with GET and HEAD; other methods are rejected', async () => {
    await create('job')
    const head = await get(`${key}/job.svg`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    const options = await get(`${key}/job.svg`, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    const post = await get(`${key}/job.svg`, { method: 'POST', body: 'x' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })
})

describe('many requests', () => {
  it('of a key are limited, and not those of others', async () => {
    await create('job')
    const app = new Koa()
      .use(renderErrors(silentLog))
      .use(serveBadges(createFindBadge(api.context), { now: () => 0 }, 20))
    await using server = await serve({ handler: app.callback() })
    const send = (of: string) => fetch(`${server.url}/badge/${of}.json`)
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, place) => send([key, `${key}/job`, `${key}/none`][place % 3]!)),
    )
    expect(all.map(({ status }) => status)).toEqual(all.map((_, place) => (place % 3 === 2 ? 404 : 200)))
    const more = await send(key)
    expect([more.status, more.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)])
    expect((await send('x'.repeat(22))).status).toBe(404)
  })
})
