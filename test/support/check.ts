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
