/**
 * Counters, shared by the replicas and dated by the database's clock. A window starts with its first call, or follows the one before without a
 * pause, and then also counts the share of that one that lies within the last `seconds`, as if its calls had been evenly spread. A rejected
 * call is not counted.
 */

import type { Queryable } from '../postgres/database.ts'

export interface RateWindow {
  readonly bucket: string
  readonly limit: number
  readonly seconds: number
}

export interface Slid {
  readonly isAllowed: boolean
  /** Calls that count now, with this one. */
  readonly counted: number
  /** Until a call is allowed again, when none is; at least 1. Otherwise until the present window ends. */
  readonly resetSeconds: number
}

/** One statement: the row's lock lets exactly as many calls through as the limit allows, however many replicas take them at once. */
export async function takeFromSlidingWindow(db: Queryable, { bucket, limit, seconds }: RateWindow): Promise<Slid> {
  const { rows } = await db.query<{ used: number; previous: number; isRejected: boolean; age: number }>({
    name: 'take_from_sliding_window',
    // `age` can be negative, because the statement waited for the row after the start of its transaction, now(). After the server's
    // clock was set back a window in the future must not reject calls for long: then a new one begins.
    text: `insert into rate_windows as w (bucket, started_at, used) values ($1, now(), 1)
      on conflict (bucket) do update set (started_at, used, previous, is_rejected) = (
        select n.started_at, n.used + (not r.is_full)::int, n.previous, r.is_full
        from extract(epoch from now() - w.started_at) age
          cross join lateral (
            select w.started_at, w.used, w.previous, age where abs(age) < $3::int
            union all
            select w.started_at + $3::int * interval '1 second', 0, w.used, age - $3::int where age >= $3::int and age < 2 * $3::int
            union all
            select now(), 0, 0, 0 where age <= -$3::int or age >= 2 * $3::int) n (started_at, used, previous, age)
          cross join lateral (
            select n.used + floor(n.previous * (1 - greatest(n.age, 0) / $3::int)) >= $2::int) r (is_full))
      returning used, previous, is_rejected as "isRejected", greatest(extract(epoch from now() - started_at), 0)::float8 as age`,
    values: [bucket, limit, seconds],
  })
  const { used, previous, isRejected, age } = rows[0]!
  const counted = used + Math.floor(previous * (1 - age / seconds))
  const waitSeconds = counted < limit ? seconds - age : untilFree({ used, previous, age }, { limit, seconds })
  return { isAllowed: !isRejected, counted, resetSeconds: Math.max(1, Math.ceil(waitSeconds)) }
}

/** Seconds until `used` and the share of `previous` are below the limit. */
function untilFree(
  { used, previous, age }: { used: number; previous: number; age: number },
  { limit, seconds }: Pick<RateWindow, 'limit' | 'seconds'>,
): number {
  // The share of n calls of the window before is below m when the present window is older than (1 - m / n) of its length.
  const ageBelow = (calls: number, most: number) => Math.max(0, (1 - most / calls) * seconds)
  return used < limit ? ageBelow(previous, limit - used) - age : seconds - age + ageBelow(used, limit)
}
