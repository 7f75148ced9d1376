import type { Database } from '../../src/store/postgres/database.ts'
import { addCheck, type CheckInput } from './check.ts'
import { addTenant, type TestTenant } from './tenant.ts'

/** The old names of addTenant and addCheck, for test/db/pings until that has moved. */
export type SeededTenant = TestTenant
export type SeededCheck = CheckInput & { now?: () => number }
export const seedTenant = (database: Database) => addTenant({ database })
export const seedCheck = (database: Database, tenant: TestTenant, { now, ...input }: SeededCheck = {}) =>
  addCheck(now === undefined ? { database } : { database, clock: { now } }, tenant, input)
