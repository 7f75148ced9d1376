/**
 * Whose a resource is (design, section 6). An installation records its id in the status of each resource
 * that it reconciles. Without an id the resource belongs to the writer of its first status: its version decides between
 * two. Pure.
 */

import type { HeartbeatCheck, HeartbeatCheckStatus } from '../heartbeat-check.ts'
import { TAKE_OVER_ANNOTATION } from '../names.ts'
import type { Resource } from '../resource/resource.ts'

export interface Claims {
  /** Our id. */
  readonly installation: string
  /** TAKE_OVER: the id of an installation whose resources are ours from now on. */
  readonly takeOver: string | null
  /** The uids of resources that were taken over since the start of this process. */
  readonly takenOver: ReadonlySet<string>
}

export type Ownership =
  | { readonly kind: 'ours' }
  /** Of the installation `from`, and to be taken over. */
  | { readonly kind: 'takeover'; readonly from: string }
  | { readonly kind: 'foreign'; readonly installation: string }

/**
 * Each takeover names the present owner: an annotation with the id of another installation has no effect, and an
 * annotation that stays acts again when that installation has the resource again. TAKE_OVER takes a resource once: two
 * installations that name each other would otherwise alternate for ever.
 */
export function ownershipOf({ metadata, status }: Resource, claims: Claims): Ownership {
  const owner = status?.installation
  if (owner === undefined || owner === claims.installation) return { kind: 'ours' }
  const isAnnotated = metadata.annotations?.[TAKE_OVER_ANNOTATION]?.trim().toLowerCase() === owner
  const isConfigured = claims.takeOver === owner && !claims.takenOver.has(metadata.uid)
  return isAnnotated || isConfigured ? { kind: 'takeover', from: owner } : { kind: 'foreign', installation: owner }
}

/**
 * Whether another installation has written the status: it took the resource over, it has published its URL, or it
 * reports that it does not have the resource. `ours`: null while our id is not known.
 */
export function isWrittenByOthers(
  { status: before = {} }: HeartbeatCheck,
  { status: after = {} }: HeartbeatCheck,
  ours: string | null,
): boolean {
  const { installation } = after
  if (before.installation === undefined) return ours !== null && installation !== undefined && installation !== ours
  const isNews = (isSaid: (status: HeartbeatCheckStatus) => boolean) => isSaid(after) && !isSaid(before)
  const isMoved = before.installation !== installation || before.checkId !== after.checkId
  return isMoved || isNews(isPublished) || isNews(isManagedElsewhere)
}

/** Whether it says that the URL of its writer is published. */
export const isPublished = ({ conditions = [] }: HeartbeatCheckStatus) =>
  conditions.some(({ type, status }) => type === 'Published' && status === 'True')

const isManagedElsewhere = ({ conditions = [] }: HeartbeatCheckStatus) =>
  conditions.some(({ reason }) => reason === 'ManagedElsewhere')
