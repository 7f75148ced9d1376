/** What the resources of this operator have in common, whatever their kinds are. */

import type { Condition, KubernetesObject, ResourceType } from '../../kubernetes/objects.ts'
import type { Regarding } from '../../kubernetes/recorder.ts'
import { API_VERSION } from '../names.ts'

/** The part of a status that each kind has. */
export interface CommonStatus {
  readonly conditions?: readonly Condition[]
  readonly observedGeneration?: number | undefined
  /** The id of the installation that reconciles it. */
  readonly installation?: string | undefined
  readonly lastHandledReconcileTime?: string | undefined
  readonly lastHandledReconcileRequest?: string | undefined
}

export interface Resource<Status extends CommonStatus = CommonStatus> extends KubernetesObject {
  readonly status?: Status
}

/** What a kind is called. */
export interface ResourceKind {
  readonly kind: string
  readonly type: ResourceType
}

export const placeOf = ({ metadata: { namespace, name } }: KubernetesObject) => ({ namespace: namespace!, name })

/** The reference of an Event to a resource. */
export function regarding({ metadata }: KubernetesObject, kind: string): Regarding {
  const { namespace, name, uid, resourceVersion } = metadata
  return { apiVersion: API_VERSION, kind, namespace: namespace!, name, uid, resourceVersion }
}
