/** What migrations do to rows that are there already, and to others who use the database meanwhile. */

import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { explainDatabaseError, mayPass } from '../../src/store/postgres/explain.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const FOLDER = new URL('../../src/store/postgres/migrations/', import.meta.url)
const FILES = readdirSync(FOLDER).sort()

let test: TestDatabase
beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(() => test.close())
beforeEach(async () => {
  await test.database.query('drop schema public cascade')
  await test.database.query('create schema public; create extension pg_trgm')
})

/** Applies those of the files that belong to versions `from` to `to`. */
async function apply(from: number, to: number): Promise<void> {
  for (const file of FILES.slice(from - 1, to)) await test.database.query(readFileSync(new URL(file, FOLDER), 'utf8'))
}

it('0004 finds the last success of a check that is not up, and how long its last run took, in its history', async () => {
  await apply(1, 3)
  await test.database.query(`
    insert into organizations (id, name) values ('00000000-0000-0000-0000-000000000001', 'Some');
    insert into projects (id, organization_id, name, slug) values ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001', 'Some', 'some');
    insert into checks (id, public_id, project_id, name, slug, created_at)
      select gen_random_uuid(), gen_random_uuid(), '00000000-0000-0000-0000-000000000002', slug, slug, now()
      from unnest(array['never', 'up', 'failing', 'forgotten', 'pruned']) with ordinality as made (slug, place) order by place;
    insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at, last_ping_at)
      select key, 60, 60, status, now(), now(), last_ping_at::timestamptz
      from checks join (values ('never', 0, null), ('up', 1, '2026-01-01 00:00:03.007Z'), ('failing', 2, '2026-01-01 00:00:05Z'),
        ('forgotten', 3, '2026-01-01 00:00:01Z'), ('pruned', 1, '2026-01-01 00:00:09Z')) s (slug, status, last_ping_at) using (slug);
    insert into pings (id, check_key, type, duration_ms, source, created_at)
      select lpad(to_hex(number), 32, '0')::uuid, key, type, duration_ms, 0, at::timestamptz
      from checks join (values ('up', 1, 0, 1000, '2026-01-01 00:00:01Z'), ('up', 2, 0, 2000, '2026-01-01 00:00:03.007456Z'),
        ('up', 3, 1, null, '2026-01-01 00:00:04Z'), ('failing', 4, 0, 4000, '2026-01-01 00:00:01Z'),
        ('failing', 5, 0, 5000, '2026-01-01 00:00:02.001999Z'), ('failing', 6, 2, 6000, '2026-01-01 00:00:04Z'),
        ('failing', 7, 2, null, '2026-01-01 00:00:05Z')) p (slug, number, type, duration_ms, at) using (slug)`)
  await apply(4, 4)
  const { rows } = await test.database.query(
    `select slug, last_success_at, last_duration_ms from checks join check_states on check_key = key order by key`,
  )
  expect(rows).toEqual([
    { slug: 'never', last_success_at: null, last_duration_ms: null },
    { slug: 'up', last_success_at: null, last_duration_ms: null },
    { slug: 'failing', last_success_at: Date.parse('2026-01-01T00:00:02.001Z'), last_duration_ms: null },
    { slug: 'forgotten', last_success_at: null, last_duration_ms: null },
    { slug: 'pruned', last_success_at: null, last_duration_ms: null },
  ])
})

it('0007 leaves checks without tags: those from before, and those of replicas that do not know tags yet', async () => {
  await apply(1, 6)
  const insert = (slug: string) =>
    test.database.query(
      `insert into checks (id, public_id, project_id, name, slug, created_at)
        select gen_random_uuid(), gen_random_uuid(), id, $1, $1, now() from projects`,
      [slug],
    )
  await test.database.query(`
    insert into organizations (id, name) values ('00000000-0000-0000-0000-000000000001', 'Some');
    insert into projects (id, organization_id, name, slug) values ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001', 'Some', 'some')`)
  await insert('before')
  await apply(7, 7)
  await insert('after')
  const { rows } = await test.database.query('select slug, tags from checks order by key')
  expect(rows).toEqual([
    { slug: 'before', tags: [] },
    { slug: 'after', tags: [] },
  ])
})

