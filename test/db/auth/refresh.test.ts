import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { logOut, refresh } from '../../../src/auth/log-in.ts'
import { pruneAged } from '../../../src/store/history/pruning.ts'
import { removeUser } from '../../../src/tenancy/users.ts'
import { DAY } from '../../support/builders.ts'
import { useEach } from '../../support/use.ts'
import { ADDRESS, EMAIL, START, tokensOf, useOrganization } from './fixtures.ts'

const UNUSABLE = {
  name: 'AppError',
  code: 'unauthenticated',
  message: 'the refresh token is unknown, expired or spent: log in again',
}

const { test, clock, organization, context, enter } = useOrganization()
const user = useEach(() => organization.addUser(EMAIL, 'write'))

const renew = (refreshToken: string) => refresh(context(), tokensOf(clock), { refreshToken, address: ADDRESS })
const leave = (refreshToken: string) => logOut(context(), { refreshToken, address: ADDRESS })
const countTokens = async () => (await test.database.query('select from refresh_tokens')).rowCount

describe('a refresh', () => {
  it('returns a new pair for a refresh token', async () => {
    const first = await enter()
    const of = await tokensOf(clock).verifyAccessToken(first.accessToken)
    expect(of).toEqual({ userId: user.id, sessionId: expect.any(String) })
    clock.time = START + 15 * 60_000
    const second = await renew(first.refreshToken)
    expect(second.refreshToken).not.toBe(first.refreshToken)
    expect(await tokensOf(clock).verifyAccessToken(second.accessToken)).toEqual(of)
    const third = await renew(second.refreshToken)
    expect(third.refreshToken).not.toBe(second.refreshToken)
  })

  it('with a spent token ends the whole family, and no other', async () => {
    const elsewhere = await enter()
    const first = await enter()
    const second = await renew(first.refreshToken)
    const third = await renew(second.refreshToken)
    await expect(renew(first.refreshToken)).rejects.toMatchObject(UNUSABLE)
    for (const { refreshToken } of [first, second, third]) {
      await expect(renew(refreshToken)).rejects.toMatchObject(UNUSABLE)
    }
    expect(await renew(elsewhere.refreshToken)).toMatchObject({ expiresIn: 900 })
  })

  it('succeeds for exactly one of many calls with the same token, and ends the family', async () => {
    const { refreshToken } = await enter()
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => renew(refreshToken)))
    const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
    expect(won).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject(UNUSABLE)
    await expect(renew(won[0]!.value.refreshToken)).rejects.toMatchObject(UNUSABLE)
    expect(await countTokens()).toBe(0)
  })

  it('leaves no token of a family that ends while another call adds one', async () => {
    for (let round = 1; round <= 10; round += 1) {
      const first = await enterFast()
      const second = await renew(first)
      // The thief's refresh of the new token beside the victim's of the spent one.
      const [thief] = await Promise.allSettled([renew(second.refreshToken), renew(first)])
      expect(await countTokens()).toBe(0)
      if (thief.status === 'fulfilled') {
        await expect(renew(thief.value.refreshToken)).rejects.toMatchObject(UNUSABLE)
      }
    }
  })

  it('is possible for thirty days, and each refresh extends that by thirty days', async () => {
    const first = await enter()
    clock.time = START + 30 * DAY - 1
    const second = await renew(first.refreshToken)
    clock.time += 30 * DAY
    await expect(renew(second.refreshToken)).rejects.toMatchObject(UNUSABLE)
    expect(await countTokens()).toBe(2)
  })

  it('is possible until ninety days after the log-in, when the access token ends too', async () => {
    const authenticate = createAuthenticate(context(), tokensOf(clock))
    let pair = await enter()
    for (const days of [29, 58, 87]) {
      clock.time = START + days * DAY
      pair = await renew(pair.refreshToken)
    }
    clock.time = START + 90 * DAY - 1
    const last = await renew(pair.refreshToken)
    expect(await authenticate(`Bearer ${last.accessToken}`, ADDRESS)).toMatchObject({ id: user.id })
    clock.time = START + 90 * DAY
    await expect(renew(last.refreshToken)).rejects.toMatchObject(UNUSABLE)
    await expect(authenticate(`Bearer ${last.accessToken}`, ADDRESS)).rejects.toMatchObject({
      code: 'unauthenticated',
      message: expect.stringContaining('a session that has ended'),
    })
    expect(await enter()).toMatchObject({ expiresIn: 900 })
  })

  it('rejects everything that is not a refresh token', async () => {
    const { accessToken } = await enter()
    for (const token of [accessToken, '', 'hbr_', `hbr_${'a'.repeat(43)}`, `hbr_${'a'.repeat(1_000_000)}`, 'a\u0000']) {
      await expect(renew(token)).rejects.toMatchObject(UNUSABLE)
    }
  })

  it('begins no transaction for an unknown token, nor does a log-out', async () => {
    const transaction = () => expect.unreachable('a transaction')
    const reading = { ...context(), database: { ...test.database, transaction } }
    const unknown = { refreshToken: `hbr_${'a'.repeat(43)}`, address: ADDRESS }
    await expect(refresh(reading, tokensOf(clock), unknown)).rejects.toMatchObject(UNUSABLE)
    await logOut(reading, unknown)
  })

  it('is rejected after the user was removed', async () => {
    const { refreshToken } = await enter()
    await removeUser(context(), organization.caller, user.id)
    await expect(renew(refreshToken)).rejects.toMatchObject(UNUSABLE)
  })

  it('at the same time as the removal of its user leaves no token', async () => {
    for (let round = 1; round <= 10; round += 1) {
      const one = await organization.addUser(`user-${round}@example.com`, 'read')
      const token = await enterFast(one.id)
      const [renewed] = await Promise.allSettled([renew(token), removeUser(context(), organization.caller, one.id)])
      if (renewed.status === 'rejected') expect(renewed.reason).toMatchObject(UNUSABLE)
      expect(await countTokens()).toBe(0)
    }
  })
})

