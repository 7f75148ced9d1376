import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { BOOTSTRAP_LOCK } from '../postgres/locks.ts'

export async function insertOrganization(
  db: Queryable,
  { id, name, createdAt }: { id: string; name: string; createdAt: Instant },
): Promise<void> {
  const values = [id, name, timestamp(createdAt)]
  await db.query('insert into organizations (id, name, created_at) values ($1, $2, $3::timestamptz)', values)
}

/** Its id; null when the database has no organization. */
export async function findOldestOrganization(db: Queryable): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>('select id from organizations order by created_at, id limit 1')
  return rows[0]?.id ?? null
}

/** Until the transaction ends, no other replica makes the first organization. */
export async function lockBootstrap(tx: Queryable): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [BOOTSTRAP_LOCK])
}

/** Serialises the transactions that decide about the organization's users and projects. */
export async function lockOrganization(tx: Queryable, id: string): Promise<void> {
  await tx.query('select from organizations where id = $1 for no key update', [id])
}

/** The organization's name, and the user's address when the user belongs to it; null when there is no such organization. */
export async function describeOrganization(
  db: Queryable,
  id: string,
  userId: string | null,
): Promise<{ name: string; email: string | null } | null> {
  const { rows } = await db.query<{ name: string; email: string | null }>(
    `select o.name, u.email from organizations o left join users u on u.organization_id = o.id and u.id = $2 where o.id = $1`,
    [id, userId],
  )
  return rows[0] ?? null
}