it('0026 gives projects from before a badge key each, and no ping key', async () => {
  await apply(1, FILES.indexOf('0026_project_keys.sql'))
  await test.database.query(`
    insert into organizations (id, name) values ('00000000-0000-0000-0000-000000000001', 'Some');
    insert into projects (id, organization_id, name, slug)
      select gen_random_uuid(), '00000000-0000-0000-0000-000000000001', 'Some', slug from unnest(array['one', 'two', 'three']) slug`)
  const place = FILES.indexOf('0026_project_keys.sql') + 1
  await apply(place, place)
  const { rows } = await test.database.query<{ ping_key: null; badge_key: string }>(
    'select ping_key, badge_key from projects',
  )
  for (const row of rows) expect(row).toEqual({ ping_key: null, badge_key: expect.stringMatching(/^[A-Za-z0-9]{22}$/) })
  expect(new Set(rows.map(({ badge_key }) => badge_key)).size).toBe(3)
})

it('labels: checks from before have none, nor have those of replicas that do not know labels yet', async () => {
  const file = FILES.findIndex((name) => name.endsWith('_labels.sql')) + 1
  await apply(1, file - 1)
  const insert = (slug: string) =>
    test.database.query(
      `with check_row as (
          insert into checks (id, public_id, project_id, name, slug, created_at)
          select gen_random_uuid(), gen_random_uuid(), id, $1, $1, now() from projects returning key)
        insert into alerts (channel_id, check_key, labels, annotations, starts_at, tell_at)
        select gen_random_uuid(), key, '{}', '{}', now(), now() from check_row`,
      [slug],
    )
  await test.database.query(`
    insert into organizations (id, name) values ('00000000-0000-0000-0000-000000000001', 'Some');
    insert into projects (id, organization_id, name, slug) values ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000001', 'Some', 'some')`)
  await insert('before')
  await apply(file, file)
  await insert('after')
  const { rows } = await test.database.query(
    'select slug, c.labels, check_labels from checks c join alerts on check_key = key order by key',
  )
  expect(rows).toEqual([
    { slug: 'before', labels: {}, check_labels: {} },
    { slug: 'after', labels: {}, check_labels: {} },
  ])
})

it('a table that another session keeps locked is not waited for: all is as before, and the next start tries again', async () => {
  await apply(1, 3)
  await test.database.query(`
    create table schema_migrations (version int primary key, name text not null, applied_at timestamptz not null default now());
    insert into schema_migrations (version, name) values (1, ''), (2, ''), (3, '')`)
  // As the start has it: without this migration's own limit it would wait for as long as the lock is there.
  const database = createDatabase({ url: test.url, name: 'start', connections: 2, patient: true })
  onTestFinished(() => database.close())
  const { locked, unlock } = lockCheckStates()
  onTestFinished(unlock)
  await locked

  const error = await migrate(database).catch((problem: unknown) => problem)
  expect(error).toMatchObject({ cause: { code: '55P03' } })
  expect(mayPass(error, false)).toBe(true)
  expect(explainDatabaseError(error, test.url)).toBe(
    `DATABASE_URL: another session on ${new URL(test.url).host} keeps a table locked (a dump? a long query?): end it, then start again`,
  )
  expect(await versionOf()).toBe(3)

  await unlock()
  expect(await migrate(database)).toEqual({ from: 3, to: FILES.length })
  expect(await versionOf()).toBe(FILES.length)
})

/** As pg_dump does, in a transaction of its own that lasts until `unlock`. */
function lockCheckStates(): { locked: Promise<void>; unlock: () => Promise<void> } {
  const isLocked = Promise.withResolvers<void>()
  const isOver = Promise.withResolvers<void>()
  const holding = test.database.transaction(async (tx) => {
    await tx.query('lock table check_states in access share mode')
    isLocked.resolve()
    await isOver.promise
  })
  holding.catch(isLocked.reject)
  return {
    locked: isLocked.promise,
    async unlock() {
      isOver.resolve()
      await holding
    },
  }
}

async function versionOf(): Promise<number> {
  const { rows } = await test.database.query<{ version: number }>(
    'select max(version) as version from schema_migrations',
  )
  return rows[0]!.version
}
