/** The codes of errors: clients read them instead of the texts. */

import { beforeAll, describe, expect, it } from 'vitest'
import { declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { NO_SPEC } from '../../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../../src/domain/check.ts'
import type { ErrorCode } from '../../../src/domain/errors.ts'
import { STATUS } from '../../../src/http/error-codes.ts'
import { exchange, writeHead } from '../../support/http.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

type Answer = Promise<{ readonly status: number; readonly body: unknown }>
const NO_ID = '01999999-9999-7999-8999-999999999999'
const SPEC = { ...NO_SPEC, periodSeconds: 3_600, graceSeconds: 60 }
const SLACK = { kind: 'slack', config: { url: 'https://hooks.slack.com/services/T/B/x' } }

const create = (fields: object = {}) => api.addCheck({ name: 'Backup', ...fields })
const addChannel = async (): Promise<string> => (await api.addChannel(SLACK)).id

async function declare(suspend: boolean | null): Promise<string> {
  const resource = { cluster: 'main', namespace: 'shop', name: `backup-${suspend}` }
  const adoptId = null
  const declaration = { resource, projectId: api.project, name: 'Backup', ...NO_TEXTS, spec: SPEC, suspend, adoptId }
  return (await declareCheck(api.context, declaration)).check.id
}

async function addMutedDelivery(): Promise<string> {
  const channel = await addChannel()
  await api.ping((await create()).public_id, { type: 'fail', exitCode: null })
  await api.client.put(`/channels/${channel}`, { muted: true })
  return (await api.client.get(`/deliveries?channel_id=${channel}`)).body.deliveries[0].id
}

const CASES: [name: string, code: ErrorCode, send: () => Answer, path?: string][] = [
  ['a missing field', 'invalid_request', () => api.client.post('/checks', { name: 'x' }), 'body.project_id'],
  ['a parameter', 'invalid_request', () => api.client.get('/projects?limit=0'), 'query.limit'],
  ['a wrong rule', 'invalid_request', () => api.client.post('/checks', BAD_SCHEDULE()), 'body.schedule'],
  ['no object', 'invalid_request', () => api.client.post('/projects', []), 'body'],
  ['many parameters', 'invalid_request', () => api.client.get(`/projects?${'a&'.repeat(1_001)}`), 'query'],
  ['no credential', 'unauthenticated', () => api.client.get('/me', { key: null })],
  ['a small scope', 'forbidden', () => api.client.get('/users', { key: api.keys.read })],
  ['an unknown id', 'not_found', () => api.client.get(`/checks/${NO_ID}`)],
  ['an unknown path', 'not_found', () => api.client.get('/check')],
  ['another method', 'method_not_allowed', () => api.client.call('POST', '/me')],
  ['a large body', 'too_large', () => api.client.post('/projects', { name: 'x'.repeat(66_000) })],
  ['another type', 'unsupported_media_type', () => api.client.call('POST', '/projects', { body: 'x' })],
  ['an e-mail in use', 'conflict', () => api.client.post('/users', { ...api.admin, scope: 'read' }), 'body.email'],
  ['the slug of a check', 'slug_taken', async () => takeSlug(), 'body.slug'],
  ['the slug of a project', 'slug_taken', () => api.client.post('/projects', { name: 'x', slug: 'x' }), 'body.slug'],
  ['a declared check', 'managed_by_kubernetes', async () => api.client.delete(`/checks/${await declare(null)}`)],
  ['spec.suspend', 'managed_by_kubernetes', async () => api.client.patch(`/checks/${await declare(true)}/resume`)],
  ['a project with checks', 'project_not_empty', () => api.client.delete(`/projects/${api.project}`)],
  ['a channel that checks chose', 'channel_in_use', async () => removeChosen()],
  ['a channel that moves', 'channel_in_use', async () => moveChosen(), 'body.project_id'],
  ['a check that is not down', 'not_down', async () => api.client.post(`/checks/${(await create()).id}/acknowledge`)],
  ['a muted channel', 'muted', async () => api.client.post(`/deliveries/${await addMutedDelivery()}/retry`)],
  // No key is left behind it.
  ['the last admin', 'last_admin', async () => removeAdmins()],
]

const BAD_SCHEDULE = () => ({ project_id: api.project, name: 'x', schedule: '61 * * * *' })

async function takeSlug() {
  await create({ slug: 'taken' })
  return api.client.put(`/checks/${(await create()).id}`, { slug: 'taken' })
}

async function removeChosen() {
  const channel = await addChannel()
  await create({ channels: [channel] })
  return api.client.delete(`/channels/${channel}`)
}

async function moveChosen() {
  const channel = await addChannel()
  await create({ channels: [channel] })
  const { id } = (await api.client.post('/projects', { name: 'Next' })).body
  return api.client.put(`/channels/${channel}`, { project_id: id })
}

/** Keys that never expire are admins, too. */
async function removeAdmins() {
  const { users } = (await api.client.get('/users')).body
  await api.client.delete(`/users/${users[0].id}`)
  const { key } = (await api.client.post('/api-keys', { name: 'last', scope: 'admin' })).body
  const { api_keys: keys } = (await api.client.get('/api-keys', { key })).body
  const admins = keys.filter(({ scope, name }: { scope: string; name: string }) => scope === 'admin' && name !== 'last')
  for (const { id } of admins) await api.client.delete(`/api-keys/${id}`, { key })
  return api.client.delete(`/api-keys/${keys.find(({ name }: { name: string }) => name === 'last').id}`, { key })
}

describe('the code of an error', () => {
  beforeAll(() => api.client.post('/projects', { name: 'x', slug: 'x' }))

  it.each(CASES)('for %s is %s', async (_, code, send, path) => {
    const details = path === undefined ? {} : { details: [{ path, message: expect.stringMatching(/./) }] }
    const { status, body } = await send()
    expect([status, body]).toEqual([STATUS[code], { error: expect.stringMatching(/./), code, ...details }])
  })

  it('is in a response that no handler makes, with a detail where the status is 400', async () => {
    const long = await exchange(api.url, writeHead('GET', '/api/v1/me', `Accept: ${'x'.repeat(2_000)}`))
    expect([long.status, JSON.parse(long.text).code]).toEqual([431, 'too_large'])
    const error = 'the request has no Host header'
    const { status, text } = await exchange(api.url, 'GET /api/v1/me HTTP/1.1\r\n\r\n')
    const details = [{ path: 'request', message: error }]
    expect([status, JSON.parse(text)]).toEqual([400, { error, code: 'invalid_request', details }])
  })
})

describe('an error of another API than ours has no code', () => {
  const errorOf = async (path: string, headers = {}) => {
    const response = await fetch(new URL(path, api.url), { method: 'POST', body: '{', headers })
    return [response.status, await response.json()]
  }

  it.each([
    ['the API of healthchecks, version 1', '/api/v1/checks/', { 'X-Api-Key': 'x' }, 401],
    ['the API of healthchecks, version 3', '/api/v3/checks/', {}, 400],
    ['a badge', '/badge/x/y.svg', {}, 404],
  ])('%s', async (_, path, headers, status) => {
    expect(await errorOf(path, headers)).toEqual([status, { error: expect.stringMatching(/./) }])
  })
})
