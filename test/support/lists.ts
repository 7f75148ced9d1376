import { type ListedCheck, listChecks as streamChecks } from '../../src/checks/find-checks.ts'
import { type PingFilter, type PingRecord, listPings as stream } from '../../src/checks/find-history.ts'
import type { Tenant } from '../../src/domain/access.ts'
import type { Page, PageRequest } from '../../src/domain/page.ts'
import type { Context } from '../../src/store/context.ts'

export { listFlips } from '../../src/checks/find-history.ts'

/** The pings of a check as one page, with their bodies unless `filter` says otherwise. */
export async function listPings(
  context: Context,
  tenant: Tenant,
  checkId: string,
  request: PageRequest,
  filter: Partial<Parameters<typeof stream>[3]> & PingFilter = {},
): Promise<Page<PingRecord>> {
  const rows: PingRecord[] = []
  let next: Page<PingRecord>['next'] = null
  for await (const page of stream(context, tenant, checkId, { body: 'full', ...filter }, request)) {
    rows.push(...page.rows)
    next = page.next
  }
  return { rows, next }
}

/** The checks of a project as one page. */
export async function listChecks(...given: Parameters<typeof streamChecks>): Promise<Page<ListedCheck>> {
  const rows: ListedCheck[] = []
  let next: Page<ListedCheck>['next'] = null
  for await (const page of streamChecks(...given)) {
    rows.push(...page.rows)
    next = page.next
  }
  return { rows, next }
}
