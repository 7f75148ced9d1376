import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { lockOrganization } from '../../../src/store/tenancy/organizations.ts'
import { deleteUser } from '../../../src/store/tenancy/users.ts'
import { createApiKey, revokeApiKey } from '../../../src/tenancy/api-keys.ts'
import { describeCaller } from '../../../src/tenancy/me.ts'
import { createUser, listUsers, removeUser, updateUser } from '../../../src/tenancy/users.ts'
import { untilWaiting } from '../../support/database.ts'
import { useEach } from '../../support/use.ts'
import { ALL, anOrganization, PASSWORD, START, useOrganization } from '../auth/fixtures.ts'

const NOT_FOUND = { name: 'AppError', code: 'not_found', message: 'user not found' }
const LAST_ADMIN = {
  name: 'AppError',
  code: 'last_admin',
  message: expect.stringContaining('this is the last admin of the organization'),
}

const { test, clock, organization: acme, context, enter } = useOrganization()
const other = useEach(() => anOrganization(test.database, 'other'))

const create = (input: { email?: string; password?: string } = {}, caller = acme.caller) =>
  createUser(context(), caller, { email: 'ann@example.com', password: PASSWORD, scope: 'write', ...input })
const listEmails = async (caller = acme.caller) =>
  (await listUsers(context(), caller, ALL)).rows.map(({ email }) => email)

