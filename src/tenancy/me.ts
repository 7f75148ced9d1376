/** What callers learn about themselves, and what users change: the password, the sessions. API keys have neither. */

import { audited } from '../audit/audited.ts'
import { actOnAccount } from '../auth/account-audit.ts'
import { withPassword } from '../auth/check-password.ts'
import { unknownKey, unknownToken } from '../auth/errors.ts'
import { hashPassword } from '../auth/passwords.ts'
import type { Caller } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import type { Context } from '../store/context.ts'
import { type ApiKeyRow, findApiKeyOf } from '../store/tenancy/api-keys.ts'
import { describeOrganization } from '../store/tenancy/organizations.ts'
import * as store from '../store/tenancy/sessions.ts'
import { findUser, lockSessionsOf, replacePasswordHash } from '../store/tenancy/users.ts'
import { assertPassword } from './users.ts'

export interface SessionRecord extends store.SessionRow {
  /** Whether the call was made with this session. */
  readonly isCurrent: boolean
}

export interface PasswordChange {
  readonly currentPassword: string
  readonly newPassword: string
  /** The client's network address, for the throttle. */
  readonly address: string
}

/** Throws AppError `unauthenticated` when the user was removed since the call began. */
export async function describeCaller({ database }: Pick<Context, 'database'>, caller: Caller) {
  const userId = caller.kind === 'user' ? caller.id : null
  const found = await describeOrganization(database, caller.organizationId, userId)
  if (found === null || (userId !== null && found.email === null)) throw unknownToken()
  return {
    kind: caller.kind,
    organization: { id: caller.organizationId, name: found.name },
    user: userId === null || found.email === null ? null : { id: userId, email: found.email },
    scope: caller.scope,
    projectId: caller.projectId,
  }
}

/** Null for a user. Throws AppError `unauthenticated` when the key was revoked since the call began. */
export async function describeKey(
  { database }: Pick<Context, 'database'>,
  caller: Caller,
): Promise<Pick<ApiKeyRow, 'id' | 'name' | 'prefix' | 'expiresAt'> | null> {
  if (caller.kind !== 'api_key') return null
  const key = await findApiKeyOf(database, caller, caller.id)
  if (key === null) throw unknownKey()
  return key
}

/**
 * Ends all other sessions of the user. A wrong current password counts as a failed log-in, and throws AppError
 * `forbidden`, as keys do; `too_many_requests`; `invalid_request` for a new password that breaks a rule.
 */
export async function changeOwnPassword(
  context: Context,
  caller: Caller,
  { currentPassword, newPassword, address }: PasswordChange,
): Promise<void> {
  assertUser(caller, 'no password')
  const user = await findUser(context.database, caller.id)
  if (user === null) throw unknownToken()
  assertPassword(newPassword, user.email, 'newPassword')
  const attempt = { email: user.email, password: currentPassword, address }
  const current = await withPassword(context, attempt, wrongPassword(), async (_, { passwordHash }) => ({
    result: passwordHash,
    acts: [],
  }))
  // Computed only after the check, and outside its transaction, which holds locks.
  const passwordHash = await hashPassword(newPassword, context.passwordCost, [user.id])
  await audited(context, caller, async (tx) => {
    // Of two changes at the same time, the second one has a wrong current password.
    if (!(await replacePasswordHash(tx, user.id, current, passwordHash))) throw wrongPassword()
    await store.deleteSessions(tx, user.id, caller.sessionId)
    return { result: undefined, acts: [actOnAccount(user, 'password.changed')] }
  })
}

/** In order of creation. Throws AppError `forbidden` for keys. */
export async function listOwnSessions(
  context: Context,
  caller: Caller,
  page: PageRequest,
): Promise<Page<SessionRecord>> {
  assertUser(caller, 'no sessions')
  const { database, clock } = context
  const { rows, next } = await readPage(page, (rows) => store.listSessions(database, caller.id, clock.now(), rows))
  return { rows: rows.map((row) => ({ ...row, isCurrent: row.id === caller.sessionId })), next }
}

/** Throws AppError `forbidden` for keys, `not_found` for an unknown, foreign or malformed id. */
export async function endOwnSession(context: Context, caller: Caller, id: string): Promise<void> {
  assertUser(caller, 'no sessions')
  await audited(context, caller, async (tx) => {
    await lockSessionsOf(tx, caller.id)
    if (!isUuid(id) || !(await store.deleteSession(tx, caller.id, id))) throw notFound('session')
    return { result: undefined, acts: [{ action: 'session.ended', target: { id, name: null }, projectId: null }] }
  })
}

function assertUser({ kind }: Caller, has: 'no password' | 'no sessions'): void {
  if (kind !== 'user') throw new AppError('forbidden', { why: 'no_user', has })
}

function wrongPassword(): AppError {
  return new AppError('forbidden', { why: 'wrong_password' })
}
