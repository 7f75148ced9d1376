/**
 * Sessions: one for each log-in, with a family of refresh tokens (`token`) or the hash of a token (`dashboard`). A
 * transaction that begins, renews or ends sessions first locks the row of their user, so that no session survives the
 * end of all. A transaction that only ends the earlier session of a browser takes no lock.
 */

import type { Instant } from '../../domain/check.ts'
import type { PageRequest } from '../../domain/page.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import type { KnownUser } from './users.ts'

export type SessionKind = 'token' | 'dashboard'

export interface SessionRow {
  readonly id: string
  readonly kind: SessionKind
  readonly createdAt: Instant
  readonly lastUsedAt: Instant
  /** The network address of the log-in, or of the last refresh. */
  readonly address: string
}

export interface NewSession {
  readonly id: string
  readonly userId: string
  readonly kind: SessionKind
  readonly address: string
  readonly now: Instant
  /** Of the token of the dashboard. */
  readonly tokenHash?: Buffer
}

/** How long a session lives without use, and in all. */
export interface SessionLife {
  readonly idleMs: number
  readonly mostMs: number
}

/** Of a user, of both kinds together. */
const MOST_SESSIONS = 50

/** Begins the session, or renews it. Returns when the session ends. */
export async function saveSession(tx: Queryable, session: NewSession, life: SessionLife): Promise<Instant> {
  const { id, userId, kind, address, now, tokenHash = null } = session
  const { rows } = await tx.query<{ expiresAt: Instant }>(
    `insert into sessions as s (id, user_id, kind, address, created_at, last_used_at, expires_at, token_hash)
      values ($1, $2, $3, $4, $5::timestamptz, $5::timestamptz, $6::timestamptz, $7)
      on conflict (id) do update set address = excluded.address, last_used_at = excluded.last_used_at,
        expires_at = least(excluded.expires_at, s.created_at + $8 * interval '1 millisecond')
      returning expires_at as "expiresAt"`,
    [id, userId, kind, address, timestamp(now), timestamp(now + life.idleMs), tokenHash, life.mostMs],
  )
  return rows[0]!.expiresAt
}

/** Ends sessions that are too many: those unused for longest. The caller has begun one, and holds the user's lock. */
export async function boundSessions(tx: Queryable, userId: string, now: Instant): Promise<void> {
  await tx.query(
    `with surplus as (
        select id from sessions where user_id = $1
        order by expires_at > $2::timestamptz desc, last_used_at desc, created_at desc, id desc offset ${MOST_SESSIONS}),
      tokens as (delete from refresh_tokens where user_id = $1 and family_id in (select id from surplus))
      delete from sessions where id in (select id from surplus)`,
    [userId, timestamp(now)],
  )
}

/** In order of creation, without those that have expired. */
export async function listSessions(
  db: Queryable,
  userId: string,
  now: Instant,
  { limit, after }: PageRequest,
): Promise<SessionRow[]> {
  const { rows } = await db.query<SessionRow>(
    `select id, kind, created_at as "createdAt", last_used_at as "lastUsedAt", address from sessions
      where user_id = $1 and expires_at > $2::timestamptz
        and ($4::uuid is null or (created_at, id) > ($3::timestamptz, $4))
      order by created_at, id limit $5`,
    [userId, timestamp(now), timestamp(after?.at ?? null), after?.id ?? null, limit],
  )
  return rows
}

/** Also deletes the refresh tokens. False when the user has no such session. */
export async function deleteSession(tx: Queryable, userId: string, id: string): Promise<boolean> {
  const { rows } = await tx.query<{ ended: number }>(
    `with session as (delete from sessions where id = $2 and user_id = $1 returning id),
        tokens as (delete from refresh_tokens where family_id = $2 and user_id = $1)
      select count(*) as ended from session`,
    [userId, id],
  )
  return rows[0]!.ended === 1
}

/** Deletes all sessions of the user but one, with their refresh tokens. `except` null: none is kept. */
export async function deleteSessions(tx: Queryable, userId: string, except: string | null): Promise<void> {
  await tx.query(
    `with tokens as (delete from refresh_tokens where user_id = $1 and ($2::uuid is null or family_id <> $2))
      delete from sessions where user_id = $1 and ($2::uuid is null or id <> $2)`,
    [userId, except],
  )
}

/**
 * Writes at most once in `everyMs`, over all replicas, and skips a locked row: another call is writing it. `life`: the
 * use puts off the end of the session; null: it does not.
 */
export async function touchSession(
  db: Queryable,
  id: string,
  now: Instant,
  everyMs: number,
  life: SessionLife | null,
): Promise<void> {
  await db.query({
    name: 'touch_session',
    text: `update sessions set last_used_at = $2::timestamptz, expires_at = coalesce(least(
        $2::timestamptz + $4 * interval '1 millisecond', created_at + $5 * interval '1 millisecond'), expires_at)
      where id = (
        select id from sessions where id = $1 and last_used_at <= $2::timestamptz - $3 * interval '1 millisecond'
        for no key update skip locked)`,
    values: [id, timestamp(now), everyMs, life?.idleMs ?? null, life?.mostMs ?? null],
  })
}

/** Those of `ids` that are no session, or no longer. */
export async function listEndedSessions(db: Queryable, ids: readonly string[], now: Instant): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'list_ended_sessions',
    text: `select given.id from unnest($1::uuid[]) given (id)
      where not exists (select from sessions s where s.id = given.id and s.expires_at > $2::timestamptz)`,
    values: [ids, timestamp(now)],
  })
  return rows.map(({ id }) => id)
}

// Refresh tokens, by their SHA-256
// ---------------------------------------------------------------------------------------------------------------------

/** The caller holds the lock of the user's row. */
export async function insertRefreshToken(
  tx: Queryable,
  hash: Buffer,
  { id, userId, now }: Pick<NewSession, 'id' | 'userId' | 'now'>,
  expiresAt: Instant,
): Promise<void> {
  await tx.query(
    `insert into refresh_tokens (token_hash, family_id, user_id, expires_at, created_at)
      values ($1, $2, $3, $4::timestamptz, $5::timestamptz)`,
    [hash, id, userId, timestamp(expiresAt), timestamp(now)],
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
