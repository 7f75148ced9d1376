/**
 * Sessions of users. A session of the dashboard has a random token in a cookie, a session of the API a family of
 * refresh tokens (log-in.ts); only hashes are stored. A session ends by a log-out, a new log-in in the same browser,
 * with its user, when its time is over, and with a new password.
 */

import { randomBytes } from 'node:crypto'
import { audited } from '../audit/audited.ts'
import type { Caller } from '../domain/access.ts'
import type { Instant } from '../domain/check.ts'
import { hashText } from '../runtime/hashes.ts'
import { newId } from '../runtime/ids.ts'
import { createFindInTurn } from '../store/ask-in-turn.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import * as store from '../store/tenancy/sessions.ts'
import { findUsersOfDashboard, lockSessionsOf } from '../store/tenancy/users.ts'
import { actOnAccount } from './account-audit.ts'
import { createTouch, TOUCH_EVERY_MS, toCaller } from './authenticate.ts'

const HOUR_MS = 3_600_000
/** How long a session lives after its last use (a refresh, for the API), and after its log-in. */
const LIVES = {
  token: { idleMs: 30 * 24 * HOUR_MS, mostMs: 90 * 24 * HOUR_MS },
  dashboard: { idleMs: 12 * HOUR_MS, mostMs: 30 * 24 * HOUR_MS },
}
/** The browser forgets the cookie after so long; the session may end before. */
export const DASHBOARD_SESSION_MS = LIVES.dashboard.mostMs
const DASHBOARD_TOKEN = /^(sso\.)?[\w-]{43}$/
/** Begins the token of a session that an identity provider began. The hash covers the prefix. */
const BY_PROVIDER = 'sso.'

/** The session that the browser had, of any user: the new token takes its place in the cookie. */
export type FormerSession = Pick<DashboardCaller, 'id' | 'sessionId'> | null

export interface SessionStart {
  readonly userId: string
  readonly address: string
  readonly now: Instant
  /** Ends. Default: there is none. */
  readonly former?: FormerSession
  /** Default: it began with a password. */
  readonly isByProvider?: boolean
}

/** `secret`: the first refresh token of the API, or the token of the dashboard. */
export interface BegunSession {
  readonly userId: string
  readonly sessionId: string
  readonly secret: string
}

/** The caller has found out who the user is, holds the lock of its row, and audits the log-in. */
export async function beginSession(tx: Queryable, kind: store.SessionKind, start: SessionStart): Promise<BegunSession> {
  const { userId, address, now, former = null, isByProvider = false } = start
  // Without the lock of the former user's row: two log-ins that end each other's sessions would wait for each other. It
  // begins no session there.
  if (former !== null) await store.deleteSession(tx, former.id, former.sessionId)
  const session = { userId, sessionId: newId(now) }
  let secret: string
  if (kind === 'token') secret = await addRefreshToken(tx, session, address, now)
  else {
    secret = (isByProvider ? BY_PROVIDER : '') + randomToken()
    const row = { id: session.sessionId, userId, kind, address, now, tokenHash: hashText(secret) }
    await store.saveSession(tx, row, LIVES.dashboard)
  }
  await store.boundSessions(tx, userId, now)
  return { ...session, secret }
}

/** Begins or renews the session of the API. The caller holds the lock of the user's row. */
export async function addRefreshToken(
  tx: Queryable,
  { userId, sessionId }: Omit<BegunSession, 'secret'>,
  address: string,
  now: Instant,
): Promise<string> {
  const token = `hbr_${randomToken()}`
  const session = { id: sessionId, userId, kind: 'token', address, now } as const
  await store.insertRefreshToken(tx, hashText(token), session, await store.saveSession(tx, session, LIVES.token))
  return token
}

/** 256 bits, which cannot be guessed: a fast hash of them is enough. */
const randomToken = () => randomBytes(32).toString('base64url')

export interface DashboardCaller extends Caller {
  readonly sessionId: string
}

export function isSessionToken(text = ''): boolean {
  return DASHBOARD_TOKEN.test(text)
}

/**
 * The returned function finds the user of a token; null when the session has ended. `isUse`: the session lives on by
 * it; what the script does on its own is no use. `isPasswordLoginOn` false: a session by password is none.
 */
export function createFindDashboardCaller({ database, clock }: Context, isPasswordLoginOn = true) {
  const findUser = createFindInTurn((hashes) => findUsersOfDashboard(database, hashes, clock.now()))
  const touch = createTouch((id, now) => store.touchSession(database, id, now, TOUCH_EVERY_MS, LIVES.dashboard))
  return async (token = '', address: string, isUse = true): Promise<DashboardCaller | null> => {
    if (!isSessionToken(token) || !(isPasswordLoginOn || token.startsWith(BY_PROVIDER))) return null
    const user = await findUser(hashText(token).toString('hex'))
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
  return store.listEndedSessions(database, ids, clock.now())
}

/** Idempotent. */
export async function logOutOfDashboard(context: Context, caller: DashboardCaller): Promise<void> {
  const { id, name, sessionId } = caller
  await audited(context, caller, async (tx) => {
    await lockSessionsOf(tx, id)
    const hasEnded = await store.deleteSession(tx, id, sessionId)
    return { result: undefined, acts: hasEnded ? [actOnAccount({ id, email: name }, 'logout')] : [] }
  })
}
