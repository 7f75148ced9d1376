/** API keys. A caller that is bound to a project sees only the keys of that project. */

import type { Creator, Scope, Tenant } from '../../domain/access.ts'
import type { Instant } from '../../domain/check.ts'
import type { PageRequest } from '../../domain/page.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { CREATOR, CREATOR_COLUMNS, creatorValues } from './creator.ts'

export interface ApiKeyRow {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly scope: Scope
  readonly projectId: string | null
  readonly expiresAt: Instant | null
  readonly lastUsedAt: Instant | null
  readonly createdAt: Instant
  /** Null: the first start, or before creators were recorded. */
  readonly createdBy: Creator | null
}

const COLUMNS = `id, name, prefix, scope, project_id as "projectId", expires_at as "expiresAt", last_used_at as "lastUsedAt", created_at as "createdAt", ${CREATOR}`

export interface NewApiKey extends Omit<ApiKeyRow, 'lastUsedAt'> {
  readonly organizationId: string
  /** SHA-256 of the whole text of the key. */
  readonly hash: Buffer
}

/** Null when the prefix or the id is taken. Both are unique over all organizations. */
export async function insertApiKey(db: Queryable, key: NewApiKey): Promise<ApiKeyRow | null> {
  const { id, organizationId, projectId, name, prefix, hash, scope, expiresAt, createdAt, createdBy } = key
  const { rows } = await db.query<ApiKeyRow>(
    `insert into api_keys (id, organization_id, project_id, name, prefix, secret_hash, scope, expires_at, created_at, ${CREATOR_COLUMNS})
      values ($1, $2, $3, $4, $5, $6, $7, $8::timestamptz, $9::timestamptz, $10, $11, $12)
      on conflict do nothing
      returning ${COLUMNS}`,
    [
      ...[id, organizationId, projectId, name, prefix, hash, scope, timestamp(expiresAt), timestamp(createdAt)],
      ...creatorValues(createdBy),
    ],
  )
  return rows[0] ?? null
}

/** In order of creation. */
export async function listApiKeys(db: Queryable, tenant: Tenant, { limit, after }: PageRequest): Promise<ApiKeyRow[]> {
  const { rows } = await db.query<ApiKeyRow>(
    `select ${COLUMNS} from api_keys
      where organization_id = $1 and ($2::uuid is null or project_id = $2)
        and ($4::uuid is null or (created_at, id) > ($3::timestamptz, $4))
      order by created_at, id limit $5`,
    [tenant.organizationId, tenant.projectId, timestamp(after?.at ?? null), after?.id ?? null, limit],
  )
  return rows
}

const OF_TENANT = 'id = $1 and organization_id = $2 and ($3::uuid is null or project_id = $3)'

/** Null when the tenant has no such key. */
export async function findApiKeyOf(db: Queryable, tenant: Tenant, id: string): Promise<ApiKeyRow | null> {
  const values = [id, tenant.organizationId, tenant.projectId]
  const { rows } = await db.query<ApiKeyRow>(`select ${COLUMNS} from api_keys where ${OF_TENANT}`, values)
  return rows[0] ?? null
}

/** `before`: its name until now. Null when the tenant has no such key. */
export async function renameApiKey(
  tx: Queryable,
  tenant: Tenant,
  id: string,
  name: string,
): Promise<(ApiKeyRow & { readonly before: string }) | null> {
  const values = [id, tenant.organizationId, tenant.projectId]
  const text = `select name from api_keys where ${OF_TENANT} for no key update`
  const { rows: found } = await tx.query<{ name: string }>(text, values)
  if (found[0] === undefined) return null
  const { rows } = await tx.query<ApiKeyRow>(`update api_keys set name = $2 where id = $1 returning ${COLUMNS}`, [
    id,
    name,
  ])
  return { ...rows[0]!, before: found[0].name }
}

/** Null when the tenant has no such key. */
export async function deleteApiKey(db: Queryable, tenant: Tenant, id: string): Promise<ApiKeyRow | null> {
  const { rows } = await db.query<ApiKeyRow>(
    `delete from api_keys where id = $1 and organization_id = $2 and ($3::uuid is null or project_id = $3) returning ${COLUMNS}`,
    [id, tenant.organizationId, tenant.projectId],
  )
  return rows[0] ?? null
}

export interface KnownApiKey extends Omit<ApiKeyRow, 'createdAt' | 'createdBy'> {
  readonly organizationId: string
  readonly hash: Buffer
}

/** By their prefixes, for authentication, before the caller has proven anything. Unknown prefixes are left out. */
export async function findApiKeys(db: Queryable, prefixes: readonly string[]): Promise<Map<string, KnownApiKey>> {
  const { rows } = await db.query<KnownApiKey>({
    name: 'find_api_keys',
    text: `select id, name, prefix, organization_id as "organizationId", project_id as "projectId", secret_hash as hash, scope,
        expires_at as "expiresAt", last_used_at as "lastUsedAt"
      from api_keys where prefix = any($1::text[])`,
    values: [prefixes],
  })
  return new Map(rows.map((key) => [key.prefix, key]))
}

/** Writes at most once in `everyMs`, over all replicas. Skips a locked row: another call is writing it. */
export async function touchApiKey(db: Queryable, id: string, now: Instant, everyMs: number): Promise<void> {
  await db.query({
    name: 'touch_api_key',
    text: `update api_keys set last_used_at = $2::timestamptz
      where id = (
        select id from api_keys where id = $1
          and (last_used_at is null or last_used_at <= $2::timestamptz - $3 * interval '1 millisecond')
        for no key update skip locked)`,
    values: [id, timestamp(now), everyMs],
  })
}
