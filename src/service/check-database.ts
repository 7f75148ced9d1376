import type { Context } from '../store/context.ts'
import { findOldestOrganization } from '../store/tenancy/organizations.ts'

/** Reads something. Throws AppError `unavailable` while the database does not respond. */
export async function checkDatabase({ database }: Pick<Context, 'database'>): Promise<void> {
  await findOldestOrganization(database)
}