describe('a log-out', () => {
  it('ends the family, whichever of its tokens is given, and no other', async () => {
    const elsewhere = await enter()
    const first = await enter()
    const second = await renew(first.refreshToken)
    await leave(first.refreshToken)
    await expect(renew(second.refreshToken)).rejects.toMatchObject(UNUSABLE)
    expect(await renew(elsewhere.refreshToken)).toMatchObject({ expiresIn: 900 })
  })

  it('is idempotent, and accepts an unknown token', async () => {
    const { refreshToken } = await enter()
    await leave(refreshToken)
    await leave(refreshToken)
    await leave('')
    await leave(`hbr_${'a'.repeat(43)}`)
    expect(await countTokens()).toBe(0)
  })

  it('at the same time as a refresh leaves no token', async () => {
    for (let round = 1; round <= 10; round += 1) {
      const token = await enterFast()
      await Promise.allSettled([renew(token), leave(token)])
      expect(await countTokens()).toBe(0)
    }
  })
})

describe('the pruning of expired refresh tokens', () => {
  it('deletes tokens after thirty days, spent or not, up to a limit, and no others', async () => {
    const spent = await enter()
    await enter()
    clock.time = START + DAY
    const good = await renew(spent.refreshToken)
    const forget = (limit: number) => pruneAged(test.database, 'refresh_tokens', clock.time + 1, limit)
    clock.time = START + 30 * DAY - 1
    expect(await forget(10)).toBe(0)
    clock.time = START + 30 * DAY
    expect([await forget(1), await forget(10), await forget(10)]).toEqual([1, 1, 0])
    expect(await renew(good.refreshToken)).toMatchObject({ expiresIn: 900 })
  })
})

/** A refresh token of a new family, as a log-in would make it, without its computation. */
async function enterFast(userId = user.id): Promise<string> {
  const token = `hbr_${randomBytes(32).toString('base64url')}`
  await test.database.query(
    `insert into refresh_tokens (token_hash, family_id, user_id, expires_at) values ($1, $2, $3, to_timestamp($4 / 1000.0))`,
    [createHash('sha256').update(token).digest(), randomUUID(), userId, START + DAY],
  )
  return token
}
