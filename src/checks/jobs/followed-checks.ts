/** The checks of a cluster that follow a source, for its controller. */

import type { Instant } from '../../domain/check.ts'
import type { Context } from '../../store/context.ts'
import {
  type FollowedCheck,
  listFollowedDueRows,
  listFollowedRows,
  listOverdueRunRows,
  type OverdueRun,
} from '../../store/jobs/followed-checks.ts'

export type { FollowedCheck, OverdueRun } from '../../store/jobs/followed-checks.ts'

export const FOLLOWED_PAGE = 1_000

/** Up to FOLLOWED_PAGE checks of the cluster with a greater key than `after`, in the order of keys. */
export function listFollowed({ database }: Context, cluster: string, after = 0): Promise<FollowedCheck[]> {
  return listFollowedRows(database, cluster, after, FOLLOWED_PAGE)
}

/** Up to `limit` checks of these areas that are due at or before `until`, the most urgent first. One look-up in an index for each area. */
export function listFollowedDue(
  { database }: Context,
  areas: readonly string[],
  until: Instant,
  limit = FOLLOWED_PAGE,
): Promise<FollowedCheck[]> {
  return listFollowedDueRows(database, areas, until, limit)
}

/** Up to `limit` open runs of these areas that take their checks down, because their deadline has passed at `until`; those that are explained are left out. */
export function listOverdueRuns(
  { database }: Context,
  areas: readonly string[],
  until: Instant,
  limit = FOLLOWED_PAGE,
): Promise<OverdueRun[]> {
  return listOverdueRunRows(database, areas, until, limit)
}
