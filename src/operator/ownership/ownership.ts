/**
 * Whose resource a HeartbeatCheck is (design, section 6). An installation records its id in the status of each resource that it
 * reconciles. Without an id the resource belongs to the writer of its first status: its version decides between two. Pure.
 */

import { type HeartbeatCheck, TAKE_OVER_ANNOTATION } from '../heartbeat-check.ts'

export interface Claims {
  /** Our id. */
  readonly installation: string
  /** TAKE_OVER: the id of an installation whose resources are ours from now on. */
  readonly takeOver: string | null
  /** The uids of resources that were taken over because of TAKE_OVER since the start of this process. */
  readonly takenOver: ReadonlySet<string>
}

export type Ownership =
  | { readonly kind: 'ours' }
  /** Of the installation `from`, and to be taken over. */
  | { readonly kind: 'takeover'; readonly from: string }
  | { readonly kind: 'foreign'; readonly installation: string }

/**
 * Each takeover names the present owner: an annotation with the id of another installation has no effect, and one that stays acts again when that
 * installation has the resource again. TAKE_OVER takes a resource once: two installations that name each other would otherwise alternate for ever.
 */
export function ownershipOf({ metadata, status }: HeartbeatCheck, claims: Claims): Ownership {
  const owner = status?.installation
  if (owner === undefined || owner === claims.installation) return { kind: 'ours' }
  const isAnnotated = metadata.annotations?.[TAKE_OVER_ANNOTATION]?.trim().toLowerCase() === owner
  const isConfigured = claims.takeOver === owner && !claims.takenOver.has(metadata.uid)
  return isAnnotated || isConfigured ? { kind: 'takeover', from: owner } : { kind: 'foreign', installation: owner }
}

/** What is wrong with a resource of another installation, and what to do. */
export function describeForeign(installation: string, { installation: ours }: Claims): string {
  return (
    `this HeartbeatCheck belongs to the installation ${installation}, so the installation ${ours} does not reconcile it: ` +
    `if ${installation} no longer runs, take it over with the annotation ${TAKE_OVER_ANNOTATION}: ${installation} on this resource, ` +
    `or all of its resources with TAKE_OVER=${installation}; ` +
    'if both run, stop one, or let each watch other namespaces (WATCH_NAMESPACES)'
  )
}
