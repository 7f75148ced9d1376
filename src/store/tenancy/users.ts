/** Users. An e-mail address is unique over all organizations, without regard to case. */

import type { Scope } from '../../domain/access.ts'
import type { Instant } from '../../domain/check.ts'
import type { PageRequest } from '../../domain/page.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface UserRow {
  readonly id: string
  readonly email: string
  readonly scope: Scope
  readonly createdAt: Instant
}

const COLUMNS = `id, email, scope, created_at as "createdAt"`

export interface NewUser extends UserRow {
  readonly organizationId: string
  readonly passwordHash: string
}

/** Null when the address is taken. */
export async function insertUser(db: Queryable, user: NewUser): Promise<UserRow | null> {
  const { rows } = await db.query<UserRow>(
    `insert into users (id, organization_id, email, password_hash, scope, created_at)
      values ($1, $2, $3, $4, $5, $6::timestamptz)
      on conflict (lower(email)) do nothing
      returning ${COLUMNS}`,
    [user.id, user.organizationId, user.email, user.passwordHash, user.scope, timestamp(user.createdAt)],
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

/** The admins of an organization. The caller holds its lock, so the count stays right until the transaction ends. */
export async function countAdmins(tx: Queryable, organizationId: string): Promise<number> {
  const text = `select count(*) as count from users where organization_id = $1 and scope = 'admin'`
  const { rows } = await tx.query<{ count: number }>(text, [organizationId])
  return rows[0]!.count
}

/** Null when the organization has no such user. */
export async function findScope(db: Queryable, organizationId: string, id: string): Promise<Scope | null> {
  const text = 'select scope from users where id = $1 and organization_id = $2'
  const { rows } = await db.query<{ scope: Scope }>(text, [id, organizationId])
  return rows[0]?.scope ?? null
}

/** Also deletes the user's refresh tokens. False when the organization has no such user. */
export async function deleteUser(db: Queryable, organizationId: string, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from users where id = $1 and organization_id = $2', [id, organizationId])
  return rowCount === 1
}

export interface KnownUser {
  readonly id: string
  readonly organizationId: string
  readonly scope: Scope
}

/** For authentication: by the id in an access token. */
export async function findUser(db: Queryable, id: string): Promise<KnownUser | null> {
  const { rows } = await db.query<KnownUser>({
    name: 'find_user',
    text: 'select id, organization_id as "organizationId", scope from users where id = $1',
    values: [id],
  })
  return rows[0] ?? null
}

/** For log-in, and for tokens of issuers: by the address. */
export async function findUserByEmail(
  db: Queryable,
  email: string,
): Promise<(KnownUser & { readonly passwordHash: string }) | null> {
  const { rows } = await db.query<KnownUser & { readonly passwordHash: string }>(
    `select id, organization_id as "organizationId", scope, password_hash as "passwordHash" from users where lower(email) = lower($1)`,
    [email],
  )
  return rows[0] ?? null
}

/** Does nothing when the stored hash is no longer `from`. */
export async function renewPasswordHash(db: Queryable, id: string, from: string, to: string): Promise<void> {
  await db.query('update users set password_hash = $3 where id = $1 and password_hash = $2', [id, from, to])
}
