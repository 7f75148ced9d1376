/** Reads of checks. Unknown, foreign and malformed ids all give AppError `not_found`. */

import type { Tenant } from '../domain/access.ts'
import type { ShownStatus } from '../domain/check.ts'
import type { CheckPlace, CheckSort } from '../domain/check-order.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { PAGE_LIMIT, type Page, type PageRequest } from '../domain/page.ts'
import { yieldTurn } from '../runtime/clock.ts'
import { createLimiter } from '../runtime/limiter.ts'
import { findCheck, findCheckKey, findCheckPlaces, type IdColumn, type StoredCheck } from '../store/checks/checks.ts'
import type { CheckRowsFilter } from '../store/checks/columns.ts'
import { readPublicIdsOf, readTags, readWholeChecks } from '../store/checks/whole-checks.ts'
import type { Context } from '../store/context.ts'
import { hasProject } from '../store/tenancy/projects.ts'

export type { CheckRecord, Resource, StoredCheck } from '../store/checks/checks.ts'
export { type GivenSpec, type StoredSpec, textsOf } from '../store/checks/columns.ts'
export type { DeclaredState } from '../store/checks/declared-checks.ts'
export type { UrlHolder } from '../store/checks/retained-checks.ts'
export type { DeadlineDetail, FollowedFacts } from '../store/jobs/cron-jobs.ts'
export type { FollowedCheck, OverdueRun } from '../store/jobs/followed-checks.ts'
export type { Seen } from '../store/jobs/seen-areas.ts'

export interface CheckFilter extends Omit<CheckRowsFilter, 'status'> {
  /** One of these. */
  readonly status?: readonly ShownStatus[]
}

export async function getCheck(
  { database }: Context,
  tenant: Tenant,
  id: string,
  column?: IdColumn,
): Promise<StoredCheck> {
  const check = isUuid(id) ? await findCheck(database, tenant, id, column) : null
  if (check === null) throw notFound('check')
  return check
}

/** To read all ids of a project takes a tenth of a second for 20,000 checks: two organizations do so at a time. */
const inTurn = createLimiter({
  atOnce: 2,
  perKey: 1,
  waiting: 20,
  waitMs: 5_000,
  createError: () => new AppError('unavailable', { why: 'many_searches' }, { retryAfterSeconds: 5 }),
})

/** The one for whose public id `isIt` holds. Throws AppError `not_found`, and `unavailable` for too many searches. */
export async function searchCheck(
  context: Context,
  tenant: Tenant,
  projectId: string,
  isIt: (publicId: string) => boolean,
): Promise<StoredCheck> {
  const search = async () => {
    let after: string | null = null
    do {
      const ids: string[] = await readPublicIdsOf(context.database, projectId, { after, limit: PAGE_LIMIT })
      const found = ids.find(isIt)
      if (found !== undefined) return await getCheck(context, tenant, found, 'public_id')
      after = ids.length === PAGE_LIMIT ? ids.at(-1)! : null
      await yieldTurn()
    } while (after !== null)
    throw notFound('check')
  }
  return await inTurn(search, [tenant.organizationId])
}

/** Checks with their texts, of up to 28 KB each, that one statement reads. */
const PIECE_CHECKS = 50

export type PlacedCheck = StoredCheck & { readonly place: CheckPlace }

/** Oldest first by default, in pieces whose size in memory is bounded. All pieces of a page have the same `next`. */
export async function* listChecks(
  { database, clock }: Context,
  tenant: Tenant,
  projectId: string,
  { status: statuses, ...filter }: CheckFilter,
  { limit, after, sort = 'created' }: PageRequest<CheckPlace> & { readonly sort?: CheckSort },
): AsyncGenerator<Page<PlacedCheck, CheckPlace>> {
  if (!(await hasProject(database, tenant, projectId, 'read'))) throw notFound('project')
  const now = clock.now()
  const stored = { ...filter, ...(statuses === undefined ? {} : { status: { statuses, now } }) }
  const found = await findCheckPlaces(database, projectId, stored, { sort, after, limit: limit + 1, now })
  const shown = found.slice(0, limit)
  const next = found.length > limit ? shown.at(-1)!.place : null
  for (let at = 0; at === 0 || at < shown.length; at += PIECE_CHECKS) {
    const piece = shown.slice(at, at + PIECE_CHECKS)
    const places = new Map(piece.map(({ key, place }) => [key, place]))
    const rows = piece.length === 0 ? [] : await readWholeChecks(database, [...places.keys()])
    yield { rows: rows.map((check) => ({ ...check, place: places.get(check.key)! })), next }
  }
}

/** All checks of a project that pass the filter, with their texts, oldest first, in pieces whose size in memory is bounded. */
export async function* listAllChecks(
  context: Context,
  tenant: Tenant,
  projectId: string,
  filter: Pick<CheckFilter, 'slug' | 'tag'>,
): AsyncGenerator<readonly StoredCheck[]> {
  let after: CheckPlace | null = null
  do {
    let next: CheckPlace | null = null
    for await (const page of listChecks(context, tenant, projectId, filter, { limit: PAGE_LIMIT, after })) {
      yield page.rows
      next = page.next
    }
    after = next
  } while (after !== null)
}

/** Tags that a list of them has at most. */
const MAX_TAGS = 1_000

/** The tags of the checks of a project, each once, in the order of the alphabet: the first 1,000. */
export async function findTags({ database }: Context, tenant: Tenant, projectId: string): Promise<string[]> {
  if (!(await hasProject(database, tenant, projectId, 'read'))) throw notFound('project')
  return readTags(database, projectId, MAX_TAGS)
}

/** The key of a check, by which its history is stored. */
export async function findKey({ database }: Context, tenant: Tenant, checkId: string): Promise<number> {
  const key = isUuid(checkId) ? await findCheckKey(database, tenant, checkId) : null
  if (key === null) throw notFound('check')
  return key
}
