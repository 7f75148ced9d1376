import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { makeApiKey } from '../../../src/auth/api-key.ts'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { logIn } from '../../../src/auth/log-in.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { createApiKey } from '../../../src/tenancy/api-keys.ts'
import { removeUser } from '../../../src/tenancy/users.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { anOrganization, LOW_COST, manualClock, PASSWORD, START, tokensOf } from './fixtures.ts'

let test: TestDatabase
let clock: ReturnType<typeof manualClock>
let organization: Awaited<ReturnType<typeof anOrganization>>

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.clear()
  clock = manualClock()
  organization = await anOrganization(test.database)
})

const context = () => ({ database: test.database, clock })
const authenticate = (header: string | undefined, database: Database = test.database) =>
  createAuthenticate({ database, clock }, tokensOf(clock))(header)
const aKey = (input: Partial<Parameters<typeof createApiKey>[2]> = {}) =>
  createApiKey(context(), organization.caller, { name: 'ci', scope: 'write', ...input })

/** Every refusal is this one, but for those of expired credentials. */
const UNKNOWN = {
  name: 'AppError',
  code: 'unauthenticated',
  message: 'missing or unknown credential: send the header "Authorization: Bearer" with an API key or an access token',
}

describe('a call with an API key', () => {
  it('is made as that key, in its organization and with its scope', async () => {
    const { id, key } = await aKey()
    const caller = { kind: 'api_key', id, organizationId: organization.id, projectId: null, scope: 'write' }
    expect(await authenticate(`Bearer ${key}`)).toEqual(caller)
    expect(await authenticate(`bearer   ${key} `)).toEqual(caller)
  })

  it('with a bound key is limited to its project', async () => {
    const projectId = await organization.addProject('one')
    const { key } = await aKey({ projectId })
    expect(await authenticate(`Bearer ${key}`)).toMatchObject({ organizationId: organization.id, projectId })
  })

  it('is rejected with the same text for every reason', async () => {
    const { key, prefix } = await aKey()
    const other = await aKey()
    const refused = [
      undefined,
      '',
      key,
      `Basic ${key}`,
      'Bearer',
      'Bearer ',
      `Bearer${key}`,
      `Bearer ${key} ${key}`,
      `Bearer ${key}x`,
      `Bearer ${makeApiKey()}`,
      `Bearer hbk_${prefix}_${'a'.repeat(40)}`,
      `Bearer hbk_${prefix}_${other.key.split('_')[2]}`,
      `Bearer ${key.slice(0, -1)}`,
      `Bearer hbk_' or true --_${'a'.repeat(40)}`,
      `Bearer ${'x'.repeat(5_000)}`,
      `Bearer hbk_${'a'.repeat(1_000_000)}`,
    ]
    for (const header of refused) await expect(authenticate(header)).rejects.toMatchObject(UNKNOWN)
  })

  it('is rejected as soon as the key expires, and only its holder learns that it has expired', async () => {
    const { key, prefix } = await aKey({ expiresAt: START + 1_000 })
    clock.time = START + 999
    expect(await authenticate(`Bearer ${key}`)).toMatchObject({ kind: 'api_key' })
    clock.time = START + 1_000
    await expect(authenticate(`Bearer ${key}`)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: 'this API key has expired: have an administrator make a new one',
    })
    await expect(authenticate(`Bearer hbk_${prefix}_${'a'.repeat(40)}`)).rejects.toMatchObject(UNKNOWN)
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
    await vi.waitUntil(async () => (await lastUsed(id)) === START)

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
    await Promise.all(replicas.flatMap((replica) => Array.from({ length: 10 }, () => replica(`Bearer ${key}`))))
    await settled()
    expect(await written()).toBe(1)
    expect(await lastUsed(id)).toBe(START)
  })

  it('neither delays a call nor lets it fail', async () => {
    const { id, key } = await aKey()
    await test.database.transaction(async (tx) => {
      // Somebody holds the row: a write of it would wait until this transaction ends.
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
  it('is made as its user, with the scope that the database has now', async () => {
    const user = await organization.addUser('ann@example.com', 'read')
    const token = await tokensOf(clock).issueAccessToken({ ...user, scope: 'admin' })
    const caller = { kind: 'user', id: user.id, organizationId: organization.id, projectId: null }
    expect(await authenticate(`Bearer ${token}`)).toEqual({ ...caller, scope: 'read' })
    await test.database.query(`update users set scope = 'write' where id = $1`, [user.id])
    expect(await authenticate(`Bearer ${token}`)).toEqual({ ...caller, scope: 'write' })
  })

  it('is rejected as soon as the user is removed', async () => {
    const user = await organization.addUser('ann@example.com', 'read')
    const token = await tokensOf(clock).issueAccessToken(user)
    await removeUser(context(), organization.caller, user.id)
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject(UNKNOWN)
  })

  it('is rejected when the token has expired, is forged, or is not a token', async () => {
    const user = await organization.addUser('ann@example.com')
    const token = await tokensOf(clock).issueAccessToken(user)
    await expect(authenticate(`Bearer ${token.slice(0, -3)}`)).rejects.toMatchObject(UNKNOWN)
    await expect(authenticate(`Bearer ${randomUUID()}`)).rejects.toMatchObject(UNKNOWN)
    clock.time = START + 15 * 60_000
    await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringContaining('this access token has expired'),
    })
  })

  it('is rejected with a refresh token in its place', async () => {
    await organization.addUser('ann@example.com')
    const login = { email: 'ann@example.com', password: PASSWORD, address: '192.0.2.1' }
    const { accessToken, refreshToken } = await logIn(context(), tokensOf(clock), login, LOW_COST)
    expect(await authenticate(`Bearer ${accessToken}`)).toMatchObject({ kind: 'user' })
    await expect(authenticate(`Bearer ${refreshToken}`)).rejects.toMatchObject(UNKNOWN)
  })
})

it('a call fails as unavailable, not as unauthenticated, when the database cannot be reached', async () => {
  const { key } = await aKey()
  const gone = createDatabase({ url: 'postgres://nobody@127.0.0.1:1/none', name: 'test', connections: 1 })
  await expect(authenticate(`Bearer ${key}`, gone)).rejects.toMatchObject({ code: 'unavailable' })
  await gone.close()
})
