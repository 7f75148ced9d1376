/** Users. An e-mail address is unique over all organizations, without regard to case. */

import type { Creator, Scope } from '../../domain/access.ts'
import type { Instant } from '../../domain/check.ts'
import type { PageRequest } from '../../domain/page.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { CREATOR, CREATOR_COLUMNS, creatorValues } from './creator.ts'

export interface UserRow {
  readonly id: string
  readonly email: string
  readonly scope: Scope
  readonly createdAt: Instant
  /** Null: the first start, a sign-in with an identity provider, or before creators were recorded. */
  readonly createdBy: Creator | null
}

const COLUMNS = `id, email, scope, created_at as "createdAt", ${CREATOR}`

export interface NewUser extends UserRow {
  readonly organizationId: string
  readonly passwordHash: string
}

/** Null when the address is taken. */
export async function insertUser(db: Queryable, user: NewUser): Promise<UserRow | null> {
  const { id, organizationId, email, passwordHash, scope, createdAt } = user
  const { rows } = await db.query<UserRow>(
    `insert into users (id, organization_id, email, password_hash, scope, created_at, ${CREATOR_COLUMNS})
      values ($1, $2, $3, $4, $5, $6::timestamptz, $7, $8, $9)
      on conflict (lower(email)) do nothing
      returning ${COLUMNS}`,
    [id, organizationId, email, passwordHash, scope, timestamp(createdAt), ...creatorValues(user.createdBy)],
  )
  return rows[0] ?? null
}

/** In order of creation. */
export async function listUsers(
  db: Queryable,
  organizationId: string,
  { limit, after }: PageRequest,
): Promise<UserRow[]> {
  const { rows } = await db.query<UserRow>(
    `select ${COLUMNS} from users
      where organization_id = $1 and ($3::uuid is null or (created_at, id) > ($2::timestamptz, $3))
      order by created_at, id limit $4`,
    [organizationId, timestamp(after?.at ?? null), after?.id ?? null, limit],
  )
  return rows
}

/** Users, and keys of the whole organization that never expire. The caller holds the organization's lock. */
export async function countAdmins(tx: Queryable, organizationId: string): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(
    `select (select count(*) from users where organization_id = $1 and scope = 'admin')
      + (select count(*) from api_keys where organization_id = $1 and scope = 'admin' and project_id is null
          and expires_at is null) as count`,
    [organizationId],
  )
  return rows[0]!.count
}

/** Null when the organization has no such user. */
export async function findUserOf(db: Queryable, organizationId: string, id: string): Promise<UserRow | null> {
  const text = `select ${COLUMNS} from users where id = $1 and organization_id = $2`
  const { rows } = await db.query<UserRow>(text, [id, organizationId])
  return rows[0] ?? null
}

/** Also locks the user's row, so that its sessions stay as they are until the transaction ends. Null stays as it is. */
export async function updateUser(
  tx: Queryable,
  organizationId: string,
  id: string,
  { scope, passwordHash }: { scope: Scope | null; passwordHash: string | null },
): Promise<UserRow | null> {
  const { rows } = await tx.query<UserRow>(
    `update users set scope = coalesce($3, scope), password_hash = coalesce($4, password_hash)
      where id = $1 and organization_id = $2 returning ${COLUMNS}`,
    [id, organizationId, scope, passwordHash],
  )
  return rows[0] ?? null
}

/** Also deletes the user's sessions and refresh tokens. Null when the organization has no such user. */
export async function deleteUser(db: Queryable, organizationId: string, id: string): Promise<UserRow | null> {
  const text = `delete from users where id = $1 and organization_id = $2 returning ${COLUMNS}`
  const { rows } = await db.query<UserRow>(text, [id, organizationId])
  return rows[0] ?? null
}

export interface KnownUser {
  readonly id: string
  readonly email: string
  readonly organizationId: string
  readonly scope: Scope
}

export interface UserWithHash extends KnownUser {
  readonly passwordHash: string
}

const KNOWN = 'u.id, u.organization_id as "organizationId", u.email, u.scope'

/** Null when there is no such user. */
export async function findUser(db: Queryable, id: string): Promise<KnownUser | null> {
  const { rows } = await db.query<KnownUser>({
    name: 'find_user',
    text: `select ${KNOWN} from users u where u.id = $1`,
    values: [id],
  })
  return rows[0] ?? null
}

/** For authentication: by the ids in an access token. Null when the session has ended or expired, or the user is gone. */
export async function findUserOfSession(
  db: Queryable,
  id: string,
  sessionId: string,
  now: Instant,
): Promise<(KnownUser & { readonly lastUsedAt: Instant }) | null> {
  const { rows } = await db.query<KnownUser & { readonly lastUsedAt: Instant }>({
    name: 'find_user_of_session',
    text: `select ${KNOWN}, s.last_used_at as "lastUsedAt" from sessions s join users u on u.id = s.user_id
      where s.id = $2 and u.id = $1 and s.expires_at > $3::timestamptz`,
    values: [id, sessionId, timestamp(now)],
  })
  return rows[0] ?? null
}

export interface DashboardUser extends KnownUser {
  readonly sessionId: string
  readonly lastUsedAt: Instant
}

/** By the hashes of their tokens in hex. Sessions that have ended or expired are left out. */
export async function findUsersOfDashboard(
  db: Queryable,
  tokenHashes: readonly string[],
  now: Instant,
): Promise<Map<string, DashboardUser>> {
  const { rows } = await db.query<DashboardUser & { readonly tokenHash: string }>({
    name: 'find_users_of_dashboard',
    text: `select ${KNOWN}, s.id as "sessionId", s.last_used_at as "lastUsedAt", encode(s.token_hash, 'hex') as "tokenHash"
      from sessions s join users u on u.id = s.user_id
      where s.token_hash = any($1::bytea[]) and s.kind = 'dashboard' and s.expires_at > $2::timestamptz`,
    values: [tokenHashes.map((hash) => `\\x${hash}`), timestamp(now)],
  })
  return new Map(rows.map(({ tokenHash, ...user }) => [tokenHash, user]))
}

/** For log-in, and for tokens of issuers: by the address, in lower case. */
export async function findUserByEmail(db: Queryable, email: string): Promise<UserWithHash | null> {
  const { rows } = await db.query<UserWithHash>(
    `select ${KNOWN}, u.password_hash as "passwordHash" from users u
      where lower(u.email) = $1`,
    [email],
  )
  return rows[0] ?? null
}

/** Until the transaction ends, the user stays, with this password. Null when it has another one, or is gone. */
export async function lockUser(tx: Queryable, id: string, passwordHash: string): Promise<UserWithHash | null> {
  const { rows } = await tx.query<UserWithHash>(
    `select ${KNOWN}, u.password_hash as "passwordHash" from users u where u.id = $1 and u.password_hash = $2 for no key update`,
    [id, passwordHash],
  )
  return rows[0] ?? null
}

/** Until the transaction ends, the user's sessions stay as they are. False when the user is gone. */
export async function lockSessionsOf(tx: Queryable, id: string): Promise<boolean> {
  const { rowCount } = await tx.query('select from users where id = $1 for no key update', [id])
  return rowCount === 1
}

/** False when the stored hash is no longer `from`. */
export async function replacePasswordHash(db: Queryable, id: string, from: string, to: string): Promise<boolean> {
  const text = 'update users set password_hash = $3 where id = $1 and password_hash = $2'
  const { rowCount } = await db.query(text, [id, from, to])
  return rowCount === 1
}
