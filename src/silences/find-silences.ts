/** Reading silences. An unknown, a malformed and another tenant's id all give `not_found`. */

import type { Tenant } from '../domain/access.ts'
import type { Act, AuditAction } from '../domain/audit.ts'
import type { Instant } from '../domain/check.ts'
import { notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import { nextStart } from '../domain/silence.ts'
import type { Context } from '../store/context.ts'
import {
  findCovering,
  findSilenceIds,
  findSilenceRow,
  listSilenceRows,
  type SilenceFilter,
  type SilenceRow,
  spanOf,
  timesOf,
} from '../store/silences/silences.ts'

export interface SilenceRecord extends Omit<SilenceRow, 'organizationId'> {
  /** Until when the silence that holds now does; null: none holds. */
  readonly activeUntil: Instant | null
  /** When it begins next; null: not again. */
  readonly nextStartsAt: Instant | null
}

export async function getSilence({ database, clock }: Context, tenant: Tenant, id: string): Promise<SilenceRecord> {
  const row = isUuid(id) ? await findSilenceRow(database, tenant, id) : null
  if (row === null) throw notFound('silence')
  return toRecord(row, clock.now())
}

/** In order of creation. */
export async function listSilences(
  { database, clock }: Context,
  tenant: Tenant,
  filter: SilenceFilter,
  page: PageRequest,
): Promise<Page<SilenceRecord>> {
  const { rows, next } = await readPage(page, (rows) => listSilenceRows(database, tenant, filter, rows))
  return { rows: rows.map((row) => toRecord(row, clock.now())), next }
}

/** Of the tenant's silences that cover the check now, the last to end; null: none does. `key`: of a check of the tenant. */
export async function findSilenceOf(
  { database, clock }: Context,
  tenant: Tenant,
  { key }: { readonly key: number },
): Promise<SilenceRecord | null> {
  const now = clock.now()
  const covering = await findCovering(database, [key], now)
  const visible = await findExisting(
    { database },
    tenant,
    covering.map(({ id }) => id),
  )
  const [last] = covering.filter(({ id }) => visible.has(id)).toSorted((one, other) => other.until - one.until)
  const row = last === undefined ? null : await findSilenceRow(database, tenant, last.id)
  return row === null ? null : toRecord(row, now)
}

/** Which of these silences exist still. */
export const findExisting = ({ database }: Pick<Context, 'database'>, tenant: Tenant, ids: readonly string[]) =>
  ids.length === 0 ? new Set<string>() : findSilenceIds(database, tenant, ids)

export function toRecord({ organizationId: _, ...row }: SilenceRow, now: Instant): SilenceRecord {
  const times = timesOf(row)
  const activeUntil = spanOf(row, now)?.until ?? null
  return { ...row, activeUntil, nextStartsAt: times === null ? null : nextStart(times, now) }
}

/** What was done to a silence, for the audit log. Its comment is text of a request. */
export function actOn({ id, projectId }: Pick<SilenceRow, 'id' | 'projectId'>, action: AuditAction): Act {
  return { action, target: { id, name: null }, projectId }
}
