import type { Tenant } from '../domain/access.ts'
import type { AuditEntry } from '../domain/audit.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { type EntryFilter, listEntryRows } from '../store/audit/entries.ts'
import type { Context } from '../store/context.ts'

/** Newest first. A tenant that is bound to a project sees the entries of that project only. */
export async function listEntries(
  { database }: Pick<Context, 'database'>,
  tenant: Tenant,
  filter: EntryFilter,
  { limit, after }: PageRequest,
): Promise<Page<AuditEntry>> {
  const rows = await listEntryRows(database, tenant, filter, { beforeId: after?.id ?? null, limit: limit + 1 })
  return toPage(rows, limit)
}
