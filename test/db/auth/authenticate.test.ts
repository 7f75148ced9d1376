import { createHmac, hkdfSync, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { makeApiKey } from '../../../src/auth/api-key.ts'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { logOut, refresh } from '../../../src/auth/log-in.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { createApiKey } from '../../../src/tenancy/api-keys.ts'
import { removeUser } from '../../../src/tenancy/users.ts'
import { eventually } from '../../support/until.ts'
import { ADDRESS, EMAIL, SECRET_KEY, START, tokensOf, useOrganization } from './fixtures.ts'

const { test, clock, organization, context, enter } = useOrganization()
const authenticate = (header: string | undefined, database: Database = test.database) =>
  createAuthenticate({ database, clock }, tokensOf(clock))(header, ADDRESS)
const aKey = (input: Partial<Parameters<typeof createApiKey>[2]> = {}) =>
  createApiKey(context(), organization.caller, { name: 'ci', scope: 'write', ...input })

const HEADER = 'send the header "Authorization: Bearer <API key or access token>"'
const rejection = (message: string) => ({ name: 'AppError', code: 'unauthenticated', message: `${message}${HEADER}` })
const NOTHING = rejection('no credential was received: ')
const NO_SCHEME = rejection('the credential has no scheme, not Bearer: ')
const UNKNOWN_KEY = rejection('the credential is an unknown or revoked API key: ')
const UNKNOWN_TOKEN = rejection(
  'the credential is neither an API key nor an access token that is valid here: log in again, and ',
)
const ENDED = rejection('the credential is an access token of a session that has ended: log in again, and ')

describe('a call with an API key', () => {
  it('is made as that key, in its organization and with its scope', async () => {
    const { id, key } = await aKey()
    const rights = { projectId: null, scope: 'write', expiresAt: null, sessionId: null, address: ADDRESS }
    const caller = { kind: 'api_key', id, name: 'ci', organizationId: organization.id, ...rights }
    expect(await authenticate(`Bearer ${key}`)).toEqual(caller)
    expect(await authenticate(`bearer   ${key} `)).toEqual(caller)
  })

  it('with a bound key is limited to its project', async () => {
    const projectId = await organization.addProject('one')
    const { key } = await aKey({ projectId })
    expect(await authenticate(`Bearer ${key}`)).toMatchObject({ organizationId: organization.id, projectId })
  })

  it('is rejected with what was received and the right header, never with the credential', async () => {
    const { key, prefix } = await aKey()
    const other = await aKey()
    const scheme = (name: string) => rejection(`the credential has the scheme ${name}, not Bearer: `)
    const rejected: [string | undefined, object][] = [
      [undefined, NOTHING],
      ['', NOTHING],
      ['Bearer', NOTHING],
      ['Bearer ', NOTHING],
      [key, NO_SCHEME],
      [`Bearer${key}`, NO_SCHEME],
      [`Basic ${key}`, scheme('Basic')],
      [`basic ${key}`, scheme('Basic')],
      [`${key} ${key}`, scheme('of another kind')],
      [`Bearer ${key} ${key}`, UNKNOWN_TOKEN],
      [`Bearer ${key}x`, UNKNOWN_KEY],
      [`Bearer ${makeApiKey()}`, UNKNOWN_KEY],
      [`Bearer hbk_${prefix}_${'a'.repeat(40)}`, UNKNOWN_KEY],
      [`Bearer hbk_${prefix}_${other.key.split('_')[2]}`, UNKNOWN_KEY],
      [`Bearer ${key.slice(0, -1)}`, UNKNOWN_KEY],
      [`Bearer hbk_' or true --_${'a'.repeat(40)}`, UNKNOWN_TOKEN],
      [`Bearer hbk_'or-true--_${'a'.repeat(40)}`, UNKNOWN_KEY],
      [`Bearer ${'x'.repeat(5_000)}`, UNKNOWN_TOKEN],
      [`Bearer hbk_${'a'.repeat(1_000_000)}`, UNKNOWN_TOKEN],
    ]
    for (const [header, error] of rejected) await expect(authenticate(header), header).rejects.toMatchObject(error)
  })

  it('is rejected as soon as the key expires, and only its holder learns that it has expired', async () => {
    const { key, prefix } = await aKey({ expiresAt: START + 1_000 })
    clock.time = START + 999
    expect(await authenticate(`Bearer ${key}`)).toMatchObject({ kind: 'api_key' })
    clock.time = START + 1_000
    await expect(authenticate(`Bearer ${key}`)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: `this API key has expired: have an administrator create a new one, and ${HEADER}`,
    })
    await expect(authenticate(`Bearer hbk_${prefix}_${'a'.repeat(40)}`)).rejects.toMatchObject(UNKNOWN_KEY)
  })

  it('stores no text of a key', async () => {
    const { key } = await aKey()
    const { rows } = await test.database.query<{ row: string }>('select k::text as row from api_keys k')
    expect(rows[0]!.row).not.toContain(key.split('_')[2])
  })
})

