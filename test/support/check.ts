import { createCheck, type NewCheck } from '../../src/checks/create-check.ts'
import { NO_SPEC } from '../../src/checks/read-spec.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { CheckRecord } from '../../src/store/checks/checks.ts'
import type { Context } from '../../src/store/context.ts'
import type { TestTenant } from './tenant.ts'

export type CheckInput = Partial<Omit<NewCheck, 'spec'>> & { spec?: Partial<NewCheck['spec']> }

/** Creates a check with a period of an hour, unless a schedule is given, and a grace time of five minutes. */
export function addCheck(
  { database, clock = systemClock }: Pick<Context, 'database'> & Partial<Context>,
  tenant: TestTenant,
  { spec, ...input }: CheckInput = {},
): Promise<CheckRecord> {
  return createCheck({ database, clock }, tenant, {
    projectId: tenant.project,
    name: 'Nightly backup',
    ...input,
    spec: { ...NO_SPEC, periodSeconds: spec?.schedule === undefined ? 3_600 : null, graceSeconds: 300, ...spec },
  })
}

/** `Job 1` and so on, new, in the order of their numbers: in one statement, as rows alone. */
export async function addManyChecks(
  { database }: Pick<Context, 'database'>,
  projectId: string,
  { from = 1, to, description = null }: { from?: number; to: number; description?: string | null },
): Promise<void> {
  await database.query(
    `with made as (
        insert into checks (id, public_id, project_id, name, slug, description, created_at)
        select gen_random_uuid(), gen_random_uuid(), $1, 'Job ' || n, 'job-' || n, $4, timestamptz '2026-01-01' + n * interval '1 s'
        from generate_series($2::int, $3::int) n returning key, created_at)
      insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at)
      select key, 3600, 300, 0, created_at, created_at from made`,
    [projectId, from, to, description],
  )
}
