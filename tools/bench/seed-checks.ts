/** Checks in a database without a service, and a file with their public ids. */

import { writeFileSync } from 'node:fs'
import { createDatabase, type Database } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'

/** Migrates the database. Returns the public ids, in the order of their keys; with `file` it holds one a line. */
export async function seedChecks(url: string, count: number, file?: string): Promise<string[]> {
  const database = createDatabase({ url, name: 'seed', connections: 1, patient: true })
  await migrate(database)
  await database.query(`with o as (insert into organizations (id, name) values (gen_random_uuid(), 'bench') returning id)
    insert into projects (id, organization_id, name, slug) select gen_random_uuid(), id, 'bench', 'bench' from o`)
  await database.query(
    `insert into checks (id, public_id, project_id, name, slug, created_at)
     select gen_random_uuid(), gen_random_uuid(), p.id, 'check ' || n, 'check-' || n, now() from projects p, generate_series(1, $1::int) n
     where p.slug = 'bench'`,
    [count],
  )
  await database.query(
    'insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at) select key, 3600, 300, 0, now(), now() from checks',
  )
  await database.query('vacuum analyze')
  const { rows } = await database.query<{ public_id: string }>('select public_id from checks order by key')
  await database.close()
  const publicIds = rows.map((row) => row.public_id)
  if (file !== undefined) writeFileSync(file, publicIds.join('\n'))
  return publicIds
}

const SEED_AT_ONCE = 50_000

/** Checks of a migrated database that are up, expected once a day, and have `history` stored pings each. */
export async function seedPingedChecks(database: Database, count: number, history: number): Promise<void> {
  await database.query(`with o as (insert into organizations (id, name) values (gen_random_uuid(), 'bench') returning id)
    insert into projects (id, organization_id, name, slug) select gen_random_uuid(), id, 'bench', 'bench' from o`)
  for (let from = 1; from <= count; from += SEED_AT_ONCE) {
    await database.query(
      `insert into checks (id, public_id, project_id, name, slug, created_at)
       select gen_random_uuid(), gen_random_uuid(), p.id, 'check ' || n, 'check-' || n, now()
       from projects p, generate_series($1::int, $2::int) n where p.slug = 'bench'`,
      [from, Math.min(count, from + SEED_AT_ONCE - 1)],
    )
  }
  await database.query(`insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at, last_ping_at, last_success_at, expected_at, due_at, wake_at, pings_total)
    select key, 86400, 300, 1, now() - interval '2 days', now(), now(), now(), at, at + interval '5 minutes', at, 10
    from checks, lateral (select now() + interval '1 hour' + random() * interval '20 hours' as at) due`)
  // As they came: one of each check after the other.
  for (let n = 0; n < history; n += 1)
    await database.query(
      `insert into pings (id, check_key, type, source, created_at)
       select uuidv7(-interval '1 hour' * $1), key, 0, 0, now() - interval '1 hour' * $1 from checks`,
      [history - n],
    )
  await database.query('vacuum analyze')
}

/** Public ids, oldest check first. */
export async function readIds(database: Database): Promise<string[]> {
  const { rows } = await database.query<{ public_id: string }>('select public_id from checks order by key')
  return rows.map((row) => row.public_id)
}

export function shuffle<Item>(items: Item[]): Item[] {
  for (let last = items.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1))
    const item = items[last]!
    items[last] = items[other]!
    items[other] = item
  }
  return items
}
