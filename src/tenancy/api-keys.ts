/** API keys. A caller bound to a project sees and makes only that project's. The HTTP layer checks scopes. */

import { audited } from '../audit/audited.ts'
import { makeApiKey, parseApiKey } from '../auth/api-key.ts'
import type { Caller, Scope } from '../domain/access.ts'
import type { Act, AuditAction, AuditDetail } from '../domain/audit.ts'
import type { Instant } from '../domain/check.ts'
import { AppError, invalidField, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import * as store from '../store/tenancy/api-keys.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import { assertAdminLeft, toCreator } from './callers.ts'

export type ApiKeyRecord = store.ApiKeyRow

export interface NewApiKey {
  /** Default: a new one. */
  readonly id?: string
  readonly name: string
  readonly scope: Scope
  /** Null or left out: for the whole organization, or for the project that the caller is bound to. */
  readonly projectId?: string | null
  /** Null or left out: the key expires with the key that creates it, or never. */
  readonly expiresAt?: Instant | null
}

/** In order of creation. */
export function listApiKeys(context: Context, caller: Caller, page: PageRequest): Promise<Page<ApiKeyRecord>> {
  return readPage(page, (rows) => store.listApiKeys(context.database, caller, rows))
}

/**
 * Returns the text of the key, which is not stored. A key that a key creates expires no later than its creator. Throws
 * AppError `not_found` for the project, `invalid_request` for the expiry, `conflict` for an id that exists.
 */
export async function createApiKey(
  context: Context,
  caller: Caller,
  { id, name, scope, projectId: asked = null, expiresAt: wanted = null }: NewApiKey,
): Promise<ApiKeyRecord & { readonly key: string }> {
  const now = context.clock.now()
  if (wanted !== null && wanted <= now) throw invalidField('expiresAt', 'must be in the future')
  const projectId = asked ?? caller.projectId
  const expiresAt = earlier(wanted, caller.expiresAt)
  const { organizationId } = caller
  return audited(context, caller, async (tx) => {
    if (projectId !== null && !(await hasProject(tx, caller, projectId, 'keep'))) throw notFound('project')
    const row = { organizationId, projectId, name, scope, expiresAt, createdAt: now, createdBy: toCreator(caller) }
    const made = await insertKey(tx, { ...row, ...(id === undefined ? {} : { id }) })
    return { result: made, acts: [actOn(made, 'api_key.created', { scope })] }
  })
}

/** Null is never. */
function earlier(one: Instant | null, other: Instant | null): Instant | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}

/** Without `chosen`, the key is a new random one. Throws `conflict` for an id that exists. */
export async function insertKey(
  tx: Queryable,
  row: Omit<store.NewApiKey, 'id' | 'prefix' | 'hash'> & { readonly id?: string },
  chosen?: string,
): Promise<ApiKeyRecord & { readonly key: string }> {
  const key = chosen ?? makeApiKey()
  const parsed = parseApiKey(key)
  if (parsed === null) throw new Error('an API key must have the form hbk_<prefix>_<secret>')
  const made = await store.insertApiKey(tx, { ...row, id: row.id ?? newId(row.createdAt), ...parsed })
  if (made !== null) return { ...made, key }
  // A random prefix of 47 bits is free, so the given id is taken.
  if (row.id !== undefined) throw new AppError('conflict', { why: 'key_made' })
  throw new Error('no free prefix for an API key was found')
}

/** Throws AppError `not_found` for an unknown, foreign or malformed id. */
export async function getApiKey(context: Context, caller: Caller, id: string): Promise<ApiKeyRecord> {
  const found = isUuid(id) ? await store.findApiKeyOf(context.database, caller, id) : null
  if (found === null) throw notFound('API key')
  return found
}

/** An omitted name stays. Throws as `getApiKey` does. */
export async function updateApiKey(
  context: Context,
  caller: Caller,
  id: string,
  { name }: { readonly name?: string },
): Promise<ApiKeyRecord> {
  if (name === undefined) return getApiKey(context, caller, id)
  return audited(context, caller, async (tx) => {
    const renamed = isUuid(id) ? await store.renameApiKey(tx, caller, id, name) : null
    if (renamed === null) throw notFound('API key')
    const { before, ...result } = renamed
    return { result, acts: before === name ? [] : [actOn(result, 'api_key.changed', { changed: ['name'] })] }
  })
}

function actOn(
  { id, name, projectId }: Pick<ApiKeyRecord, 'id' | 'name' | 'projectId'>,
  action: AuditAction,
  detail: AuditDetail = {},
): Act {
  return { action, target: { id, name }, projectId, detail }
}

/** Throws AppError `conflict` for the last admin, `not_found` for an unknown, foreign or malformed id. */
export async function revokeApiKey(context: Context, caller: Caller, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('API key')
  await audited(context, caller, async (tx) => {
    await lockOrganization(tx, caller.organizationId)
    const removed = await store.deleteApiKey(tx, caller, id)
    if (removed === null) throw notFound('API key')
    const { scope, projectId, expiresAt } = removed
    const countedAsAdmin = scope === 'admin' && projectId === null && expiresAt === null
    if (countedAsAdmin) await assertAdminLeft(tx, caller.organizationId)
    return { result: undefined, acts: [actOn(removed, 'api_key.removed')] }
  })
}
