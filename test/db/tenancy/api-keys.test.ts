import { createHash, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { createApiKey, insertKey, listApiKeys, revokeApiKey } from '../../../src/tenancy/api-keys.ts'
import { useEach } from '../../support/use.ts'
import { ALL, anOrganization, START, tokensOf, useOrganization } from '../auth/fixtures.ts'

const NO_KEY = { name: 'AppError', code: 'not_found', message: 'API key not found' }
const NO_PROJECT = { name: 'AppError', code: 'not_found', message: 'project not found' }

const { test, clock, organization: acme, context } = useOrganization()
const other = useEach(() => anOrganization(test.database, 'other'))

const listNames = async (caller = acme.caller) =>
  (await listApiKeys(context(), caller, ALL)).rows.map(({ name }) => name)

describe('creating an API key', () => {
  it('returns the key, and stores only its hash', async () => {
    const made = await createApiKey(context(), acme.caller, { name: 'ci', scope: 'write' })
    const { key, ...record } = made
    expect(key).toMatch(/^hbk_[0-9A-Za-z]{8}_[0-9A-Za-z]{40}$/)
    expect(record).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{14}7/),
      name: 'ci',
      prefix: key.split('_')[1],
      scope: 'write',
      projectId: null,
      expiresAt: null,
      lastUsedAt: null,
      createdAt: START,
      createdBy: { kind: 'api_key', id: acme.caller.id, name: 'test' },
    })
    expect((await listApiKeys(context(), acme.caller, ALL)).rows).toEqual([record])
    const { rows } = await test.database.query<{ hash: Buffer }>('select secret_hash as hash from api_keys')
    expect(rows[0]!.hash).toEqual(createHash('sha256').update(key).digest())
  })

  it('binds it to a project of the organization, and to no other', async () => {
    const one = await acme.addProject('one')
    const foreign = await other.addProject('foreign')
    const made = await createApiKey(context(), acme.caller, { name: 'ci', scope: 'read', projectId: one })
    expect(made).toMatchObject({ projectId: one })
    for (const projectId of [foreign, randomUUID(), 'one', '']) {
      const refused = createApiKey(context(), acme.caller, { name: 'no', scope: 'read', projectId })
      await expect(refused).rejects.toMatchObject(NO_PROJECT)
    }
    expect(await listNames()).toEqual(['ci'])
  })

  it('binds what a bound caller makes to its project', async () => {
    const one = await acme.addProject('one')
    const two = await acme.addProject('two')
    const bound = acme.boundTo(one)
    for (const projectId of [undefined, null, one, one.toUpperCase()]) {
      const input = { name: 'mine', scope: 'admin', ...(projectId === undefined ? {} : { projectId }) } as const
      expect(await createApiKey(context(), bound, input)).toMatchObject({ projectId: one })
    }
    const refused = createApiKey(context(), bound, { name: 'no', scope: 'read', projectId: two })
    await expect(refused).rejects.toMatchObject(NO_PROJECT)
  })

  it('made by a key expires no later than that key', async () => {
    const make = (expiresAt: number | null, caller: Partial<typeof acme.caller>) =>
      createApiKey(context(), { ...acme.caller, ...caller }, { name: 'child', scope: 'admin', expiresAt })
    const expiring = { expiresAt: START + 3_000 }
    expect(await make(null, expiring)).toMatchObject(expiring)
    expect(await make(START + 3_001, expiring)).toMatchObject(expiring)
    expect(await make(START + 2_999, expiring)).toMatchObject({ expiresAt: START + 2_999 })
    expect(await make(START + 3_001, { expiresAt: null })).toMatchObject({ expiresAt: START + 3_001 })
    expect(await make(null, { kind: 'user' })).toMatchObject({ expiresAt: null })
  })

  it('rejects an expiry that is not in the future', async () => {
    clock.time = START + 0.5
    const make = (expiresAt: number) => createApiKey(context(), acme.caller, { name: 'ci', scope: 'read', expiresAt })
    expect(await make(START + 1)).toMatchObject({ expiresAt: START + 1 })
    for (const expiresAt of [START + 0.5, START, 0]) {
      await expect(make(expiresAt)).rejects.toMatchObject({
        code: 'invalid_request',
        field: 'expiresAt',
        message: 'must be in the future',
      })
    }
  })

  it('rejects a chosen key whose prefix is taken', async () => {
    const row = {
      organizationId: acme.id,
      projectId: null,
      name: 'ci',
      scope: 'read',
      expiresAt: null,
      createdAt: START,
      createdBy: null,
    } as const
    const chosen = `hbk_taken_${'a'.repeat(40)}`
    await insertKey(test.database, row, chosen)
    const again = insertKey(test.database, { ...row, organizationId: other.id }, chosen)
    await expect(again).rejects.toThrow('no free prefix for an API key was found')
    expect(await listNames(other.caller)).toEqual([])
  })
})

describe('listing API keys', () => {
  it('returns the keys of the organization, page by page', async () => {
    for (const name of ['one', 'two', 'three']) {
      clock.time += 1
      await createApiKey(context(), acme.caller, { name, scope: 'read' })
    }
    await createApiKey(context(), other.caller, { name: 'foreign', scope: 'read' })
    const first = await listApiKeys(context(), acme.caller, { limit: 2, after: null })
    const second = await listApiKeys(context(), acme.caller, { limit: 2, after: first.next })
    expect([first, second].map(({ rows }) => rows.map(({ name }) => name))).toEqual([['one', 'two'], ['three']])
    expect(second.next).toBeNull()
  })

  it('returns to a bound caller the keys of its project', async () => {
    const one = await acme.addProject('one')
    const two = await acme.addProject('two')
    for (const projectId of [one, two, null]) {
      await createApiKey(context(), acme.caller, { name: `of ${projectId}`, scope: 'read', projectId })
    }
    expect(await listNames(acme.boundTo(one))).toEqual([`of ${one}`])
    expect(await listNames(acme.boundTo(randomUUID()))).toEqual([])
  })
})

describe('revoking an API key', () => {
  it('makes it invalid at once', async () => {
    const { id, key } = await createApiKey(context(), acme.caller, { name: 'ci', scope: 'read' })
    const authenticate = (header: string) => createAuthenticate(context(), tokensOf(clock))(header, '192.0.2.1')
    expect(await authenticate(`Bearer ${key}`)).toMatchObject({ id })
    await revokeApiKey(context(), acme.caller, id)
    await expect(authenticate(`Bearer ${key}`)).rejects.toMatchObject({ code: 'unauthenticated' })
    await expect(revokeApiKey(context(), acme.caller, id)).rejects.toMatchObject(NO_KEY)
  })

  it('throws not_found for an unknown, foreign or malformed id', async () => {
    const foreign = await createApiKey(context(), other.caller, { name: 'foreign', scope: 'read' })
    for (const id of [foreign.id, randomUUID(), foreign.prefix, '', "' or true --"]) {
      await expect(revokeApiKey(context(), acme.caller, id)).rejects.toMatchObject(NO_KEY)
    }
    expect(await listNames(other.caller)).toEqual(['foreign'])
  })

  it('is limited to its project for a bound caller', async () => {
    const one = await acme.addProject('one')
    const mine = await createApiKey(context(), acme.caller, { name: 'mine', scope: 'read', projectId: one })
    const free = await createApiKey(context(), acme.caller, { name: 'free', scope: 'read' })
    await expect(revokeApiKey(context(), acme.boundTo(one), free.id)).rejects.toMatchObject(NO_KEY)
    await revokeApiKey(context(), acme.boundTo(one), mine.id)
    expect(await listNames()).toEqual(['free'])
  })
})
