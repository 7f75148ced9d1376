/**
 * Refresh tokens, by their SHA-256. Every transaction that changes a family first locks its user's row with `lockFamily`, so that
 * a family that is being ended gets no new token.
 */

import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import type { KnownUser } from './users.ts'

export interface NewRefreshToken {
  readonly hash: Buffer
  readonly familyId: string
  readonly userId: string
  readonly expiresAt: Instant
  readonly createdAt: Instant
}

/** False when the user is gone. */
export async function insertRefreshToken(db: Queryable, token: NewRefreshToken): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into refresh_tokens (token_hash, family_id, user_id, expires_at, created_at)
      select $1, $2, id, $4::timestamptz, $5::timestamptz from users where id = $3 for key share`,
    [token.hash, token.familyId, token.userId, timestamp(token.expiresAt), timestamp(token.createdAt)],
  )
  return rowCount === 1
}

/** Null when no such token is known. */
export async function lockFamily(
  tx: Queryable,
  hash: Buffer,
): Promise<{ readonly familyId: string; readonly user: KnownUser } | null> {
  const { rows } = await tx.query<KnownUser & { familyId: string }>(
    `select t.family_id as "familyId", u.id, u.organization_id as "organizationId", u.scope
      from refresh_tokens t join users u on u.id = t.user_id where t.token_hash = $1 for no key update of u`,
    [hash],
  )
  if (rows[0] === undefined) return null
  const { familyId, ...user } = rows[0]
  return { familyId, user }
}

/** One caller gets `spent now`, and only while the token is valid. `gone`: the family was ended during the wait. */
export async function spendRefreshToken(
  tx: Queryable,
  hash: Buffer,
  now: Instant,
): Promise<'spent now' | 'spent before' | 'expired' | 'gone'> {
  const { rowCount } = await tx.query(
    `update refresh_tokens set spent_at = $2::timestamptz
      where token_hash = $1 and spent_at is null and expires_at > $2::timestamptz`,
    [hash, timestamp(now)],
  )
  if (rowCount === 1) return 'spent now'
  const text = 'select spent_at is not null as "isSpent" from refresh_tokens where token_hash = $1'
  const { rows } = await tx.query<{ isSpent: boolean }>(text, [hash])
  if (rows[0] === undefined) return 'gone'
  return rows[0].isSpent ? 'spent before' : 'expired'
}

export async function deleteFamily(tx: Queryable, familyId: string): Promise<void> {
  await tx.query('delete from refresh_tokens where family_id = $1', [familyId])
}

/** Deletes at most `limit` tokens that expired before `now`. Returns how many. */
export async function deleteExpiredRefreshTokens(db: Queryable, now: Instant, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from refresh_tokens where token_hash in (
      select token_hash from refresh_tokens where expires_at <= $1::timestamptz limit $2 for update skip locked)`,
    [timestamp(now), limit],
  )
  return rowCount
}
