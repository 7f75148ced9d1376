import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { logIn } from '../../../src/auth/log-in.ts'
import { describeCaller } from '../../../src/tenancy/me.ts'
import { createUser, listUsers, removeUser } from '../../../src/tenancy/users.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { anOrganization, manualClock, PASSWORD, START, tokensOf } from '../auth/fixtures.ts'

const ALL = { limit: 100, after: null }
const NOT_FOUND = { name: 'AppError', code: 'not_found', message: 'user not found' }
const LAST_ADMIN = {
  name: 'AppError',
  code: 'conflict',
  message: expect.stringContaining('the last user with the scope admin'),
}

let test: TestDatabase
let clock: ReturnType<typeof manualClock>
let acme: Awaited<ReturnType<typeof anOrganization>>
let other: Awaited<ReturnType<typeof anOrganization>>

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.clear()
  clock = manualClock()
  acme = await anOrganization(test.database)
  other = await anOrganization(test.database, 'other')
})

const context = () => ({ database: test.database, clock })
const create = (input: { email?: string; password?: string } = {}, caller = acme.caller) =>
  createUser(context(), caller, { email: 'ann@example.com', password: PASSWORD, scope: 'write', ...input })
const listEmails = async (caller = acme.caller) =>
  (await listUsers(context(), caller, ALL)).rows.map(({ email }) => email)

describe('creating a user', () => {
  it('creates a user who can log in', async () => {
    const user = await create({ email: ' Ann@example.com ' })
    expect(user).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{14}7/),
      email: 'Ann@example.com',
      scope: 'write',
      createdAt: START,
    })
    expect((await listUsers(context(), acme.caller, ALL)).rows).toEqual([user])
    const login = { email: 'ann@example.com', password: PASSWORD, address: '192.0.2.1' }
    expect(await logIn(context(), tokensOf(clock), login)).toMatchObject({ expiresInSeconds: 900 })
  })

  it('rejects an address that has an account, without regard to case, in any organization', async () => {
    await other.addUser('Ann@Example.com')
    await expect(create()).rejects.toMatchObject({
      code: 'conflict',
      message: 'a user with this e-mail address exists already',
    })
    expect(await listEmails()).toEqual([])
  })

  it('succeeds for one of two calls at the same time with the same address', async () => {
    const outcomes = await Promise.allSettled([create(), create({ email: 'ANN@example.com' })])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await listEmails()).toHaveLength(1)
  })

  it.each([
    '',
    'ann',
    'ann@',
    '@example.com',
    'a b@example.com',
    'a\u0000@example.com',
    `${'a'.repeat(250)}@example.com`,
  ])('is refused for the address %j', async (email) => {
    const refused = { code: 'invalid', field: 'email', message: 'must be an e-mail address' }
    await expect(create({ email })).rejects.toMatchObject(refused)
  })

  it.each(['hunter2', 'x'.repeat(201), ''])('rejects the password %j without showing it', async (password) => {
    const message = 'must have 8 to 200 characters'
    const refused = { code: 'invalid', message, field: 'password' }
    await expect(create({ password })).rejects.toMatchObject(refused)
  })

  it('is forbidden for a caller that is bound to a project', async () => {
    const bound = acme.boundTo(await acme.addProject('one'))
    await expect(create({}, bound)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(listUsers(context(), bound, ALL)).rejects.toMatchObject({ code: 'forbidden' })
    await expect(removeUser(context(), bound, randomUUID())).rejects.toMatchObject({ code: 'forbidden' })
  })
})

describe('listing users', () => {
  it('returns the users of the organization, page by page', async () => {
    for (const name of ['one', 'two', 'three']) await acme.addUser(`${name}@example.com`, 'read')
    await other.addUser('foreign@example.com')
    const first = await listUsers(context(), acme.caller, { limit: 2, after: null })
    const second = await listUsers(context(), acme.caller, { limit: 2, after: first.next })
    const emails = [...first.rows, ...second.rows].map(({ email }) => email)
    expect(emails.sort()).toEqual(['one@example.com', 'three@example.com', 'two@example.com'])
    expect([first.rows.length, second.rows.length, second.next]).toEqual([2, 1, null])
  })
})

describe('removing a user', () => {
  it('removes a user', async () => {
    const ann = await acme.addUser('ann@example.com', 'write')
    await removeUser(context(), acme.caller, ann.id)
    expect(await listEmails()).toEqual([])
    await expect(removeUser(context(), acme.caller, ann.id)).rejects.toMatchObject(NOT_FOUND)
    await expect(describeCaller(context(), ann.caller)).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  it('allows to remove oneself, but not the last admin', async () => {
    const ann = await acme.addUser('ann@example.com')
    const bob = await acme.addUser('bob@example.com')
    await acme.addUser('eve@example.com', 'write')
    await other.addUser('foreign@example.com')
    await removeUser(context(), ann.caller, ann.id)
    await expect(removeUser(context(), bob.caller, bob.id)).rejects.toMatchObject(LAST_ADMIN)
    await expect(removeUser(context(), acme.caller, bob.id)).rejects.toMatchObject(LAST_ADMIN)
    expect(await listEmails()).toEqual(expect.arrayContaining(['bob@example.com', 'eve@example.com']))
  })

  it('leaves one of two admins who remove each other at the same time', async () => {
    for (let round = 1; round <= 10; round += 1) {
      const organization = await anOrganization(test.database, `round ${round}`)
      const ann = await organization.addUser(`ann-${round}@example.com`)
      const bob = await organization.addUser(`bob-${round}@example.com`)
      const outcomes = await Promise.allSettled([
        removeUser(context(), ann.caller, bob.id),
        removeUser(context(), bob.caller, ann.id),
      ])
      expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(LAST_ADMIN)
      expect(await listEmails(organization.caller)).toHaveLength(1)
    }
  })

  it('throws not_found for an unknown, foreign or malformed id', async () => {
    const foreign = await other.addUser('foreign@example.com', 'read')
    for (const id of [foreign.id, randomUUID(), 'foreign@example.com', '', "' or true --"]) {
      await expect(removeUser(context(), acme.caller, id)).rejects.toMatchObject(NOT_FOUND)
    }
    expect(await listEmails(other.caller)).toEqual(['foreign@example.com'])
  })
})

describe('describing the caller', () => {
  it('names the organization and the user', async () => {
    const ann = await acme.addUser('ann@example.com', 'read')
    expect(await describeCaller(context(), ann.caller)).toEqual({
      kind: 'user',
      organization: { id: acme.id, name: 'acme' },
      user: { id: ann.id, email: 'ann@example.com' },
      scope: 'read',
      projectId: null,
    })
  })

  it('names for a key the project that it is bound to, and no user', async () => {
    const projectId = await other.addProject('one')
    expect(await describeCaller(context(), other.boundTo(projectId))).toEqual({
      kind: 'api_key',
      organization: { id: other.id, name: 'other' },
      user: null,
      scope: 'admin',
      projectId,
    })
  })
})
