import { unknownKey, unknownToken } from '../auth/errors.ts'
import type { Caller, Scope } from '../domain/access.ts'
import type { Context } from '../store/context.ts'
import { type ApiKeyRow, findApiKeyOf } from '../store/tenancy/api-keys.ts'
import { describeOrganization } from '../store/tenancy/organizations.ts'

export interface CallerDescription {
  readonly kind: 'user' | 'api_key'
  readonly organization: { readonly id: string; readonly name: string }
  readonly user: { readonly id: string; readonly email: string } | null
  readonly scope: Scope
  readonly projectId: string | null
}

/** Throws AppError `unauthenticated` when the user was removed since the call began. */
export async function describeCaller(
  { database }: Pick<Context, 'database'>,
  caller: Caller,
): Promise<CallerDescription> {
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
