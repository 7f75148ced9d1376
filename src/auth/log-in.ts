/**
 * Sessions of users. A log-in begins a session with a family of refresh tokens; each refresh spends one token and adds the next. When a spent
 * token is used again, two parties have the family and the thief cannot be distinguished from the user: the session ends (RFC 9700, section 4.14.2).
 */

import { createHash, randomBytes } from 'node:crypto'
import { audited } from '../audit/audited.ts'
import type { Instant } from '../domain/check.ts'
import { ASCII_EMAIL_RULE, isAscii } from '../domain/email.ts'
import { AppError, invalidField } from '../domain/errors.ts'
import { addressGroup } from '../runtime/addresses.ts'
import { newId } from '../runtime/ids.ts'
import { createFindInTurn } from '../store/ask-in-turn.ts'
import type { Context } from '../store/context.ts'
import type { Database, Queryable } from '../store/postgres/database.ts'
import { noteLoginAddress } from '../store/tenancy/login-addresses.ts'
import {
  findRefreshTokens,
  insertRefreshToken,
  lockFamily,
  spendRefreshToken,
} from '../store/tenancy/refresh-tokens.ts'
import { boundSessions, deleteSession, saveSession } from '../store/tenancy/sessions.ts'
import { type KnownUser, replacePasswordHash } from '../store/tenancy/users.ts'
import { actOnAccount, actorOf } from './acts.ts'
import { checkPassword, type PasswordAttempt } from './check-password.ts'
import { hashPassword, isOutdatedHash } from './passwords.ts'
import { tooManyFailures } from './throttle.ts'
import { ACCESS_TOKEN_SECONDS, type AccessTokenOf, type Tokens } from './tokens.ts'

export interface TokenPair {
  readonly accessToken: string
  /** Lifetime of the access token. */
  readonly expiresInSeconds: number
  /** Can be used once, within thirty days and ninety days after the log-in, and not as an access token. */
  readonly refreshToken: string
}

/** A refresh token and the client's network address. */
export interface RefreshRequest {
  readonly refreshToken: string
  readonly address: string
}

const REFRESH_TOKEN_MS = 30 * 86_400_000
const REFRESH_TOKEN = /^hbr_[\w-]{43}$/

/**
 * Throws AppError `unauthenticated` for an unknown e-mail address and for a wrong password,
 * with the same text after the same time, `invalid` instead if the address has characters beyond ASCII; `too_many_requests` when throttled;
 * `unavailable` when too many log in at once.
 */
export async function logIn(context: Context, tokens: Tokens, attempt: PasswordAttempt): Promise<TokenPair> {
  const session = await enter(context, attempt, async (tx, user, now) => {
    const begun = await addRefreshToken(tx, { userId: user.id, sessionId: newId(now) }, attempt.address, now)
    await boundSessions(tx, user.id, now)
    return begun
  })
  return toPair(tokens, session)
}

/**
 * A log-in by password: `begin` runs in the transaction that judges the password, which also adds the audit entry. Throws as logIn does.
 */
export async function enter<T>(
  context: Context,
  attempt: PasswordAttempt,
  begin: (tx: Queryable, user: KnownUser, now: Instant) => Promise<T>,
): Promise<T> {
  const { address, password } = attempt
  const outcome = await checkPassword(context, attempt, async (tx, user, now) => {
    await noteLoginAddress(tx, user.id, addressGroup(address), now)
    const session = await begin(tx, user, now)
    return { result: { user, session }, acts: [actOnAccount(user, 'login.succeeded')] }
  })
  if (outcome.kind === 'throttled') throw tooManyFailures(outcome.waitMs)
  if (outcome.kind === 'wrong') throw isAscii(attempt.email) ? wrongLogin() : invalidField('email', ASCII_EMAIL_RULE)
  const { user, session } = outcome.result
  if (isOutdatedHash(user.passwordHash, context.passwordCost)) {
    const hash = await hashPassword(password, context.passwordCost, [user.id])
    await replacePasswordHash(context.database, user.id, user.passwordHash, hash)
  }
  return session
}

/** Throws AppError `unauthenticated`. Of two calls with the same token at most one gets a pair, and the session ends. */
export async function refresh(
  context: Context,
  tokens: Tokens,
  { refreshToken, address }: RefreshRequest,
): Promise<TokenPair> {
  if (!(await isKnown(context, refreshToken))) throw unusableToken()
  const now = context.clock.now()
  // The end of the session must be committed, so the error is thrown after the transaction.
  const renewed = await audited<Renewed | null>(context, actorOf(null, address), async (tx) => {
    const family = await lockFamily(tx, hashToken(refreshToken))
    if (family === null) return { result: null, acts: [] }
    const { familyId: sessionId, user } = family
    const outcome = await spendRefreshToken(tx, hashToken(refreshToken), now)
    if (outcome === 'spent before') {
      await deleteSession(tx, user.id, sessionId)
      return { result: null, acts: [actOnAccount(user, 'refresh.replayed')], by: actorOf(user, address) }
    }
    if (outcome !== 'spent now') return { result: null, acts: [] }
    return { result: await addRefreshToken(tx, { userId: user.id, sessionId }, address, now), acts: [] }
  })
  if (renewed === null) throw unusableToken()
  return toPair(tokens, renewed)
}

/** Ends the session of a refresh token, whichever of its tokens it is. Idempotent; an unknown token is not an error. */
export async function logOut(context: Context, { refreshToken, address }: RefreshRequest): Promise<void> {
  if (!(await isKnown(context, refreshToken))) return
  await audited(context, actorOf(null, address), async (tx) => {
    const family = await lockFamily(tx, hashToken(refreshToken))
    if (family === null) return { result: undefined, acts: [] }
    const { user, familyId } = family
    const hasEnded = await deleteSession(tx, user.id, familyId)
    return { result: undefined, acts: hasEnded ? [actOnAccount(user, 'logout')] : [], by: actorOf(user, address) }
  })
}

/** Strangers cause these look-ups: all requests to one database share one queue. */
const finders = new WeakMap<Database, ReturnType<typeof createFindInTurn<true>>>()

async function isKnown({ database }: Context, refreshToken: string): Promise<boolean> {
  if (!REFRESH_TOKEN.test(refreshToken)) return false
  const find = finders.get(database) ?? createFindInTurn((hashes) => findRefreshTokens(database, hashes))
  finders.set(database, find)
  return (await find(hashToken(refreshToken).toString('hex'))) !== null
}

interface Renewed {
  readonly of: AccessTokenOf
  readonly refreshToken: string
}

/** Begins or renews the session. The caller holds the lock of the user's row. */
async function addRefreshToken(tx: Queryable, of: AccessTokenOf, address: string, now: Instant): Promise<Renewed> {
  const refreshToken = `hbr_${randomBytes(32).toString('base64url')}`
  const { userId, sessionId } = of
  const session = { id: sessionId, userId, kind: 'token', address, now, expiresAt: now + REFRESH_TOKEN_MS } as const
  const expiresAt = await saveSession(tx, session)
  const row = { hash: hashToken(refreshToken), familyId: sessionId, userId, expiresAt, createdAt: now }
  await insertRefreshToken(tx, row)
  return { of, refreshToken }
}

async function toPair(tokens: Tokens, { of, refreshToken }: Renewed): Promise<TokenPair> {
  return { accessToken: await tokens.issueAccessToken(of), expiresInSeconds: ACCESS_TOKEN_SECONDS, refreshToken }
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
