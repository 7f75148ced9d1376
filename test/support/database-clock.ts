/** A clock of the database that moves only when a test moves it: the times that are stored are exactly those of the test. */

import type { Instant } from '../../src/domain/check.ts'
import type { Database } from '../../src/store/postgres/database.ts'
import { timestamp } from '../../src/store/postgres/instants.ts'

/** Connections to `manualClockUrl(url)` find these functions before those of PostgreSQL. */
export async function createManualClock(database: Database, at: Instant): Promise<(at: Instant) => Promise<unknown>> {
  const time = `returns timestamptz language sql as 'select at from manual.clock'`
  await database.query(
    `create schema manual;
    create table manual.clock (at timestamptz not null);
    insert into manual.clock values (to_timestamp(${at} / 1000.0));
    create function manual.now() ${time} stable;
    create function manual.clock_timestamp() ${time} volatile`,
  )
  return (moment) => database.query('update manual.clock set at = $1::timestamptz', [timestamp(moment)])
}

export function manualClockUrl(url: string): string {
  const parsed = new URL(url)
  parsed.searchParams.set('options', '-c search_path=manual,public,pg_catalog')
  return parsed.href
}