describe('the last use of a key', () => {
  const lastUsed = async (id: string) => {
    const { rows } = await test.database.query<{ at: number | null }>(
      'select last_used_at as at from api_keys where id = $1',
      [id],
    )
    return rows[0]!.at
  }
  it('is recorded at once, and then at most once in a minute', async () => {
    const { id, key, lastUsedAt } = await aKey()
    expect(lastUsedAt).toBeNull()
    await authenticate(`Bearer ${key}`)
    await eventually('the time of use is the first one', async () => (await lastUsed(id)) === START)

    const { database, touches, settled } = watched(test.database)
    clock.time = START + 59_999
    await authenticate(`Bearer ${key}`, database)
    await settled()
    expect(touches()).toBe(0)
    expect(await lastUsed(id)).toBe(START)

    clock.time = START + 60_000
    await authenticate(`Bearer ${key}`, database)
    await settled()
    expect(touches()).toBe(1)
    expect(await lastUsed(id)).toBe(START + 60_000)
  })

  it('is written once when many replicas and calls come at once', async () => {
    const { id, key } = await aKey()
    const { database, written, settled } = watched(test.database)
    const replicas = Array.from({ length: 3 }, () => createAuthenticate({ database, clock }, tokensOf(clock)))
    await Promise.all(
      replicas.flatMap((replica) => Array.from({ length: 10 }, () => replica(`Bearer ${key}`, ADDRESS))),
    )
    await settled()
    expect(await written()).toBe(1)
    expect(await lastUsed(id)).toBe(START)
  })

  it('neither delays a call nor lets it fail', async () => {
    const { id, key } = await aKey()
    await test.database.transaction(async (tx) => {
      // Another session holds the row: a write of it would wait until this transaction ends.
      await tx.query('select from api_keys where id = $1 for update', [id])
      const { database, touches, written } = watched(test.database)
      expect(await authenticate(`Bearer ${key}`, database)).toMatchObject({ id })
      expect(touches()).toBe(1)
      expect(await written()).toBe(0)
    })
    const { database, settled } = watched(test.database, () => Promise.reject(new Error('the database is gone')))
    expect(await authenticate(`Bearer ${key}`, database)).toMatchObject({ id })
    await settled()
    const never = watched(test.database, () => new Promise(() => {}))
    expect(await authenticate(`Bearer ${key}`, never.database)).toMatchObject({ id })
    expect(await lastUsed(id)).toBeNull()
  })

  /** A database that counts the notes of uses, and knows when they are through; `instead` takes their place. */
  function watched(real: Database, instead?: () => Promise<never>) {
    const issued: Promise<{ rowCount: number }>[] = []
    const query: Database['query'] = (statement, values) => {
      const isTouch = typeof statement !== 'string' && statement.name === 'touch_api_key'
      const result = isTouch && instead !== undefined ? instead() : real.query(statement, values)
      if (isTouch) issued.push(result)
      return result as ReturnType<typeof real.query<never>>
    }
    return {
      database: { ...real, query },
      touches: () => issued.length,
      written: async () => (await Promise.all(issued)).reduce((sum, { rowCount }) => sum + rowCount, 0),
      settled: () => Promise.allSettled(issued),
    }
  }
})

