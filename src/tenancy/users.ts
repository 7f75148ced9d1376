/** Users of an organization. Callers that are bound to a project are rejected. The HTTP layer checks scopes. */

import { audited } from '../audit/audited.ts'
import { hashOfNone, hashPassword } from '../auth/passwords.ts'
import type { Caller, Scope } from '../domain/access.ts'
import { type Act, type AuditAction, type AuditDetail, changedFields } from '../domain/audit.ts'
import { toUserEmail, USER_EMAIL_RULE } from '../domain/email.ts'
import { AppError, invalidField, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import { findPasswordFault } from '../domain/password.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { deleteSessions } from '../store/tenancy/sessions.ts'
import * as store from '../store/tenancy/users.ts'
import { assertAdminLeft, assertNotBound, toCreator } from './callers.ts'

export type UserRecord = store.UserRow

/** In order of creation. */
export async function listUsers(context: Context, caller: Caller, page: PageRequest): Promise<Page<UserRecord>> {
  assertNotBound(caller, 'see users')
  return readPage(page, (rows) => store.listUsers(context.database, caller.organizationId, rows))
}

/** Throws AppError `not_found` for an unknown, foreign or malformed id. */
export async function getUser(context: Context, caller: Caller, id: string): Promise<UserRecord> {
  assertNotBound(caller, 'see users')
  const user = isUuid(id) ? await store.findUserOf(context.database, caller.organizationId, id) : null
  if (user === null) throw notFound('user')
  return user
}

function actOn({ id, email }: UserRecord, action: AuditAction, detail: AuditDetail = {}): Act {
  return { action, target: { id, name: email }, projectId: null, detail }
}

/**
 * Without a password, the user signs in with an identity provider. Throws AppError `invalid_request` for the address or
 * the password, `conflict` when the address has an account, here or elsewhere, `forbidden` for a key that expires.
 */
export async function createUser(
  context: Context,
  caller: Caller,
  input: { readonly email: string; readonly password?: string; readonly scope: Scope },
): Promise<UserRecord> {
  assertNotBound(caller, 'create users')
  assertLasting(caller, 'create users')
  const email = toUserEmail(input.email.trim())
  if (email === null) throw invalidField('email', USER_EMAIL_RULE)
  const { organizationId } = caller
  const { password } = input
  if (password !== undefined) assertPassword(password, email)
  const passwordHash =
    password === undefined
      ? hashOfNone(context.passwordCost)
      : await hashPassword(password, context.passwordCost, [organizationId])
  const createdAt = context.clock.now()
  const row = { id: newId(createdAt), organizationId, email, passwordHash, scope: input.scope, createdAt }
  return audited(context, caller, async (tx) => {
    const made = await store.insertUser(tx, { ...row, createdBy: toCreator(caller) })
    // One text for each owner of the address: it must not show the users of other organizations.
    if (made === null) throw new AppError('conflict', { why: 'email_taken' }, { field: 'email' })
    return { result: made, acts: [actOn(made, 'user.created', { scope: made.scope })] }
  })
}

/**
 * Changes what is given. A new password ends the user's sessions. Throws AppError `invalid_request` for the password,
 * `conflict` when no admin would be left, `not_found` for the id, `forbidden` for a key that expires.
 */
export async function updateUser(
  context: Context,
  caller: Caller,
  id: string,
  { password, scope }: { readonly password?: string | undefined; readonly scope?: Scope | undefined },
): Promise<UserRecord> {
  assertNotBound(caller, 'change users')
  assertLasting(caller, 'change users')
  const { organizationId } = caller
  const user = await getUser(context, caller, id)
  if (password !== undefined) assertPassword(password, user.email)
  const passwordHash =
    password === undefined ? null : await hashPassword(password, context.passwordCost, [organizationId])
  return audited(context, caller, async (tx) => {
    await lockOrganization(tx, organizationId)
    const before = await store.findUserOf(tx, organizationId, id)
    const changed = await store.updateUser(tx, organizationId, id, { scope: scope ?? null, passwordHash })
    if (before === null || changed === null) throw notFound('user')
    if (passwordHash !== null) await deleteSessions(tx, id, null)
    if (before.scope === 'admin' && changed.scope !== 'admin') await assertAdminLeft(tx, organizationId)
    const fields = [...changedFields(before, changed, ['scope']), ...(passwordHash === null ? [] : ['password'])]
    return { result: changed, acts: fields.length === 0 ? [] : [actOn(changed, 'user.changed', { changed: fields })] }
  })
}

/** Throws AppError `conflict` for the last admin, `not_found` for an unknown, foreign or malformed id. */
export async function removeUser(context: Context, caller: Caller, id: string): Promise<void> {
  assertNotBound(caller, 'remove users')
  if (!isUuid(id)) throw notFound('user')
  const { organizationId } = caller
  await audited(context, caller, async (tx) => {
    await lockOrganization(tx, organizationId)
    const removed = await store.deleteUser(tx, organizationId, id)
    if (removed === null) throw notFound('user')
    if (removed.scope === 'admin') await assertAdminLeft(tx, organizationId)
    return { result: undefined, acts: [actOn(removed, 'user.removed')] }
  })
}

/** `field`: the name of the password in our types. Throws AppError `invalid_request` for a rule that it breaks. */
export function assertPassword(password: string, email: string, field = 'password'): void {
  const fault = findPasswordFault(password, email)
  if (fault !== null) throw invalidField(field, fault)
}

/** What a key that expires creates expires with it, and users do not expire. */
function assertLasting({ kind, expiresAt }: Caller, asked: string): void {
  if (kind === 'api_key' && expiresAt !== null) throw new AppError('forbidden', { why: 'key_expires', asked })
}
