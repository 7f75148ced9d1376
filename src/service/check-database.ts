import type { Context } from '../store/context.ts'
import { findOldestOrganization } from '../store/tenancy/organizations.ts'

/** The returned function throws AppError `unavailable` while the database does not respond. Calls share a statement. */
export function createDatabaseCheck({ database }: Pick<Context, 'database'>): () => Promise<void> {
  let running: Promise<void> | null = null
  return () => {
    running ??= findOldestOrganization(database)
      .then(() => {})
      .finally(() => {
        running = null
      })
    return running
  }
}
