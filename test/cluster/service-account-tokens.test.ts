/** A cluster as an issuer: pods and pipelines call the management API as a ServiceAccount, by the commands of the README. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../support/app.ts'
import { cluster, type TestNamespace } from '../support/cluster.ts'

const AUDIENCE = 'heartbeat-operator'

let namespace: TestNamespace
let app: TestApp

beforeAll(async () => {
  namespace = await cluster.makeNamespace()
  for (const account of ['deploy', 'other'])
    await cluster.kubectl('create', 'serviceaccount', account, '--namespace', namespace.name)
  const { issuer } = JSON.parse(await cluster.kubectl('get', '--raw', '/.well-known/openid-configuration'))
  const jwks = JSON.parse(await cluster.kubectl('get', '--raw', '/openid/v1/jwks'))
  const users = { [`system:serviceaccount:${namespace.name}:deploy`]: 'ci@example.com' }
  app = await startTestApp({
    environment: { OIDC_ISSUERS: JSON.stringify([{ issuer, audience: AUDIENCE, users, jwks }]) },
  })
  const user = { email: 'ci@example.com', password: 'a long password', scope: 'write' }
  expect((await app.call('POST', '/users', user)).status).toBe(201)
})
afterAll(async () => {
  await app?.close()
  await namespace?.remove()
})

const tokenOf = async (account: string, ...options: string[]) =>
  (await cluster.kubectl('create', 'token', account, '--namespace', namespace.name, ...options)).trim()
const whoIs = (token: string) => app.client.get('/me', { key: token })

it('a token of a ServiceAccount that is named opens the API, for its user', async () => {
  expect(await whoIs(await tokenOf('deploy', '--audience', AUDIENCE))).toMatchObject({
    status: 200,
    body: { kind: 'user', user: { email: 'ci@example.com' }, scope: 'write' },
  })
})

it('a token for the API server or for another audience is rejected', async () => {
  for (const options of [[], ['--audience', 'another']])
    expect(await whoIs(await tokenOf('deploy', ...options))).toMatchObject({
      status: 401,
      body: { error: expect.stringMatching(/^the credential is neither an API key nor an access token/) },
    })
})

it('a ServiceAccount that is not configured is rejected with the reason', async () => {
  expect(await whoIs(await tokenOf('other', '--audience', AUDIENCE))).toMatchObject({
    status: 401,
    body: { error: expect.stringMatching(/^no user belongs to this token/) },
  })
})