describe('a call with an access token', () => {
  const tokenOf = async (userId: string) => tokensOf(clock).issueAccessToken(await organization.addSession(userId))

  it('is made as its user, with the scope that the database has now', async () => {
    const user = await organization.addUser('ann@example.com', 'read')
    const of = await organization.addSession(user.id)
    const token = await tokensOf(clock).issueAccessToken(of)
    const fixed = { projectId: null, expiresAt: null, sessionId: of.sessionId, address: ADDRESS }
    const caller = { kind: 'user', id: user.id, name: 'ann@example.com', organizationId: organization.id, ...fixed }
    expect(await authenticate(`Bearer ${token}`)).toEqual({ ...caller, scope: 'read' })
    await test.database.query(`update users set scope = 'write' where id = $1`, [user.id])
    expect(await authenticate(`Bearer ${token}`)).toEqual({ ...caller, scope: 'write' })
  })

  it('is rejected as soon as the user is removed', async () => {
    const user = await organization.addUser('ann@example.com', 'read')
    const token = await tokenOf(user.id)
    await removeUser(context(), organization.caller, user.id)
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject(ENDED)
  })

  it('is rejected as soon as its session has ended: log-out, replay', async () => {
    await organization.addUser(EMAIL)
    const address = ADDRESS
    const left = await enter()
    expect(await authenticate(`Bearer ${left.accessToken}`)).toMatchObject({ kind: 'user' })
    await logOut(context(), { ...left, address })
    await expect(authenticate(`Bearer ${left.accessToken}`)).rejects.toMatchObject(ENDED)

    const stolen = await enter()
    const kept = await enter()
    const renewed = await refresh(context(), tokensOf(clock), { ...stolen, address })
    await expect(refresh(context(), tokensOf(clock), { ...stolen, address })).rejects.toThrow('spent')
    for (const { accessToken } of [stolen, renewed])
      await expect(authenticate(`Bearer ${accessToken}`)).rejects.toMatchObject(ENDED)
    expect(await authenticate(`Bearer ${kept.accessToken}`)).toMatchObject({ kind: 'user' })
  })

  it('is rejected with the session of another user', async () => {
    const [ann, bob] = [await organization.addUser('ann@example.com'), await organization.addUser('bob@example.com')]
    const { sessionId } = await organization.addSession(bob.id)
    const token = await tokensOf(clock).issueAccessToken({ userId: ann.id, sessionId })
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject(ENDED)
  })

  it('that names no session is rejected', async () => {
    const { id } = await organization.addUser('ann@example.com')
    const key = Buffer.from(hkdfSync('sha256', SECRET_KEY, '', 'heartbeat-operator access token v1', 32))
    const claims = { iss: 'heartbeat-operator', aud: 'heartbeat-operator/api', sub: id, exp: START / 1_000 + 900 }
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
    const signed = `${encode({ alg: 'HS256', typ: 'at+jwt' })}.${encode(claims)}`
    const token = `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject(UNKNOWN_TOKEN)
  })

  it('is rejected when the token has expired, is forged, or is not a token', async () => {
    const user = await organization.addUser('ann@example.com')
    const token = await tokenOf(user.id)
    await expect(authenticate(`Bearer ${token.slice(0, -3)}`)).rejects.toMatchObject(UNKNOWN_TOKEN)
    await expect(authenticate(`Bearer ${randomUUID()}`)).rejects.toMatchObject(UNKNOWN_TOKEN)
    clock.time = START + 15 * 60_000
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringContaining('this access token has expired'),
    })
  })

  it('is rejected with a refresh token in its place', async () => {
    await organization.addUser(EMAIL)
    const { accessToken, refreshToken } = await enter()
    expect(await authenticate(`Bearer ${accessToken}`)).toMatchObject({ kind: 'user' })
    await expect(authenticate(`Bearer ${refreshToken}`)).rejects.toMatchObject(UNKNOWN_TOKEN)
  })

  it('is noted as a use of its session, at most once in a minute', async () => {
    const user = await organization.addUser('ann@example.com')
    const token = await tokenOf(user.id)
    const lastUsed = async () =>
      (await test.database.query<{ at: number }>('select last_used_at as at from sessions')).rows[0]!.at
    clock.time = START + 59_999
    await authenticate(`Bearer ${token}`)
    clock.time = START + 60_000
    await authenticate(`Bearer ${token}`)
    await eventually('the time of use is a minute later', async () => (await lastUsed()) === START + 60_000)
  })
})

it('a call fails as unavailable, not as unauthenticated, when the database cannot be reached', async () => {
  const { key } = await aKey()
  const gone = createDatabase({ url: 'postgres://nobody@127.0.0.1:1/none', name: 'test', connections: 1 })
  await expect(authenticate(`Bearer ${key}`, gone)).rejects.toMatchObject({ code: 'unavailable' })
  await gone.close()
})
