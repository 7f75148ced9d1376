/**
 * The health of the service, for its users (design, section 8). Of the installation: replicas, gaps and deadlines, which name no organization.
 * Of the caller's organization alone: deliveries that wait, because the number of another one's says how many checks it has; and
 * clusters, which declare checks in the installation's (oldest) organization and nowhere else.
 */

import type { Tenant } from '../domain/access.ts'
import type { Instant } from '../domain/check.ts'
import { VERSION } from '../runtime/version.ts'
import { oldestOverdueSeconds } from '../store/checks/states.ts'
import type { Context } from '../store/context.ts'
import { findOldestSpooled, listNewestGaps, PENDING_MS, type ShownGap } from '../store/history/gaps.ts'
import { listClusters } from '../store/leases/clusters.ts'
import { listReplicas, type ReplicaRow } from '../store/leases/replicas.ts'
import { findWaiting, type Waiting } from '../store/outbox/deliveries.ts'
import { findOldestOrganization } from '../store/tenancy/organizations.ts'
import { REPORT_MS } from './report.ts'

export type { ShownGap } from '../store/history/gaps.ts'

/** Above this many, "more than". */
export const MAX_WAITING = 10_000
const MAX_REPLICAS = 100
const MAX_CLUSTERS = 100
const MAX_GAPS = 20
/** Three reports are missing. */
const MISSING_SECONDS = (3 * REPORT_MS) / 1_000

export interface Replica extends Omit<ReplicaRow, 'cluster' | 'leadingSince'> {
  /** It reported a short time ago. A process that stops cleanly is in no list. */
  readonly isLive: boolean
}

export interface ClusterHealth {
  readonly name: string
  /**
   * The processes that lead it. None: no HeartbeatCheck is reconciled at present. Several for longer than a change of the leader takes: two
   * clusters have one name.
   */
  readonly leaders: readonly { readonly host: string; readonly since: Instant }[]
  /** Processes that would take over. */
  readonly standbys: number
  /** Since a leader last registered the name; null without a registration, which needs the right to read the namespace kube-system. */
  readonly seenSecondsAgo: number | null
}

export interface ServiceHealth {
  readonly version: string
  /** At most MAX_REPLICAS, the live ones first, by host. */
  readonly replicas: readonly Replica[]
  /** By name. Null for another organization than the installation's. */
  readonly clusters: readonly ClusterHealth[] | null
  /** The newest first, at most MAX_GAPS. */
  readonly gaps: readonly ShownGap[]
  /** Pings that wait on the disks of api replicas; null: none. `isIgnored`: for so long that deadlines do not wait for them. */
  readonly spooled: { readonly since: Instant; readonly isIgnored: boolean } | null
  /** The age of the oldest deadline that has passed and is not evaluated yet; 0 without one. */
  readonly overdueSeconds: number
  /** Of the caller's organization. A `count` above MAX_WAITING is MAX_WAITING + 1. */
  readonly waiting: Waiting
}

export async function findHealth({ database, clock }: Context, tenant: Tenant): Promise<ServiceHealth> {
  const { organizationId } = tenant
  const [rows, gaps, spooledSince, waiting, overdueSeconds, registered, oldest] = await Promise.all([
    listReplicas(database, MAX_REPLICAS),
    listNewestGaps(database, 0, MAX_GAPS),
    findOldestSpooled(database),
    findWaiting(database, organizationId, { now: clock.now(), limit: MAX_WAITING + 1 }),
    oldestOverdueSeconds(database),
    listClusters(database, MAX_CLUSTERS),
    findOldestOrganization(database),
  ])
  const replicas = rows.map(({ cluster: _, leadingSince: __, ...row }) => ({ ...row, isLive: isLive(row) }))
  replicas.sort((one, other) => Number(other.isLive) - Number(one.isLive) || (one.host < other.host ? -1 : 1))
  const clusters = oldest === organizationId ? toClusters(rows, registered) : null
  const spooled =
    spooledSince === null ? null : { since: spooledSince, isIgnored: clock.now() - spooledSince > PENDING_MS }
  return { version: VERSION, replicas, clusters, gaps: gaps.reverse(), spooled, overdueSeconds, waiting }
}

function isLive({ seenSecondsAgo }: { seenSecondsAgo: number }): boolean {
  return seenSecondsAgo < MISSING_SECONDS
}

function toClusters(
  rows: readonly ReplicaRow[],
  registered: readonly { readonly name: string; readonly seenSecondsAgo: number }[],
): ClusterHealth[] {
  const seen = new Map(registered.map(({ name, seenSecondsAgo }) => [name, seenSecondsAgo]))
  const names = [...new Set([...seen.keys(), ...rows.flatMap(({ cluster }) => cluster ?? [])])].sort()
  return names.map((name) => {
    const live = rows.filter((row) => row.cluster === name && isLive(row))
    const leaders = live.flatMap(({ host, leadingSince }) =>
      leadingSince === null ? [] : [{ host, since: leadingSince }],
    )
    return { name, leaders, standbys: live.length - leaders.length, seenSecondsAgo: seen.get(name) ?? null }
  })
}
