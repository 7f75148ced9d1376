/** Users of an organization. Callers that are bound to a project are rejected. The HTTP layer checks scopes. */

import { hashPassword, isPassword, PASSWORD_LENGTH } from '../auth/passwords.ts'
import type { Caller, Scope } from '../domain/access.ts'
import { isEmail } from '../domain/email.ts'
import { AppError, invalidField, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import * as store from '../store/tenancy/users.ts'
import { assertNotBound } from './bound.ts'

export type UserRecord = store.UserRow

/** In order of creation. */
export async function listUsers(context: Context, caller: Caller, page: PageRequest): Promise<Page<UserRecord>> {
  assertNotBound(caller, 'see users')
  const rows = await store.listUsers(context.database, caller.organizationId, { ...page, limit: page.limit + 1 })
  return toPage(rows, page.limit, ({ createdAt, id }) => ({ at: createdAt, id }))
}

/** Throws AppError `invalid` for an address or password of a wrong form, `conflict` when the address has an account already. */
export async function createUser(
  context: Context,
  caller: Caller,
  input: { readonly email: string; readonly password: string; readonly scope: Scope },
): Promise<UserRecord> {
  assertNotBound(caller, 'create users')
  const email = input.email.trim()
  if (!isEmail(email)) throw invalidField('email', 'must be an e-mail address')
  if (!isPassword(input.password)) {
    throw invalidField('password', `must have ${PASSWORD_LENGTH.min} to ${PASSWORD_LENGTH.max} characters`)
  }
  const passwordHash = await hashPassword(input.password)
  const now = context.clock.now()
  const id = newId(now)
  const row = { id, organizationId: caller.organizationId, email, passwordHash, scope: input.scope, createdAt: now }
  const made = await store.insertUser(context.database, row)
  if (made === null) throw new AppError('conflict', 'a user with this e-mail address exists already')
  return made
}

/** Ends the user's sessions at once. Throws AppError `conflict` for the last admin, `not_found` for an unknown, foreign or malformed id. */
export async function removeUser(context: Context, caller: Caller, id: string): Promise<void> {
  assertNotBound(caller, 'remove users')
  if (!isUuid(id)) throw notFound('user')
  const { organizationId } = caller
  await context.database.transaction(async (tx) => {
    // Serialises two admins who remove each other at the same time: the second one is then the last.
    await lockOrganization(tx, organizationId)
    const scope = await store.findScope(tx, organizationId, id)
    if (scope === null) throw notFound('user')
    if (scope === 'admin' && (await store.countAdmins(tx, organizationId)) === 1) {
      throw new AppError('conflict', 'the last user with the scope admin cannot be removed: create another one first')
    }
    await store.deleteUser(tx, organizationId, id)
  })
}
