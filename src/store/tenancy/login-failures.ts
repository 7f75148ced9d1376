/** For each bucket the instants of its latest failures, as many as its limit: an exact window over all replicas. */

import type { Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'

export interface FailureBucket {
  readonly bucket: string
  /** The most failures within the window. */
  readonly limit: number
}

/** The most rows, whatever attackers send: some ten megabytes. Beyond it the oldest give way. */
export const MAX_BUCKETS = 50_000
const BATCH = 100

/** For each bucket the oldest of its latest `limit` failures: it is full until this one leaves the window. Null with fewer failures. */
export async function findFilled(db: Queryable, buckets: readonly FailureBucket[]): Promise<(Instant | null)[]> {
  const { rows } = await db.query<{ at: Instant | null }>({
    name: 'find_filled_login_failures',
    text: `select f.failed_at[cardinality(f.failed_at) - i.most + 1] as at
      from unnest($1::text[], $2::int[]) with ordinality i (bucket, most, place)
        left join login_failures f using (bucket)
      order by i.place`,
    values: [buckets.map(({ bucket }) => bucket), buckets.map(({ limit }) => limit)],
  })
  return rows.map(({ at }) => at)
}

/**
 * Locks the buckets until the transaction ends, in the given order, so that of failures at the same time only as many as are left pass. Give
 * buckets of the same kinds in the same order, or two transactions may wait for each other.
 */
export async function lockFailures(tx: Queryable, buckets: readonly FailureBucket[], now: Instant): Promise<void> {
  await tx.query({
    name: 'lock_login_failures',
    text: `insert into login_failures as f (bucket, failed_at, last_at) select bucket, '{}', $2::timestamptz from unnest($1::text[]) bucket
      on conflict (bucket) do update set last_at = excluded.last_at`,
    values: [buckets.map(({ bucket }) => bucket), timestamp(now)],
  })
}

/** Adds a failure to each bucket. The caller holds their locks. */
export async function addFailure(tx: Queryable, buckets: readonly FailureBucket[], now: Instant): Promise<void> {
  await tx.query({
    name: 'add_login_failure',
    text: `update login_failures f set
        failed_at = (f.failed_at || $3::timestamptz)[greatest(cardinality(f.failed_at) + 2 - i.most, 1):],
        last_at = $3::timestamptz
      from unnest($1::text[], $2::int[]) i (bucket, most) where f.bucket = i.bucket`,
    values: [buckets.map(({ bucket }) => bucket), buckets.map(({ limit }) => limit), timestamp(now)],
  })
}

/** Deletes some buckets that were last locked before `before`, and the oldest ones while there are more than `most`. */
export async function boundFailures(tx: Queryable, before: Instant, most = MAX_BUCKETS): Promise<void> {
  await tx.query({
    name: 'bound_login_failures',
    text: `delete from login_failures where bucket = any(array(
      select bucket from login_failures
      where last_at < $1::timestamptz or (select count(*) from (select from login_failures limit $2::int + 1) found) > $2
      order by last_at limit ${BATCH} for update skip locked))`,
    values: [timestamp(before), most],
  })
}
