/**
 * Sessions of the dashboard. A log-in gives a random token, which the browser keeps in a cookie; only its hash is stored. A session ends by a
 * log-out, a new log-in in the same browser, with its user, when its time is over, and with a new password (dashboard design, section 3).
 */

import { createHash, randomBytes } from 'node:crypto'
import { audited } from '../audit/audited.ts'
import type { Caller } from '../domain/access.ts'
import type { Instant } from '../domain/check.ts'
import { newId } from '../runtime/ids.ts'
import { createFindInTurn } from '../store/ask-in-turn.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import {
  boundSessions,
  deleteSession,
  insertDashboardSession,
  listEndedSessions,
  touchDashboardSession,
} from '../store/tenancy/sessions.ts'
import { findUsersOfDashboard, type KnownUser, lockSessionsOf } from '../store/tenancy/users.ts'
import { actOnAccount } from './acts.ts'
import { createTouch, TOUCH_EVERY_MS, toCaller } from './authenticate.ts'
import type { PasswordAttempt } from './check-password.ts'
import { enter } from './log-in.ts'

const HOUR_MS = 3_600_000
const LIFE = { idleMs: 12 * HOUR_MS, mostMs: 30 * 24 * HOUR_MS }
/** The browser forgets the cookie after so long; the session may end before. */
export const DASHBOARD_SESSION_MS = LIFE.mostMs
const TOKEN = /^(sso\.)?[\w-]{43}$/
/** Begins the token of a session that an identity provider began. The hash covers the prefix. */
export const BY_PROVIDER = 'sso.'

/** The session that the browser had, of any user. Its token is lost with the log-in: the new one takes its place in the cookie. */
export type FormerSession = Pick<DashboardCaller, 'id' | 'sessionId'> | null

/** Returns the token of a new session, and ends `former`. Throws as `logIn` (log-in.ts) does. */
export function logInToDashboard(context: Context, attempt: PasswordAttempt, former: FormerSession): Promise<string> {
  return enter(context, attempt, (tx, user, now) => beginDashboardSession(tx, user, attempt.address, now, former))
}

/** Returns the token, and ends `former`. The caller has found out who the user is, holds the lock of its row, and audits the log-in. */
export async function beginDashboardSession(
  tx: Queryable,
  user: Pick<KnownUser, 'id'>,
  address: string,
  now: Instant,
  former: FormerSession = null,
  prefix: '' | typeof BY_PROVIDER = '',
): Promise<string> {
  // Without the lock of the former user's row: two log-ins that end each other's sessions would wait for each other. It begins no session there.
  if (former !== null) await deleteSession(tx, former.id, former.sessionId)
  const token = prefix + randomBytes(32).toString('base64url')
  const expiresAt = now + LIFE.idleMs
  const session = { id: newId(now), userId: user.id, address, now, expiresAt, tokenHash: hashToken(token) }
  await insertDashboardSession(tx, session)
  await boundSessions(tx, user.id, now)
  return token
}

export interface DashboardCaller extends Caller {
  readonly sessionId: string
}

/**
 * Finds the user of a token, with one statement for all tokens that wait; null when the session has ended. `address`:
 * the client's network address. `isUse`: whether the session lives on by this; what the script does on its own is no
 * use, so an open page does not keep a session for ever. Default: yes.
 */
export type FindDashboardCaller = (
  token: string | undefined,
  address: string,
  isUse?: boolean,
) => Promise<DashboardCaller | null>

/** Whether it has the form of one. */
export function isSessionToken(token = ''): boolean {
  return TOKEN.test(token)
}

/** `isPasswordLoginOn` false: a session that began with a password is none. */
export function createFindDashboardCaller({ database, clock }: Context, isPasswordLoginOn = true): FindDashboardCaller {
  const findUser = createFindInTurn((hashes) => findUsersOfDashboard(database, hashes, clock.now()))
  const touch = createTouch((id, now) => touchDashboardSession(database, id, now, { everyMs: TOUCH_EVERY_MS, ...LIFE }))
  return async (token = '', address, isUse = true) => {
    if (!isSessionToken(token) || !(isPasswordLoginOn || token.startsWith(BY_PROVIDER))) return null
    const user = await findUser(hashToken(token).toString('hex'))
    if (user === null) return null
    const { sessionId, lastUsedAt } = user
    if (isUse) touch(sessionId, lastUsedAt, clock.now())
    return { ...toCaller(user, sessionId, address), sessionId }
  }
}

/** Those of `ids` that have ended, on any replica. */
export function findEndedSessions(
  { database, clock }: Pick<Context, 'database' | 'clock'>,
  ids: readonly string[],
): Promise<string[]> {
  return listEndedSessions(database, ids, clock.now())
}

/** Idempotent. */
export async function logOutOfDashboard(context: Context, caller: DashboardCaller): Promise<void> {
  const { id, name, sessionId } = caller
  await audited(context, caller, async (tx) => {
    await lockSessionsOf(tx, id)
    const hasEnded = await deleteSession(tx, id, sessionId)
    return { result: undefined, acts: hasEnded ? [actOnAccount({ id, email: name }, 'logout')] : [] }
  })
}

/** A fast hash is enough: 256 random bits cannot be guessed. */
function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
