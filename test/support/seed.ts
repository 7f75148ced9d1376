/** Rows for tests that are about something else than making them. */

import { randomUUID } from 'node:crypto'
import { createCheck, type NewCheck } from '../../src/checks/create-check.ts'
import type { Tenant } from '../../src/domain/access.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { CheckRecord } from '../../src/store/checks/checks.ts'
import type { Database } from '../../src/store/postgres/database.ts'

export interface SeededTenant extends Tenant {
  readonly organizationId: string
  readonly projectId: string
}

export async function seedTenant(database: Database): Promise<SeededTenant> {
  const organizationId = randomUUID()
  const projectId = randomUUID()
  await database.query('insert into organizations (id, name) values ($1, $2)', [organizationId, 'Test'])
  await database.query('insert into projects (id, organization_id, name, slug) values ($1, $2, $3, $4)', [
    projectId,
    organizationId,
    'Test',
    'test',
  ])
  return { organizationId, projectId }
}

export type SeededCheck = Partial<Omit<NewCheck, 'spec'>> & { spec?: Partial<NewCheck['spec']>; now?: () => number }

/** A check of an hour and five minutes of grace, unless said otherwise. */
export function seedCheck(
  database: Database,
  tenant: SeededTenant,
  { spec, now = systemClock.now, ...input }: SeededCheck = {},
): Promise<CheckRecord> {
  return createCheck({ database, clock: { now } }, tenant, {
    projectId: tenant.projectId,
    name: 'Nightly backup',
    ...input,
    spec: {
      periodSeconds: spec?.schedule === undefined ? 3_600 : null,
      schedule: null,
      timeZone: null,
      graceSeconds: 300,
      maxRuntimeSeconds: null,
      ...spec,
    },
  })
}
