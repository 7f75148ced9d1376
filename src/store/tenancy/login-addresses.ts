/** The addresses from which users have logged in lately. */

import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

/** Kept for each user: the latest ones. */
const MAX_ADDRESSES = 100

/** `address`: as `addressGroup` writes it. */
export async function noteLoginAddress(tx: Queryable, userId: string, address: string, now: Instant): Promise<void> {
  await tx.query(
    `insert into login_addresses (user_id, address, last_at) values ($1, $2, $3::timestamptz)
      on conflict (user_id, address) do update set last_at = excluded.last_at`,
    [userId, address, timestamp(now)],
  )
  await tx.query(
    `delete from login_addresses where user_id = $1 and address not in (
      select address from login_addresses where user_id = $1 order by last_at desc limit ${MAX_ADDRESSES})`,
    [userId],
  )
}

export async function hasLoginAddress(
  db: Queryable,
  userId: string,
  address: string,
  since: Instant,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'select from login_addresses where user_id = $1 and address = $2 and last_at >= $3::timestamptz',
    [userId, address, timestamp(since)],
  )
  return rowCount === 1
}
