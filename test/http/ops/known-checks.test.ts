/** The api role knows checks that it has not seen: its loop reads them. */

import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import type { Database } from '../../../src/store/postgres/database.ts'
import { startTestApp } from '../../support/app.ts'
import { eventually } from '../../support/until.ts'

const CHECKS = 3

it('a process knows the checks that are there when it starts', async () => {
  await using app = await startTestApp({ prepare: addChecks })
  const knows = async () => {
    const text = await (await fetch(`${app.opsUrl}/metrics`)).text()
    return /^heartbeat_known_checks (\d+)$/m.exec(text)?.[1]
  }
  await eventually('all checks are known', async () => (await knows()) === String(CHECKS))
  expect(await knows()).toBe(String(CHECKS))
})

async function addChecks(database: Database): Promise<void> {
  const [organization, project] = [randomUUID(), randomUUID()]
  await database.query(`insert into organizations (id, name) values ($1, 'Test')`, [organization])
  await database.query(`insert into projects (id, organization_id, name, slug) values ($1, $2, 'Test', 'known')`, [
    project,
    organization,
  ])
  await database.query(
    `insert into checks (id, public_id, project_id, name, slug, created_at)
     select gen_random_uuid(), gen_random_uuid(), $1, 'check', 'check-' || n, now() from generate_series(1, $2::int) n`,
    [project, CHECKS],
  )
}
