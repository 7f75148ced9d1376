/** The whole service with OIDC_ISSUERS, and an issuer on loopback that it asks for keys. */

import { inspect } from 'node:util'
import { beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { Log } from '../../../src/runtime/log.ts'
import { startTestApp } from '../../support/app.ts'
import { AUDIENCE, startIssuer } from '../../support/oidc-issuer.ts'
import { silentLog } from '../../support/silent-log.ts'
import { use } from '../../support/use.ts'

const warn = vi.fn()

const issuer = use(() => startIssuer())
const lost = use(() => startIssuer())
const app = use(() => {
  // It keeps its port: another server would answer on a port that is closed.
  lost.receiver.answer('reset')
  const entries = [
    { issuer: issuer.url, audience: AUDIENCE, users: { robot: 'admin@example.com' } },
    { issuer: lost.url, audience: AUDIENCE },
  ]
  const log = { ...silentLog, warn } as Log
  return startTestApp({ environment: { OIDC_ISSUERS: JSON.stringify(entries) }, log })
})
beforeAll(async () => {
  const user = { email: 'ann@example.com', password: 'a long password', scope: 'read' }
  expect((await app.client.post('/users', user)).status).toBe(201)
})
beforeEach(() => {
  warn.mockClear()
})

it('a token is accepted, with the scope of its user', async () => {
  const key = await issuer.sign()
  expect(await app.client.get('/me', { key })).toMatchObject({
    status: 200,
    body: { kind: 'user', user: { email: 'ann@example.com' }, scope: 'read', project_id: null },
  })
  const project = { name: 'Payments' }
  expect((await app.client.post('/projects', project, { key })).status).toBe(403)
  expect((await app.client.post('/projects', project, { key: await issuer.sign({ sub: 'robot' }) })).status).toBe(201)
})

it('a token of more than 8,192 characters is accepted', async () => {
  const key = await issuer.sign({ groups: Array.from({ length: 300 }, (_, at) => `group-${at}-of-the-company`) })
  expect(key.length).toBeGreaterThan(8_192)
  expect((await app.client.get('/me', { key })).status).toBe(200)
})

it('a token without a user is rejected, and the error says what to do', async () => {
  const { status, headers, body } = await app.client.get('/me', {
    key: await issuer.sign({ email: 'bob@example.com' }),
  })
  expect(status).toBe(401)
  expect(headers.get('www-authenticate')).toBe('Bearer')
  expect(body).toEqual({
    error: expect.stringMatching(/^no user belongs to this token: ask an administrator/),
    code: 'unauthenticated',
  })
})

it('a token of an unreachable issuer is 503 with Retry-After, and the log line does not hold it', async () => {
  const key = await lost.sign()
  const { status, headers, body } = await app.client.get('/me', { key })
  expect(status).toBe(503)
  expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(9)
  expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(10)
  expect(body).toEqual({
    error: `the keys of the issuer ${lost.url} cannot be fetched at the moment; try again shortly`,
    code: 'unavailable',
  })
  const error = expect.objectContaining({ message: 'fetch failed' })
  const message = 'the keys of an issuer cannot be fetched; tokens that need them are rejected'
  expect(warn).toHaveBeenCalledWith({ issuer: lost.url, error }, message)
  for (const part of key.split('.')) expect(inspect(warn.mock.calls, { depth: 10 })).not.toContain(part)
  expect((await app.client.get('/me', { key: await issuer.sign() })).status).toBe(200)
  expect((await app.client.get('/me')).status).toBe(200)
})
