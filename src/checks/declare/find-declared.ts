/** Reads of declared checks for the operator: by resource, of any tenant. */

import type { Instant } from '../../domain/check.ts'
import { firstIdAt } from '../../runtime/ids.ts'
import type { Resource, StoredCheck } from '../../store/checks/checks.ts'
import { type DeclaredState, findDeclaredCheck, listDeclaredStates } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import { type FlipRecord, listNewestFlips } from '../../store/history/flips.ts'

export type { Resource, StoredCheck } from '../../store/checks/checks.ts'
export type { DeclaredState } from '../../store/checks/declared-checks.ts'
export type { FlipRecord } from '../../store/history/flips.ts'

/** The check of the resource; null when it has none. */
export function findDeclared({ database }: Context, resource: Resource): Promise<StoredCheck | null> {
  return findDeclaredCheck(database, resource)
}

/** The states of all declared checks of a cluster in one statement, in no order: for the poll that backs up the flip notices. */
export function listStates({ database }: Context, cluster: string): Promise<DeclaredState[]> {
  return listDeclaredStates(database, cluster)
}

/** Of more flips between two reads only the newest are reported. */
const MAX_FLIPS = 100

/** Flips and outages stored at `since` or later, oldest first. A missed ping is dated earlier, at its deadline. */
export async function listFlipsSince({ database }: Context, key: number, since: Instant): Promise<FlipRecord[]> {
  return (await listNewestFlips(database, key, { fromId: firstIdAt(since), limit: MAX_FLIPS })).reverse()
}
