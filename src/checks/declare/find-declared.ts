/** Reading declared checks, for the operator: by their resources, of whatever tenant. */

import type { Instant } from '../../domain/check.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import type { Resource, StoredCheck } from '../../store/checks/checks.ts'
import { type DeclaredState, findDeclaredCheck, listDeclaredStates } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import { type FlipRecord, listNewestFlips } from '../../store/history/flips.ts'

export type { Resource, StoredCheck } from '../../store/checks/checks.ts'
export type { DeclaredState } from '../../store/checks/declared-checks.ts'
export type { FlipRecord } from '../../store/history/flips.ts'

export function findDeclared({ database }: Context, resource: Resource): Promise<StoredCheck | null> {
  return findDeclaredCheck(database, resource)
}

/** Of all declared checks of the cluster in one statement, in no order: for the polling behind the flip notices. */
export function listStates({ database }: Context, cluster: string): Promise<DeclaredState[]> {
  return listDeclaredStates(database, cluster)
}

/** A job that flips more often than this between two looks has its newest told. */
const MOST_FLIPS = 100

/**
 * The flips and outages of a check that were put on record at `since` or later, oldest first. A missed ping is dated at its
 * deadline, which may be well before: it is the record that counts.
 */
export async function listFlipsSince({ database }: Context, key: number, since: Instant): Promise<FlipRecord[]> {
  return (await listNewestFlips(database, key, { fromId: firstIdAt(since), limit: MOST_FLIPS })).reverse()
}
