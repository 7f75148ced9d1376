/**
 * Where a resource is, and whether a check of an earlier one of its name may come back there (design, section 6,
 * "Deleting"). Pure.
 */

import type { StoredCheck } from '../../store/checks/checks.ts'
import { type CheckOrigin, NO_ORIGIN } from '../../store/checks/columns.ts'

/** Where a resource is, by the uids of its namespace and of its cluster. Null: unknown. */
export interface Place {
  readonly namespaceUid: string | null
  readonly clusterUid: string | null
  /** Read after the resource was created, so that it is not that of an earlier namespace of its name. */
  readonly isFresh: boolean
}

/**
 * Which resource gets a check back: `name`, the one of the same cluster, namespace and name; `uid`, only one in the
 * same namespace or in a new cluster, for clusters whose namespaces change owners.
 */
export type Revival = 'name' | 'uid'

/** What a declaration says of it. */
export interface Placed {
  /** Default: unknown. */
  readonly place?: Place
  /** Default: `name`. */
  readonly revival?: Revival
  /** The first reconcile of the resource. */
  readonly isNew?: boolean
}

type Uids = Omit<CheckOrigin, 'kubernetesAdopted'>

/** Whether what is kept may come back in the place of the resource. */
export function isOfPlace(kept: Uids | null, { revival, place }: Placed): boolean {
  if (revival !== 'uid' || kept === null) return true
  const { kubernetesNamespaceUid: namespaceUid, kubernetesClusterUid: clusterUid } = kept
  if (namespaceUid !== null && namespaceUid === place?.namespaceUid) return true
  return clusterUid !== null && (place?.clusterUid ?? null) !== null && clusterUid !== place?.clusterUid
}

/** Whether the check is that of an earlier namespace of this name, which went without our finalizer. */
export function isOfFormerNamespace({ origin = NO_ORIGIN }: StoredCheck, wanted: Placed): boolean {
  const { place } = wanted
  if (place?.isFresh !== true || place.namespaceUid === null || origin.kubernetesNamespaceUid === null) return false
  return !isOfPlace(origin, wanted)
}

/** The origin of a check that the resource gets now. */
export function originOf({ place }: Placed, isAdopted: boolean | null): CheckOrigin {
  const { namespaceUid = null, clusterUid = null } = place ?? {}
  return { kubernetesAdopted: isAdopted, kubernetesNamespaceUid: namespaceUid, kubernetesClusterUid: clusterUid }
}

/**
 * The place may be outdated, so what is known stays, except at the first reconcile of a resource and in a new cluster.
 */
export function updateOrigin(stored: CheckOrigin, wanted: Placed): CheckOrigin {
  const given = originOf(wanted, stored.kubernetesAdopted)
  if (wanted.isNew === true || wanted.place?.isFresh === true) return given
  const { kubernetesNamespaceUid, kubernetesClusterUid } = given
  if (kubernetesNamespaceUid === null) return stored
  if (stored.kubernetesNamespaceUid === null) return given
  const isSamePlace = stored.kubernetesNamespaceUid === kubernetesNamespaceUid && kubernetesClusterUid !== null
  return isSamePlace ? given : stored
}