describe('creating a user', () => {
  it('creates a user who can log in', async () => {
    const user = await create({ email: ' Ann@example.com ' })
    expect(user).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{14}7/),
      email: 'ann@example.com',
      scope: 'write',
      createdAt: START,
      createdBy: { kind: 'api_key', id: acme.caller.id, name: 'test' },
    })
    expect((await listUsers(context(), acme.caller, ALL)).rows).toEqual([user])
    expect(await enter({ email: 'ann@example.com' })).toMatchObject({ expiresIn: 900 })
  })

  it('rejects an address that has an account, without regard to case, with one text for each organization', async () => {
    await other.addUser('Ann@Example.com')
    await acme.addUser('bob@example.com')
    for (const email of ['ann@example.com', 'BOB@example.com']) {
      await expect(create({ email })).rejects.toMatchObject({
        code: 'conflict',
        message: 'this e-mail address cannot be used for a user: give another one',
      })
    }
    expect(await listEmails()).toEqual(['bob@example.com'])
  })

  it('is forbidden for a key that expires', async () => {
    const expiring = { ...acme.caller, expiresAt: START + 1 }
    const forbidden = { code: 'forbidden', message: expect.stringContaining('an API key that expires may not') }
    await expect(create({}, expiring)).rejects.toMatchObject(forbidden)
    const { id } = await create()
    await expect(updateUser(context(), expiring, id, { scope: 'admin' })).rejects.toMatchObject(forbidden)
  })

  it('succeeds for one of two calls at the same time with the same address', async () => {
    const outcomes = await Promise.allSettled([create(), create({ email: 'ANN@example.com' })])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await listEmails()).toHaveLength(1)
  })

  it.each(['ann', 'adm\u0130n@example.com', 'ann@m\u00fcller.example'])(
    'is refused for the address %j',
    async (email) => {
      const refused = { code: 'invalid_request', field: 'email', message: 'must be an e-mail address' }
      await expect(create({ email })).rejects.toMatchObject(refused)
    },
  )

  it.each([
    ['hunter2', 'must be text of 12 to 200 characters'],
    ['x'.repeat(201), 'must be text of 12 to 200 characters'],
    ['Password1234', 'is one of the most common passwords: choose another, such as four random words'],
    ['ann@EXAMPLE.com', 'must not be the e-mail address'],
  ])('rejects the password %j without showing it', async (password, message) => {
    await expect(create({ password })).rejects.toMatchObject({ code: 'invalid_request', message, field: 'password' })
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

  it('allows to remove the last user of an organization that has an admin key, and then not that key', async () => {
    const ann = await acme.addUser('ann@example.com')
    const key = (name: string, fields: object = {}) =>
      createApiKey(context(), acme.caller, { name, scope: 'admin', ...fields })
    const bound = await key('bound', { projectId: await acme.addProject('one') })
    const short = await key('short', { expiresAt: START + 1_000 })
    for (const at of [START, START + 1_000]) {
      clock.time = at
      await expect(removeUser(context(), acme.caller, ann.id), 'nor do bound keys').rejects.toMatchObject(LAST_ADMIN)
    }
    await revokeApiKey(context(), acme.caller, short.id)
    await revokeApiKey(context(), acme.caller, bound.id)
    const last = await key('last')
    await removeUser(context(), acme.caller, ann.id)
    await expect(revokeApiKey(context(), acme.caller, last.id)).rejects.toMatchObject(LAST_ADMIN)
  })

  it('leaves one admin when a user and a key are removed at the same time', async () => {
    const ann = await acme.addUser('ann@example.com')
    const key = await createApiKey(context(), acme.caller, { name: 'ci', scope: 'admin' })
    const revoking = await test.database.transaction(async (tx) => {
      await lockOrganization(tx, acme.id)
      const outcome = revokeApiKey(context(), acme.caller, key.id).catch((error) => error)
      await untilWaiting(test, 1)
      await deleteUser(tx, acme.id, ann.id)
      return { outcome }
    })
    expect(await revoking.outcome).toMatchObject(LAST_ADMIN)
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

  it('does not count an admin key that expires', async () => {
    const ann = await acme.addUser('ann@example.com')
    const admin = { name: 'admin', scope: 'admin' } as const
    const brief = await createApiKey(context(), acme.caller, { ...admin, expiresAt: clock.now() + 60_000 })
    await expect(removeUser(context(), acme.caller, ann.id)).rejects.toMatchObject(LAST_ADMIN)
    await expect(updateUser(context(), acme.caller, ann.id, { scope: 'read' })).rejects.toMatchObject(LAST_ADMIN)
    const lasting = await createApiKey(context(), acme.caller, admin)
    await removeUser(context(), acme.caller, ann.id)
    await expect(revokeApiKey(context(), acme.caller, lasting.id)).rejects.toMatchObject(LAST_ADMIN)
    await revokeApiKey(context(), acme.caller, brief.id)
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

describe('changing a user', () => {
  const change = (id: string, fields: Parameters<typeof updateUser>[3], caller = acme.caller) =>
    updateUser(context(), caller, id, fields)

  it('sets the scope and the password, and keeps what is not given', async () => {
    const ann = await acme.addUser('ann@example.com', 'read')
    expect(await change(ann.id, { scope: 'write' })).toMatchObject({ id: ann.id, email: ann.email, scope: 'write' })
    expect(await change(ann.id, { password: 'another long password' })).toMatchObject({ scope: 'write' })
    expect(await enter({ password: 'another long password' })).toMatchObject({ expiresIn: 900 })
    expect(await change(ann.id, {})).toMatchObject({ scope: 'write' })
  })

  it('ends the sessions of the user with a password, and no others', async () => {
    const [ann, bob] = [await acme.addUser('ann@example.com'), await acme.addUser('bob@example.com')]
    for (const { id } of [ann, ann, bob]) await acme.addSession(id)
    const sessions = async () =>
      (await test.database.query<{ user: string }>('select user_id as user from sessions')).rows.map(({ user }) => user)
    await change(ann.id, { scope: 'read' })
    expect(await sessions()).toHaveLength(3)
    await change(ann.id, { password: 'another long password' })
    expect(await sessions()).toEqual([bob.id])
  })

  it('rejects a password that breaks a rule', async () => {
    const ann = await acme.addUser('ann@example.com')
    for (const password of ['short', 'password1234', 'ann@example.com'])
      await expect(change(ann.id, { password })).rejects.toMatchObject({ code: 'invalid_request', field: 'password' })
  })

  it('leaves the last admin its scope', async () => {
    const [ann, bob] = [await acme.addUser('ann@example.com'), await acme.addUser('bob@example.com')]
    const outcomes = await Promise.allSettled([change(ann.id, { scope: 'read' }), change(bob.id, { scope: 'read' })])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(LAST_ADMIN)
    expect((await listUsers(context(), acme.caller, ALL)).rows.map(({ scope }) => scope).sort()).toEqual([
      'admin',
      'read',
    ])
  })

  it('throws not_found for an unknown, foreign or malformed id, forbidden for a bound caller', async () => {
    const foreign = await other.addUser('foreign@example.com', 'read')
    for (const id of [foreign.id, randomUUID(), "' or true --"])
      await expect(change(id, { scope: 'admin' })).rejects.toMatchObject(NOT_FOUND)
    const bound = acme.boundTo(await acme.addProject('one'))
    await expect(change(foreign.id, {}, bound)).rejects.toMatchObject({ code: 'forbidden' })
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
