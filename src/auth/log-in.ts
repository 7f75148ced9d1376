/**
 * Log-in by password, and the refresh tokens of the API: each refresh spends one and adds the next. When a spent token
 * is used again, one of two parties is a thief: the session ends (RFC 9700, section 4.14.2).
 */

import { audited } from '../audit/audited.ts'
import { ASCII_EMAIL_RULE, isAscii } from '../domain/email.ts'
import { invalidField } from '../domain/errors.ts'
import { addressGroup } from '../runtime/addresses.ts'
import { hashText } from '../runtime/hashes.ts'
import { createFindInTurn } from '../store/ask-in-turn.ts'
import type { Context } from '../store/context.ts'
import type { Database } from '../store/postgres/database.ts'
import { noteLoginAddress } from '../store/tenancy/login-addresses.ts'
import * as store from '../store/tenancy/sessions.ts'
import { replacePasswordHash } from '../store/tenancy/users.ts'
import { actOnAccount, actorOf } from './account-audit.ts'
import { type PasswordAttempt, withPassword } from './check-password.ts'
import { rejected } from './errors.ts'
import { hashPassword, isOutdatedHash } from './passwords.ts'
import { addRefreshToken, type BegunSession, beginSession, type FormerSession } from './sessions.ts'
import { ACCESS_TOKEN_SECONDS, type Tokens } from './tokens.ts'

export type TokenPair = Awaited<ReturnType<typeof toPair>>

export interface RefreshRequest {
  readonly refreshToken: string
  readonly address: string
}

const REFRESH_TOKEN = /^hbr_[\w-]{43}$/

/**
 * Throws AppError `unauthenticated` with one text, after the same time, for an unknown address and a wrong password;
 * `invalid_request` for an address beyond ASCII, `too_many_requests`, `unavailable`.
 */
export async function logIn(context: Context, tokens: Tokens, attempt: PasswordAttempt): Promise<TokenPair> {
  return toPair(tokens, await beginByPassword(context, attempt, 'token', null))
}

/** Returns the token of a new session, and ends `former`. Throws as `logIn` does. */
export async function logInToDashboard(
  context: Context,
  attempt: PasswordAttempt,
  former: FormerSession,
): Promise<string> {
  return (await beginByPassword(context, attempt, 'dashboard', former)).secret
}

async function beginByPassword(
  context: Context,
  attempt: PasswordAttempt,
  kind: store.SessionKind,
  former: FormerSession,
): Promise<BegunSession> {
  const { address, password } = attempt
  const wrong = isAscii(attempt.email)
    ? rejected('wrong e-mail address or password')
    : invalidField('email', ASCII_EMAIL_RULE)
  const { user, session } = await withPassword(context, attempt, wrong, async (tx, user, now) => {
    await noteLoginAddress(tx, user.id, addressGroup(address), now)
    const session = await beginSession(tx, kind, { userId: user.id, address, now, former })
    return { result: { user, session }, acts: [actOnAccount(user, 'login.succeeded')] }
  })
  if (isOutdatedHash(user.passwordHash, context.passwordCost)) {
    const hash = await hashPassword(password, context.passwordCost, [user.id])
    await replacePasswordHash(context.database, user.id, user.passwordHash, hash)
  }
  return session
}

/** Throws AppError `unauthenticated`. Of two calls with one token at most one gets a pair, and the session ends. */
export async function refresh(
  context: Context,
  tokens: Tokens,
  { refreshToken, address }: RefreshRequest,
): Promise<TokenPair> {
  if (!(await isKnown(context, refreshToken))) throw unusableToken()
  const now = context.clock.now()
  // The end of the session must be committed, so the error is thrown after the transaction.
  const renewed = await audited<BegunSession | null>(context, actorOf(null, address), async (tx) => {
    const family = await store.lockFamily(tx, hashText(refreshToken))
    if (family === null) return { result: null, acts: [] }
    const { familyId: sessionId, user } = family
    const outcome = await store.spendRefreshToken(tx, hashText(refreshToken), now)
    if (outcome === 'spent before') {
      await store.deleteSession(tx, user.id, sessionId)
      return { result: null, acts: [actOnAccount(user, 'refresh.replayed')], by: actorOf(user, address) }
    }
    if (outcome !== 'spent now') return { result: null, acts: [] }
    const session = { userId: user.id, sessionId }
    return { result: { ...session, secret: await addRefreshToken(tx, session, address, now) }, acts: [] }
  })
  if (renewed === null) throw unusableToken()
  return toPair(tokens, renewed)
}

/** Ends the session of a refresh token, whichever of its tokens it is. Idempotent; an unknown token is not an error. */
export async function logOut(context: Context, { refreshToken, address }: RefreshRequest): Promise<void> {
  if (!(await isKnown(context, refreshToken))) return
  await audited(context, actorOf(null, address), async (tx) => {
    const family = await store.lockFamily(tx, hashText(refreshToken))
    if (family === null) return { result: undefined, acts: [] }
    const { user, familyId } = family
    const hasEnded = await store.deleteSession(tx, user.id, familyId)
    return { result: undefined, acts: hasEnded ? [actOnAccount(user, 'logout')] : [], by: actorOf(user, address) }
  })
}

/** Strangers cause these look-ups: all requests to one database share one queue. */
const finders = new WeakMap<Database, ReturnType<typeof createFindInTurn<true>>>()

async function isKnown({ database }: Context, refreshToken: string): Promise<boolean> {
  if (!REFRESH_TOKEN.test(refreshToken)) return false
  const find = finders.get(database) ?? createFindInTurn((hashes) => store.findRefreshTokens(database, hashes))
  finders.set(database, find)
  return (await find(hashText(refreshToken).toString('hex'))) !== null
}

/** The refresh token can be used once, for thirty days and until ninety days after the log-in. */
async function toPair(tokens: Tokens, { secret: refreshToken, ...session }: BegunSession) {
  const accessToken = await tokens.issueAccessToken(session)
  return { accessToken, tokenType: 'Bearer' as const, expiresIn: ACCESS_TOKEN_SECONDS, refreshToken }
}

const unusableToken = () => rejected('the refresh token is unknown, expired or spent: log in again')
