import type { Tenant } from '../domain/access.ts'
import type { AuditEntry } from '../domain/audit.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import { type EntryFilter, listEntryRows } from '../store/audit/entries.ts'
import type { Context } from '../store/context.ts'

/** Newest first. A tenant that is bound to a project sees the entries of that project only. */
export function listEntries(
  { database }: Pick<Context, 'database'>,
  tenant: Tenant,
  filter: EntryFilter,
  page: PageRequest,
): Promise<Page<AuditEntry>> {
  return readPage(page, ({ limit, after }) =>
    listEntryRows(database, tenant, filter, { beforeId: after?.id ?? null, limit }),
  )
}
