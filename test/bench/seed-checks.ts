/** Checks in a database without a service, and a file with their public ids. */

import { writeFileSync } from 'node:fs'
import { createDatabase } from '../../src/store/postgres/database.ts'
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
