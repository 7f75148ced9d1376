import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { refresh } from '../../../src/auth/log-in.ts'
import type { Caller } from '../../../src/domain/access.ts'
import { changeOwnPassword, endOwnSession, listOwnSessions } from '../../../src/tenancy/me.ts'
import { useEach } from '../../support/use.ts'
import { ADDRESS, ALL, anOrganization, EMAIL, PASSWORD, START, tokensOf, useOrganization } from '../auth/fixtures.ts'

const NEW = 'another long password'

const { test, clock, organization: acme, context, ...own } = useOrganization()
const ann = useEach(() => acme.addUser(EMAIL, 'read'))

const enter = (password = PASSWORD) => own.enter({ password })
/** A log-in, and the caller that its access token stands for. */
async function session(): Promise<{ caller: Caller; refreshToken: string }> {
  const { accessToken, refreshToken } = await enter()
  const { sessionId } = await tokensOf(clock).verifyAccessToken(accessToken)
  return { caller: { ...ann.caller, sessionId }, refreshToken }
}
const renew = (refreshToken: string) => refresh(context(), tokensOf(clock), { refreshToken, address: '192.0.2.2' })
const change = (caller: Caller, currentPassword = PASSWORD, newPassword = NEW) =>
  changeOwnPassword(context(), caller, { currentPassword, newPassword, address: ADDRESS })
const list = async (caller: Caller) => (await listOwnSessions(context(), caller, ALL)).rows

describe('changing the own password', () => {
  it('takes the new one from now on, and ends all other sessions with their refresh tokens', async () => {
    const [here, elsewhere] = [await session(), await session()]
    await change(here.caller)
    expect(await enter(NEW)).toMatchObject({ expiresIn: 900 })
    await expect(enter()).rejects.toMatchObject({ code: 'unauthenticated' })
    expect(await renew(here.refreshToken)).toMatchObject({ expiresIn: 900 })
    await expect(renew(elsewhere.refreshToken)).rejects.toMatchObject({ code: 'unauthenticated' })
    expect((await list(here.caller)).map(({ id }) => id)).not.toContain(elsewhere.caller.sessionId)
  })

  it('ends all sessions with a token that has none', async () => {
    await session()
    await change(ann.caller)
    expect(await list(ann.caller)).toEqual([])
  })

  it('rejects a wrong current password, and counts it as a failed log-in', async () => {
    const { caller } = await session()
    const wrong = { code: 'forbidden', message: 'the current password is wrong' }
    for (let attempt = 1; attempt <= 9; attempt += 1)
      await expect(change(caller, 'wrong horse battery')).rejects.toMatchObject(wrong)
    await expect(enter('wrong horse battery')).rejects.toMatchObject({ code: 'unauthenticated' })
    await expect(change(caller)).rejects.toMatchObject({ code: 'too_many_requests' })
    await expect(enter()).rejects.toMatchObject({ code: 'too_many_requests' })
  })

  it('rejects a new password that breaks a rule, before anything is counted', async () => {
    const { caller } = await session()
    for (const password of ['short', 'password1234', 'Ann@example.com'])
      await expect(change(caller, 'wrong', password)).rejects.toMatchObject({
        code: 'invalid_request',
        field: 'newPassword',
      })
    const { rows } = await test.database.query('select from login_failures where cardinality(failed_at) > 0')
    expect(rows).toEqual([])
  })

  it('succeeds for one of two at the same time', async () => {
    const { caller } = await session()
    const outcomes = await Promise.allSettled([change(caller), change(caller, PASSWORD, 'a third long password')])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'forbidden' })
  })

  it('leaves no session of a log-in with the old password at the same time', async () => {
    let [password, next] = [PASSWORD, NEW]
    for (let round = 1; round <= 6; round += 1) {
      const { accessToken } = await enter(password)
      const { sessionId } = await tokensOf(clock).verifyAccessToken(accessToken)
      const caller = { ...ann.caller, sessionId }
      const [changed, entered] = await Promise.allSettled([change(caller, password, next), enter(password)])
      expect(changed.status).toBe('fulfilled')
      if (entered.status === 'rejected') expect(entered.reason).toMatchObject({ code: 'unauthenticated' })
      // A log-in that came first was ended, one that came later failed.
      expect((await list(caller)).map(({ id }) => id)).toEqual([sessionId])
      ;[password, next] = [next, password]
    }
  })
})

describe('the own sessions', () => {
  it('are listed with their kind, times, address, and which is the current one', async () => {
    const first = await session()
    clock.time = START + 1_000
    const second = await session()
    clock.time = START + 2_000
    await renew(first.refreshToken)
    await (await anOrganization(test.database, 'other')).addUser('other@example.com')
    const shared = { kind: 'token' } as const
    expect(await list(second.caller)).toEqual([
      {
        ...shared,
        id: first.caller.sessionId,
        createdAt: START,
        lastUsedAt: START + 2_000,
        address: '192.0.2.2',
        isCurrent: false,
      },
      {
        ...shared,
        id: second.caller.sessionId,
        createdAt: START + 1_000,
        lastUsedAt: START + 1_000,
        address: ADDRESS,
        isCurrent: true,
      },
    ])
    const page = await listOwnSessions(context(), second.caller, { limit: 1, after: null })
    expect((await listOwnSessions(context(), second.caller, { limit: 1, after: page.next })).rows).toHaveLength(1)
    clock.time = START + 30 * 86_400_000 + 1_000
    expect((await list(second.caller)).map(({ id }) => id)).toEqual([first.caller.sessionId])
  })

  it('can be ended one by one, also the current one', async () => {
    const [one, two] = [await session(), await session()]
    await endOwnSession(context(), one.caller, two.caller.sessionId!)
    await expect(renew(two.refreshToken)).rejects.toMatchObject({ code: 'unauthenticated' })
    await endOwnSession(context(), one.caller, one.caller.sessionId!)
    expect(await list(one.caller)).toEqual([])
  })

  it('of others are not found', async () => {
    const bob = await acme.addUser('bob@example.com')
    const { sessionId } = await acme.addSession(bob.id)
    for (const id of [sessionId, randomUUID(), "' or true --"])
      await expect(endOwnSession(context(), ann.caller, id)).rejects.toMatchObject({
        code: 'not_found',
        message: 'session not found',
      })
    expect(await list(bob.caller)).toHaveLength(1)
  })

  it('are forbidden for keys, as is the password', async () => {
    const forbidden = { code: 'forbidden', message: expect.stringMatching(/^an API key has no/) }
    await expect(list(acme.caller)).rejects.toMatchObject(forbidden)
    await expect(endOwnSession(context(), acme.caller, randomUUID())).rejects.toMatchObject(forbidden)
    await expect(change(acme.caller)).rejects.toMatchObject(forbidden)
  })
})
