/**
 * Counters of fixed windows, shared by the replicas and dated by the database's clock. A window starts with its first call.
 * `used` grows up to one more than the limit, which means that a call was rejected; a rejected call changes nothing else.
 */

import type { Queryable } from '../postgres/database.ts'

export interface RateWindow {
  readonly bucket: string
  readonly limit: number
  readonly seconds: number
}

export interface Taken {
  readonly isAllowed: boolean
  readonly used: number
  /** Until the window ends; at least 1. */
  readonly resetSeconds: number
}

/** One statement: the row's lock lets exactly `limit` calls through, however many replicas take them at once. */
export async function takeFromWindow(db: Queryable, { bucket, limit, seconds }: RateWindow): Promise<Taken> {
  const { rows } = await db.query<{ used: number; leftSeconds: number }>({
    name: 'take_from_window',
    // A window can begin after now(), the start of this transaction, because the statement waited for the row. After the
    // server's clock was set back it is in the future, which must not reject calls for longer than the window's length.
    text: `insert into rate_windows as w (bucket, started_at, used) values ($1, now(), 1)
      on conflict (bucket) do update set
        started_at = case when abs(extract(epoch from now() - w.started_at)) < $3::int then w.started_at else now() end,
        used = case when abs(extract(epoch from now() - w.started_at)) < $3::int then least(w.used, $2) + 1 else 1 end
      returning used, extract(epoch from started_at - now())::float8 + $3::int as "leftSeconds"`,
    values: [bucket, limit, seconds],
  })
  const { used, leftSeconds } = rows[0]!
  return { isAllowed: used <= limit, used: Math.min(used, limit), resetSeconds: toWholeSeconds(leftSeconds, seconds) }
}

/** Seconds until all these windows allow a call; null when all allow one now. Counts nothing. */
export async function findFullWindow(db: Queryable, windows: readonly RateWindow[]): Promise<number | null> {
  const { rows } = await db.query<{ leftSeconds: number | null }>({
    name: 'find_full_window',
    text: `select max(extract(epoch from w.started_at - now())::float8 + i.seconds) as "leftSeconds"
      from unnest($1::text[], $2::int[], $3::int[]) i (bucket, most, seconds)
        join rate_windows w using (bucket)
      where w.used >= i.most and abs(extract(epoch from now() - w.started_at)) < i.seconds`,
    values: [windows.map((one) => one.bucket), windows.map((one) => one.limit), windows.map((one) => one.seconds)],
  })
  const left = rows[0]!.leftSeconds
  return left === null ? null : toWholeSeconds(left, Math.max(...windows.map((one) => one.seconds)))
}

/** After a success: removes the bucket `cleared`, and takes one from the count of `givenBack`. */
export async function forgiveWindows(db: Queryable, cleared: string, givenBack: string): Promise<void> {
  await db.query(
    `with cleared as (delete from rate_windows where bucket = $1)
      update rate_windows set used = greatest(used - 1, 0) where bucket = $2`,
    [cleared, givenBack],
  )
}

/** Deletes at most `limit` windows that began more than `seconds` ago. Returns how many. */
export async function deleteOldWindows(db: Queryable, seconds: number, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from rate_windows where bucket in (
      select bucket from rate_windows where started_at < now() - $1 * interval '1 second' limit $2 for update skip locked)`,
    [seconds, limit],
  )
  return rowCount
}

function toWholeSeconds(left: number, most: number): number {
  return Math.min(Math.max(Math.ceil(left), 1), most)
}
