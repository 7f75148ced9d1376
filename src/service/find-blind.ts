/**
 * Clusters whose Jobs are not seen, for users: deadlines of the checks that follow their CronJobs wait
 * (docs/use/cronjobs.md).
 */

import type { Tenant } from '../domain/access.ts'
import type { Context } from '../store/context.ts'
import { findUnseen, listSeen, type SeenCluster } from '../store/jobs/seen-areas.ts'
import { findOldestOrganization } from '../store/tenancy/organizations.ts'

/**
 * Longer than a change of the leader takes. The alert HeartbeatOperatorBlind waits for five minutes, because it wakes
 * people.
 */
const BLIND_SECONDS = 60
const MAX_CLUSTERS = 100

export type BlindCluster = SeenCluster

/** By name. None for another organization than the installation's, as in find-health.ts. */
export async function findBlind({ database }: Pick<Context, 'database'>, tenant: Tenant): Promise<BlindCluster[]> {
  const blind = await listSeen(database, MAX_CLUSTERS, BLIND_SECONDS)
  if (blind.length === 0) return []
  return (await findOldestOrganization(database)) === tenant.organizationId ? blind : []
}

/** The same of one area (../store/jobs/seen-areas.ts), of a check that the caller may see: one element, or none. */
export async function findBlindArea({ database }: Pick<Context, 'database'>, area: string): Promise<BlindCluster[]> {
  const found = await findUnseen(database, area, BLIND_SECONDS)
  return found === null ? [] : [found]
}
