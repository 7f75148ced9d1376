/**
 * Sessions of users. A log-in starts a family of refresh tokens; each refresh spends one token and adds the next. When a spent
 * token is used again, two parties have the family and the thief cannot be told from the user: the family ends (RFC 9700,
 * section 4.14.2).
 */

import { createHash, randomBytes } from 'node:crypto'
import type { Instant } from '../domain/check.ts'
import { isEmail } from '../domain/email.ts'
import { AppError } from '../domain/errors.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { deleteFamily, insertRefreshToken, lockFamily, spendRefreshToken } from '../store/tenancy/refresh-tokens.ts'
import { findUserByEmail, type KnownUser, renewPasswordHash } from '../store/tenancy/users.ts'
import { COST, type Cost, hashPassword, isOutdatedHash, verifyPassword } from './passwords.ts'
import { createLoginTry } from './throttle.ts'
import { ACCESS_TOKEN_SECONDS, type Tokens } from './tokens.ts'

export interface TokenPair {
  readonly accessToken: string
  /** Lifetime of the access token. */
  readonly expiresInSeconds: number
  /** Can be used once, within thirty days, and not as an access token. */
  readonly refreshToken: string
}

const REFRESH_TOKEN_MS = 30 * 86_400_000
const REFRESH_TOKEN = /^hbr_[\w-]{43}$/

/**
 * `address`: the caller's network address, for the throttle. `cost`: of password hashes; tests use a lower one. Throws AppError
 * `unauthenticated` for an unknown e-mail address and for a wrong password, with the same text after the same time;
 * `too_many_requests` when throttled; `unavailable` when too many log in at once.
 */
export async function logIn(
  context: Context,
  tokens: Tokens,
  input: { readonly email: string; readonly password: string; readonly address: string },
  cost: Cost = COST,
): Promise<TokenPair> {
  const { database } = context
  const email = input.email.trim()
  const loginTry = createLoginTry(database, { email, address: input.address })
  // A throttled caller is rejected before it waits for the computation of the hash.
  await loginTry.assertLeft()
  const user = isEmail(email) ? await findUserByEmail(database, email) : null
  const isRight = await verifyPassword(input.password, user?.passwordHash ?? null, cost)
  // Before the outcome is returned: of many tries at the same time, only as many as are left learn their outcome.
  await loginTry.take()
  if (user === null || !isRight) throw wrongLogin()
  await loginTry.forgive()
  if (isOutdatedHash(user.passwordHash, cost)) {
    await renewPasswordHash(database, user.id, user.passwordHash, await hashPassword(input.password, cost))
  }
  const now = context.clock.now()
  const familyId = newId(now)
  const refreshToken = await addRefreshToken(database, user, familyId, now)
  if (refreshToken === null) throw wrongLogin()
  return toPair(tokens, user, refreshToken)
}

/** Throws AppError `unauthenticated`. Of two calls with the same token at most one gets a pair, and the family ends. */
export async function refresh(context: Context, tokens: Tokens, refreshToken: string): Promise<TokenPair> {
  if (!REFRESH_TOKEN.test(refreshToken)) throw unusableToken()
  const now = context.clock.now()
  // The end of the family must be committed, so the error is thrown after the transaction.
  const renewed = await context.database.transaction(async (tx) => {
    const family = await lockFamily(tx, hashToken(refreshToken))
    if (family === null) return null
    const outcome = await spendRefreshToken(tx, hashToken(refreshToken), now)
    if (outcome === 'spent before') await deleteFamily(tx, family.familyId)
    if (outcome !== 'spent now') return null
    const next = await addRefreshToken(tx, family.user, family.familyId, now)
    return next === null ? null : { user: family.user, refreshToken: next }
  })
  if (renewed === null) throw unusableToken()
  return toPair(tokens, renewed.user, renewed.refreshToken)
}

/** Ends the family of a refresh token, whichever of its tokens it is. Idempotent; an unknown token is not an error. */
export async function logOut(context: Pick<Context, 'database'>, refreshToken: string): Promise<void> {
  if (!REFRESH_TOKEN.test(refreshToken)) return
  await context.database.transaction(async (tx) => {
    const family = await lockFamily(tx, hashToken(refreshToken))
    if (family !== null) await deleteFamily(tx, family.familyId)
  })
}

/** Null when the user has been removed meanwhile. */
async function addRefreshToken(db: Queryable, user: KnownUser, familyId: string, now: Instant): Promise<string | null> {
  const token = `hbr_${randomBytes(32).toString('base64url')}`
  const row = { hash: hashToken(token), familyId, userId: user.id, expiresAt: now + REFRESH_TOKEN_MS, createdAt: now }
  return (await insertRefreshToken(db, row)) ? token : null
}

async function toPair(tokens: Tokens, user: KnownUser, refreshToken: string): Promise<TokenPair> {
  return { accessToken: await tokens.issueAccessToken(user), expiresInSeconds: ACCESS_TOKEN_SECONDS, refreshToken }
}

/** A fast hash is enough: 256 random bits cannot be guessed. */
function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function wrongLogin(): AppError {
  return new AppError('unauthenticated', 'wrong e-mail address or password')
}

function unusableToken(): AppError {
  return new AppError('unauthenticated', 'the refresh token is unknown, expired or spent: log in again')
}
