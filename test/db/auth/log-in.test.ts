import { describe, expect, it } from 'vitest'
import { logIn } from '../../../src/auth/log-in.ts'
import { hashPassword } from '../../../src/auth/passwords.ts'
import { LOW_COST } from '../../support/passwords.ts'
import { useEach } from '../../support/use.ts'
import { EMAIL, PASSWORD, tokensOf, useOrganization } from './fixtures.ts'

const WRONG = { name: 'AppError', code: 'unauthenticated', message: 'wrong e-mail address or password' }

const { test, clock, organization, context, enter } = useOrganization()
const user = useEach(() => organization.addUser(EMAIL, 'write'))

const countTokens = async () => (await test.database.query('select from refresh_tokens')).rowCount

describe('a log-in', () => {
  it('gives a pair of tokens', async () => {
    const pair = await enter()
    expect(pair).toEqual({
      accessToken: expect.any(String),
      tokenType: 'Bearer',
      expiresIn: 900,
      refreshToken: expect.stringMatching(/^hbr_[\w-]{43}$/),
    })
    expect(await tokensOf(clock).verifyAccessToken(pair.accessToken)).toEqual({
      userId: user.id,
      sessionId: expect.any(String),
    })
  })

  it('ignores case and blanks around the address', async () => {
    expect(await enter({ email: ' aNN@EXAMPLE.com ' })).toMatchObject({ expiresIn: 900 })
  })

  it('lower-cases as the database does: İ is no i', async () => {
    await organization.addUser('ali@example.com')
    const notAscii = {
      code: 'invalid_request',
      field: 'email',
      message: expect.stringContaining('of ASCII characters'),
    }
    await expect(enter({ email: 'al\u0130@example.com' })).rejects.toMatchObject(notAscii)
  })

  it('begins no session with a password that was replaced, or of a user who was removed, meanwhile', async () => {
    const stale = async (change: string) => {
      const { database } = test
      const transaction: typeof database.transaction = async (work) => {
        await database.query(change)
        return database.transaction(work)
      }
      const login = { email: EMAIL, password: PASSWORD, address: '192.0.2.1' }
      return logIn({ ...context(), database: { ...database, transaction } }, tokensOf(clock), login)
    }
    await expect(stale(`update users set password_hash = password_hash || 'x'`)).rejects.toMatchObject(WRONG)
    await test.database.query(`update users set password_hash = rtrim(password_hash, 'x')`)
    await expect(stale('delete from users')).rejects.toMatchObject(WRONG)
    expect(await countTokens()).toBe(0)
  })

  it('rejects a wrong password, an unknown address and a malformed one in the same way', async () => {
    await expect(enter({ password: 'wrong horse battery' })).rejects.toMatchObject(WRONG)
    await expect(enter({ password: '' })).rejects.toMatchObject(WRONG)
    await expect(enter({ password: 'x'.repeat(65_000) })).rejects.toMatchObject(WRONG)
    await expect(enter({ email: 'bob@example.com' })).rejects.toMatchObject(WRONG)
    await expect(enter({ email: '' })).rejects.toMatchObject(WRONG)
    await expect(enter({ email: 'a\u0000@example.com' })).rejects.toMatchObject(WRONG)
    await expect(enter({ email: `${'x'.repeat(60_000)}@example.com` })).rejects.toMatchObject(WRONG)
    expect(await countTokens()).toBe(0)
  })

  it('stores neither of the tokens', async () => {
    const { accessToken, refreshToken } = await enter()
    const { rows } = await test.database.query<{ row: string }>('select t::text as row from refresh_tokens t')
    expect(rows).toHaveLength(1)
    expect(rows[0]!.row).not.toContain(refreshToken)
    expect(rows[0]!.row).not.toContain(accessToken)
  })

  it('renews a hash that was made at a lower cost', async () => {
    const stored = await hashPassword(PASSWORD, LOW_COST)
    // At the cost of the service.
    const enter = (password: string) =>
      logIn({ database: test.database, clock }, tokensOf(clock), {
        email: 'old@example.com',
        password,
        address: '192.0.2.1',
      })
    await organization.addUser('old@example.com', 'read', stored)
    const readHash = async () => {
      const { rows } = await test.database.query<{ hash: string }>(
        `select password_hash as hash from users where email = 'old@example.com'`,
      )
      return rows[0]!.hash
    }
    await expect(enter('wrong horse battery')).rejects.toMatchObject(WRONG)
    expect(await readHash()).toBe(stored)
    await enter(PASSWORD)
    const renewed = await readHash()
    expect(renewed).toMatch(/^scrypt\$15\$8\$3\$/)
    await enter(PASSWORD)
    expect(await readHash()).toBe(renewed)
  })
})
