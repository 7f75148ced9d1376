/** Tokens of issuers become callers: users that are here, with what they may do here. */

import { describe, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { createIssuers } from '../../../src/auth/issuers.ts'
import { createApiKey } from '../../../src/tenancy/api-keys.ts'
import { removeUser } from '../../../src/tenancy/users.ts'
import { AUDIENCE, makeKey, signToken } from '../../support/oidc-issuer.ts'
import { use } from '../../support/use.ts'
import { anOrganization, START, tokensOf, useOrganization } from './fixtures.ts'

const ISSUER = 'https://login.example.com'
const CLUSTER = 'https://kubernetes.default.svc'
const ROBOT = 'system:serviceaccount:ci:deploy'

const key = use(makeKey)
const { test, clock, organization, context } = useOrganization()

function authenticate(token: string) {
  const jwks = { keys: [key.jwk] }
  const issuers = createIssuers(
    [
      { issuer: ISSUER, audience: AUDIENCE, users: new Map(), jwks },
      { issuer: CLUSTER, audience: AUDIENCE, users: new Map([[ROBOT, 'CI@example.com']]), jwks },
    ],
    clock,
  )
  return createAuthenticate(context(), tokensOf(clock), issuers)(`Bearer ${token}`, '192.0.2.1')
}
const aToken = (claims: object = {}) => {
  const times = { iat: START / 1_000, exp: START / 1_000 + 3_600 }
  const ann = { sub: 'ann', email: 'ann@example.com', email_verified: true }
  return signToken(key, { iss: ISSUER, aud: AUDIENCE, ...times, ...ann, ...claims })
}
const NOBODY = {
  code: 'unauthenticated',
  message:
    'no user belongs to this token: ask an administrator to add a user with the e-mail address that the issuer has verified, or to list the subject in OIDC_ISSUERS',
}

describe('a call with a token of an issuer', () => {
  it('is made as the user with its address, with the scope that the database has now', async () => {
    const user = await organization.addUser('ann@example.com', 'read')
    const token = await aToken({ scope: 'admin', roles: ['admin'], organizationId: 'other' })
    const fixed = { projectId: null, expiresAt: null, sessionId: null, address: '192.0.2.1' }
    const caller = { kind: 'user', id: user.id, name: 'ann@example.com', organizationId: organization.id, ...fixed }
    expect(await authenticate(token)).toEqual({ ...caller, scope: 'read' })
    await test.database.query(`update users set scope = 'write' where id = $1`, [user.id])
    expect(await authenticate(token)).toEqual({ ...caller, scope: 'write' })
  })

  it('ignores the case of the address', async () => {
    const user = await organization.addUser('Ann@Example.com')
    expect(await authenticate(await aToken({ email: 'aNN@example.COM' }))).toMatchObject({ id: user.id })
  })

  it('is made as the user that is configured for its subject', async () => {
    const robot = await organization.addUser('ci@example.com', 'write')
    const token = await aToken({ iss: CLUSTER, sub: ROBOT, email: undefined, email_verified: undefined })
    expect(await authenticate(token)).toMatchObject({ id: robot.id, scope: 'write' })
    const another = await aToken({ iss: CLUSTER, sub: 'system:serviceaccount:ci:default', email: undefined })
    await expect(authenticate(another)).rejects.toMatchObject(NOBODY)
  })

  it('of a subject whose user does not exist is rejected, also when a user has its address', async () => {
    await organization.addUser('ann@example.com')
    await expect(authenticate(await aToken({ iss: CLUSTER, sub: ROBOT }))).rejects.toMatchObject(NOBODY)
  })

  it('stays in the organization of its user', async () => {
    const other = await anOrganization(test.database, 'other')
    const [ann, bob] = [await organization.addUser('ann@example.com'), await other.addUser('bob@example.com')]
    expect(await authenticate(await aToken())).toMatchObject({ id: ann.id, organizationId: organization.id })
    expect(await authenticate(await aToken({ sub: 'bob', email: 'bob@example.com' }))).toMatchObject({
      id: bob.id,
      organizationId: other.id,
    })
  })

  it('is rejected when no user has its address, or when the address is not verified', async () => {
    await organization.addUser('ann@example.com')
    for (const claims of [{ email: 'bob@example.com' }, { email_verified: false }, { email: undefined }])
      await expect(authenticate(await aToken(claims))).rejects.toMatchObject(NOBODY)
  })

  it('is rejected with an address that equals that of a user only for the database', async () => {
    // lower() makes a k of the Kelvin sign, in most locales.
    const kelvin = 'mi\u212Ae@example.com'
    await organization.addUser('mike@example.com')
    await expect(authenticate(await aToken({ email: kelvin }))).rejects.toMatchObject(NOBODY)
  })

  it('is rejected as soon as the user is removed', async () => {
    const user = await organization.addUser('ann@example.com', 'read')
    const token = await aToken()
    expect(await authenticate(token)).toMatchObject({ id: user.id })
    await removeUser(context(), organization.caller, user.id)
    await expect(authenticate(token)).rejects.toMatchObject(NOBODY)
  })

  it('is rejected when the token has expired or is forged', async () => {
    await organization.addUser('ann@example.com')
    const token = await aToken()
    await expect(authenticate(token.slice(0, -4))).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringMatching(/^the credential is neither an API key nor an access token/),
    })
    clock.time = START + 3_630_000
    await expect(authenticate(token)).rejects.toMatchObject({
      message: expect.stringMatching(/^this token has expired: get a new one from its issuer/),
    })
  })

  it('accepts a header of 12,288 characters, and no longer one', async () => {
    const user = await organization.addUser('ann@example.com')
    const header = 'Bearer '
    const tokenOf = async (length: number) => {
      // Four characters for three bytes: the last ones are the header's.
      const bytes = Math.floor(((length - (await aToken({ pad: '' })).length) * 3) / 4)
      const token = await aToken({ pad: 'x'.repeat(bytes) })
      return { token, blanks: ' '.repeat(length - token.length) }
    }
    const { token, blanks } = await tokenOf(12_288 - header.length)
    expect(blanks.length).toBeLessThan(4)
    expect(await authenticate(`${token}${blanks}`)).toMatchObject({ id: user.id })
    await expect(authenticate(`${token}${blanks} `)).rejects.toMatchObject({ code: 'unauthenticated' })
  })
})

describe('beside issuers', () => {
  it('API keys and access tokens are good as before', async () => {
    const user = await organization.addUser('ann@example.com', 'read')
    const { key: apiKey, id } = await createApiKey(context(), organization.caller, { name: 'ci', scope: 'write' })
    expect(await authenticate(apiKey)).toMatchObject({ kind: 'api_key', id, scope: 'write' })
    const token = await tokensOf(clock).issueAccessToken(await organization.addSession(user.id))
    expect(await authenticate(token)).toMatchObject({ kind: 'user', id: user.id, scope: 'read' })
    clock.time = START + 15 * 60_000
    await expect(authenticate(token)).rejects.toMatchObject({
      message: expect.stringMatching(/^this access token has expired: refresh it or log in again/),
    })
  })

  it('a token of another one is unknown', async () => {
    await organization.addUser('ann@example.com')
    await expect(authenticate(await aToken({ iss: 'https://evil.example.com' }))).rejects.toMatchObject({
      message: expect.stringMatching(/^the credential is neither an API key nor an access token/),
    })
  })
})
