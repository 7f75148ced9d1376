import type { Context } from '../store/context.ts'
import { findOldestOrganization } from '../store/tenancy/organizations.ts'

/**
 * The returned function reads something, and throws AppError `unavailable` while the database does not respond. Calls at the same time share one
 * statement, because every client may ask.
 */
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
