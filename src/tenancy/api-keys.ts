/** API keys of an organization. A caller bound to a project sees and makes only that project's. The HTTP layer checks scopes. */

import { makeApiKey, parseApiKey } from '../auth/api-key.ts'
import type { Caller, Scope } from '../domain/access.ts'
import type { Instant } from '../domain/check.ts'
import { invalidField, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import * as store from '../store/tenancy/api-keys.ts'
import { hasProject } from '../store/tenancy/projects.ts'

export type ApiKeyRecord = store.ApiKeyRow

export interface NewApiKey {
  readonly name: string
  readonly scope: Scope
  /** Null or left out: for the whole organization, or for the project that the caller is bound to. */
  readonly projectId?: string | null
  /** Null or left out: the key never expires. */
  readonly expiresAt?: Instant | null
}

/** In order of creation. */
export async function listApiKeys(context: Context, caller: Caller, page: PageRequest): Promise<Page<ApiKeyRecord>> {
  const rows = await store.listApiKeys(context.database, caller, { ...page, limit: page.limit + 1 })
  return toPage(rows, page.limit, ({ createdAt, id }) => ({ at: createdAt, id }))
}

/**
 * Returns the text of the key, which is not stored. Throws AppError `not_found` for a project that is not the caller's, `invalid`
 * for an expiry in the past.
 */
export async function createApiKey(
  context: Context,
  caller: Caller,
  { name, scope, projectId: asked = null, expiresAt = null }: NewApiKey,
): Promise<ApiKeyRecord & { readonly key: string }> {
  const now = context.clock.now()
  if (expiresAt !== null && expiresAt <= now) throw invalidField('expiresAt', 'must be in the future')
  const projectId = asked ?? caller.projectId
  return context.database.transaction(async (tx) => {
    if (projectId !== null && !(await hasProject(tx, caller, projectId, 'keep'))) throw notFound('project')
    return insertKey(tx, { organizationId: caller.organizationId, projectId, name, scope, expiresAt, createdAt: now })
  })
}

const PREFIX_TRIES = 3

/** Stores the hash of `chosen`, or of a new random key. Tries another key when the random prefix exists already. */
export async function insertKey(
  tx: Queryable,
  row: Omit<store.NewApiKey, 'id' | 'prefix' | 'hash'>,
  chosen?: string,
): Promise<ApiKeyRecord & { readonly key: string }> {
  for (let attempt = 1; attempt <= PREFIX_TRIES; attempt += 1) {
    const key = chosen ?? makeApiKey()
    const parsed = parseApiKey(key)
    if (parsed === null) throw new Error('an API key must have the form hbk_<prefix>_<secret>')
    const id = newId(row.createdAt)
    const made = await store.insertApiKey(tx, { ...row, id, ...parsed })
    if (made !== null) return { ...made, key }
  }
  throw new Error('no free prefix for an API key was found')
}

/** Ends a key at once. Throws AppError `not_found` for an unknown, foreign or malformed id. */
export async function revokeApiKey(context: Context, caller: Caller, id: string): Promise<void> {
  if (!isUuid(id) || !(await store.deleteApiKey(context.database, caller, id))) throw notFound('API key')
}
