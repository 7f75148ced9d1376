/**
 * Refresh tokens, by their SHA-256. Every transaction that changes a family first locks its user's row, so that a family that is being ended
 * gets no new token. A family is a session (sessions.ts), which deletes it.
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

/** The caller holds the lock of the user's row. */
export async function insertRefreshToken(tx: Queryable, token: NewRefreshToken): Promise<void> {
  await tx.query(
    `insert into refresh_tokens (token_hash, family_id, user_id, expires_at, created_at)
      values ($1, $2, $3, $4::timestamptz, $5::timestamptz)`,
    [token.hash, token.familyId, token.userId, timestamp(token.expiresAt), timestamp(token.createdAt)],
  )
}

/** By their hashes in hex, without a lock: what strangers send costs no more. Unknown tokens are left out. */
export async function findRefreshTokens(db: Queryable, hashes: readonly string[]): Promise<Map<string, true>> {
  const { rows } = await db.query<{ hash: string }>({
    name: 'find_refresh_tokens',
    text: `select encode(token_hash, 'hex') as hash from refresh_tokens where token_hash = any($1::bytea[])`,
    values: [hashes.map((hash) => `\\x${hash}`)],
  })
  return new Map(rows.map(({ hash }) => [hash, true]))
}

/** Null when no such token is known. */
export async function lockFamily(
  tx: Queryable,
  hash: Buffer,
): Promise<{ readonly familyId: string; readonly user: KnownUser } | null> {
  const { rows } = await tx.query<KnownUser & { familyId: string }>(
    `select t.family_id as "familyId", u.id, u.organization_id as "organizationId", u.email, u.scope
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
