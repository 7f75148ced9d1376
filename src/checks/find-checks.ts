/** Reads of checks and their history. Unknown, foreign and malformed ids all give AppError `not_found`. */

import type { Tenant } from '../domain/access.ts'
import type { ShownStatus } from '../domain/check.ts'
import { notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { type CheckRecord, findCheck, findCheckKey, listCheckRows } from '../store/checks/checks.ts'
import type { CheckRowsFilter } from '../store/checks/columns.ts'
import type { Context } from '../store/context.ts'
import { type FlipRecord, listFlipRows } from '../store/history/flips.ts'
import { listPingRows, type PingRecord } from '../store/history/pings.ts'
import { hasProject } from '../store/tenancy/projects.ts'

export type { CheckRecord } from '../store/checks/checks.ts'
export { textsOf } from '../store/checks/columns.ts'
export type { FlipRecord } from '../store/history/flips.ts'
export type { PingRecord } from '../store/history/pings.ts'

export interface CheckFilter extends Omit<CheckRowsFilter, 'status'> {
  readonly status?: ShownStatus
}

export async function getCheck({ database }: Context, tenant: Tenant, id: string): Promise<CheckRecord> {
  const check = isUuid(id) ? await findCheck(database, tenant, id) : null
  if (check === null) throw notFound('check')
  return check
}

/** The checks of a project, oldest first. */
export async function listChecks(
  { database, clock }: Context,
  tenant: Tenant,
  projectId: string,
  { status, ...filter }: CheckFilter,
  { limit, after }: PageRequest,
): Promise<Page<CheckRecord>> {
  if (!(await hasProject(database, tenant, projectId, 'read'))) throw notFound('project')
  const stored = { ...filter, ...(status === undefined ? {} : { status: { status, now: clock.now() } }) }
  const rows = await listCheckRows(database, tenant, projectId, stored, { after, limit: limit + 1 })
  return toPage(rows, limit, (check) => ({ at: check.createdAt, id: check.id }))
}

/** The pings of a check, newest first. */
export async function listPings(
  context: Context,
  tenant: Tenant,
  checkId: string,
  { limit, after }: PageRequest,
): Promise<Page<PingRecord>> {
  const key = await findKey(context, tenant, checkId)
  const rows = await listPingRows(context.database, key, { beforeId: after?.id ?? null, limit: limit + 1 })
  return toPage(rows, limit, (ping) => ({ at: ping.createdAt, id: ping.id }))
}

/** The flips of a check, newest first. */
export async function listFlips(
  context: Context,
  tenant: Tenant,
  checkId: string,
  { limit, after }: PageRequest,
): Promise<Page<FlipRecord>> {
  const key = await findKey(context, tenant, checkId)
  const rows = await listFlipRows(context.database, key, { beforeId: after?.id ?? null, limit: limit + 1 })
  return toPage(rows, limit, (flip) => ({ at: flip.at, id: flip.id }))
}

async function findKey({ database }: Context, tenant: Tenant, checkId: string): Promise<number> {
  const key = isUuid(checkId) ? await findCheckKey(database, tenant, checkId) : null
  if (key === null) throw notFound('check')
  return key
}
