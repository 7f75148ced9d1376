/**
 * Sessions of people. A log-in starts a family of refresh tokens; each refresh spends one and adds the next. A spent token
 * that comes back means that two parties hold the family, and nobody can say which is the thief: it ends (RFC 9700, section 4.14.2).
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
import { hashPassword, isOutdatedHash, verifyPassword } from './passwords.ts'
import { createLoginTry } from './throttle.ts'
import { ACCESS_TOKEN_SECONDS, type Tokens } from './tokens.ts'

export interface TokenPair {
  readonly accessToken: string
  /** Of the access token. */
  readonly expiresInSeconds: number
  /** Good once, for thirty days; never good as an access token. */
  readonly refreshToken: string
}

const REFRESH_TOKEN_MS = 30 * 86_400_000
const REFRESH_TOKEN = /^hbr_[\w-]{43}$/

/**
 * `address`: where the caller calls from, for the throttle. Throws AppError `unauthenticated` for a wrong address and a wrong
 * password alike, text and time included; `too_many_requests` when throttled; `unavailable` when too many log in at once.
 */
export async function logIn(
  context: Context,
  tokens: Tokens,
  input: { readonly email: string; readonly password: string; readonly address: string },
): Promise<TokenPair> {
  const { database } = context
  const email = input.email.trim()
  const loginTry = createLoginTry(database, { email, address: input.address })
  // Whoever has no try left is told so before queueing for a computation.
  await loginTry.assertLeft()
  const user = isEmail(email) ? await findUserByEmail(database, email) : null
  const isRight = await verifyPassword(input.password, user?.passwordHash ?? null)
  // Before the outcome is told: of many tries under way at once, no more than are left learn theirs.
  await loginTry.take()
  if (user === null || !isRight) throw wrongLogin()
  await loginTry.forgive()
  if (isOutdatedHash(user.passwordHash)) {
    await renewPasswordHash(database, user.id, user.passwordHash, await hashPassword(input.password))
  }
  const now = context.clock.now()
  const familyId = newId(now)
  const refreshToken = await addRefreshToken(database, user, familyId, now)
  if (refreshToken === null) throw wrongLogin()
  return toPair(tokens, user, refreshToken)
}

/** Throws AppError `unauthenticated`; of two calls with the same token at most one gets a pair, and the family ends. */
export async function refresh(context: Context, tokens: Tokens, refreshToken: string): Promise<TokenPair> {
  if (!REFRESH_TOKEN.test(refreshToken)) throw unusableToken()
  const now = context.clock.now()
  // Ending the family must be committed, so a refusal is a result here and thrown outside.
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

/** Ends the family of a refresh token, whichever of its tokens it is. Idempotent; an unknown token is no error. */
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
